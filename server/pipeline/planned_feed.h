#ifndef PENSTOCK_SERVER_PIPELINE_PLANNED_FEED_H_
#define PENSTOCK_SERVER_PIPELINE_PLANNED_FEED_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/plan/feed_spec.h"
#include "server/pipeline/job_manager.h"

namespace penstock::pipeline {

// The pipeline's form of an output of a feed.
OutputSpec FlatOutput(const plan::OutputSpec& output);

// The FeedLoader of daemon and `penstock feed --local`: dataset::OpenFeed
// behind the pipeline's FeedPlan. Errors: as dataset::OpenFeed.
absl::StatusOr<LoadedFeed> LoadPlannedFeed(const std::string& text,
                                           const std::string& where,
                                           const std::string& dir);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_PLANNED_FEED_H_
