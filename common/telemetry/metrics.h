#ifndef PENSTOCK_COMMON_TELEMETRY_METRICS_H_
#define PENSTOCK_COMMON_TELEMETRY_METRICS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::telemetry {

// One sample of a metric.
struct MetricValue {
  std::string name, help;
  bool counter = false;  // else a gauge
  double value = 0;
  std::map<std::string, std::string> labels;
};

// /metrics for Prometheus; asks `collect` at every scrape.
//
// Threading: `collect` runs on the server's threads.
class Exposer {
 public:
  // kUnavailable: the address cannot be bound (names it)
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(
      const std::string& address,
      std::function<std::vector<MetricValue>()> collect);
  ~Exposer();

 private:
  struct Impl;
  explicit Exposer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::telemetry

#endif  // PENSTOCK_COMMON_TELEMETRY_METRICS_H_
