#ifndef PENSTOCK_SERVER_CLI_PLAN_SHAPES_H_
#define PENSTOCK_SERVER_CLI_PLAN_SHAPES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/plan/cp_slice.h"
#include "common/plan/data_ranks.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {

// Prints every shape that a microbatch of the feed has for some step, so that a
// compiler meets no other: one line a global batch and tensor.
// kInvalidArgument: the data ranks cannot share a global batch of the feed
absl::Status PrintShapes(const dataset::OpenedFeed& feed,
                         const plan::DataRanks& ranks, const plan::CpCut& cp,
                         bool json);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_SHAPES_H_
