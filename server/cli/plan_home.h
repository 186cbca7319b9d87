#ifndef PENSTOCK_SERVER_CLI_PLAN_HOME_H_
#define PENSTOCK_SERVER_CLI_PLAN_HOME_H_

#include "absl/status/status.h"
#include "common/plan/data_ranks.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {

// Prints, for `cut: local`, which share of the units is on its home node at a step
// and in the steps from it on, beside what a strided cut would have.
absl::Status PrintHomes(const dataset::OpenedFeed& feed,
                        const plan::GlobalBatch& batch, const plan::DataRanks& ranks,
                        bool json);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_HOME_H_
