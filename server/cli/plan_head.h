#ifndef PENSTOCK_SERVER_CLI_PLAN_HEAD_H_
#define PENSTOCK_SERVER_CLI_PLAN_HEAD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {

inline constexpr char kPlanSchema[] = "penstock.plan.v1";

// Prints what `penstock plan` says of the feed at a step: digests, sources with
// their weights and what was drawn of them before, groups, how packs fill.
// Errors: as OpenedFeed::CountsBefore
absl::Status PrintPlanHead(const dataset::OpenedFeed& feed, std::uint64_t step,
                           std::uint32_t world, bool json);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_HEAD_H_
