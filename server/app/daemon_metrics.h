#ifndef PENSTOCK_SERVER_APP_DAEMON_METRICS_H_
#define PENSTOCK_SERVER_APP_DAEMON_METRICS_H_

#include <vector>

#include "common/telemetry/metrics.h"
#include "server/io/read_engine.h"
#include "server/pipeline/job_manager.h"

namespace penstock::app {

// What Prometheus sees of the daemon. Labels: job, data_rank (bounded by the
// ranks of this node).
std::vector<telemetry::MetricValue> CollectMetrics(
    const pipeline::JobManager& jobs, const io::ReadEngine& engine);

}  // namespace penstock::app

#endif  // PENSTOCK_SERVER_APP_DAEMON_METRICS_H_
