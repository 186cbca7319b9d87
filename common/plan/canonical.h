#ifndef PENSTOCK_COMMON_PLAN_CANONICAL_H_
#define PENSTOCK_COMMON_PLAN_CANONICAL_H_

#include <cstdint>
#include <span>
#include <string>

#include "common/plan/feed_spec.h"

// The canonical forms of a feed and their digests. README.md lists the fields.
// Preconditions: CheckFeed() found nothing and the sources are sorted.
namespace penstock::plan {

// Which samples, where: what must match on resume. Left out: what the dataset
// ids and the selection digest of a job record say already.
std::string CanonicalOrder(const FeedSpec& feed);

// What is made of them; a change is a recorded revision.
std::string CanonicalContent(const FeedSpec& feed);

// The whole feed with every default filled in; not part of a digest.
std::string CanonicalFeed(const FeedSpec& feed);

// SHA-256 of "penstock.order.v1\n" or "penstock.content.v1\n" and the form.
Digest256 OrderDigest(const FeedSpec& feed);
Digest256 ContentDigest(const FeedSpec& feed);

// Quotas of kMixturePeriod, one a source.
std::vector<std::uint32_t> QuotasOf(const FeedSpec& feed);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_CANONICAL_H_
