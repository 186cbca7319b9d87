#ifndef PENSTOCK_SERVER_CLI_PLAN_HEAD_H_
#define PENSTOCK_SERVER_CLI_PLAN_HEAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {

inline constexpr char kPlanSchema[] = "penstock.plan.v1";

// Prints what `penstock plan` says of the feed at a step: digests, sources with
// their weights and what was drawn of them before, groups, how packs fill.
// Errors: as OpenedFeed::CountsBefore
absl::Status PrintPlanHead(const dataset::OpenedFeed& feed, std::uint64_t step,
                           std::uint32_t world, bool json);

// Where the steps [from, to) end: at `to`, or where the data does.
// kOutOfRange: there are none
absl::StatusOr<std::uint64_t> RangeEnd(const dataset::OpenedFeed& feed,
                                       std::uint64_t from, std::uint64_t to);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_HEAD_H_
