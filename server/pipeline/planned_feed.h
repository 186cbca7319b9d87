#ifndef PENSTOCK_SERVER_PIPELINE_PLANNED_FEED_H_
#define PENSTOCK_SERVER_PIPELINE_PLANNED_FEED_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/dataset/plan_source.h"
#include "server/pipeline/job_manager.h"

namespace penstock::pipeline {

// An opened feed behind the pipeline's FeedPlan.
std::shared_ptr<const FeedPlan> PlanOf(dataset::OpenedFeed feed);

// The FeedLoader of daemon and `penstock feed --local`: dataset::OpenFeed
// behind the pipeline's FeedPlan. Errors: as dataset::OpenFeed.
absl::StatusOr<LoadedFeed> LoadPlannedFeed(const std::string& text,
                                           const std::string& where,
                                           const std::string& dir);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_PLANNED_FEED_H_
