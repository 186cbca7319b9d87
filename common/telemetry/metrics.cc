#include "common/telemetry/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>

#include "common/status/status.h"

namespace penstock::telemetry {
namespace {

// Turns values into families, one a name.
class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<std::vector<MetricValue>()> collect)
      : collect_(std::move(collect)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::map<std::string, prometheus::MetricFamily> families;
    for (const MetricValue& v : collect_()) {
      auto& family = families[v.name];
      family.name = v.name;
      family.help = v.help;
      family.type = v.counter ? prometheus::MetricType::Counter
                              : prometheus::MetricType::Gauge;
      prometheus::ClientMetric metric;
      for (const auto& [name, value] : v.labels) {
        metric.label.push_back({name, value});
      }
      (v.counter ? metric.counter.value : metric.gauge.value) = v.value;
      family.metric.push_back(std::move(metric));
    }
    std::vector<prometheus::MetricFamily> out;
    for (auto& [name, family] : families) out.push_back(std::move(family));
    return out;
  }

 private:
  std::function<std::vector<MetricValue>()> collect_;
};

}  // namespace

struct Exposer::Impl {
  std::shared_ptr<Collector> collector;
  std::unique_ptr<prometheus::Exposer> exposer;
};

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(
    const std::string& address,
    std::function<std::vector<MetricValue>()> collect) {
  auto impl = std::make_unique<Impl>();
  impl->collector = std::make_shared<Collector>(std::move(collect));
  try {
    impl->exposer = std::make_unique<prometheus::Exposer>(address, 1);
  } catch (const std::exception& e) {
    return MakeError(absl::StatusCode::kUnavailable,
                     {.where = "metrics " + address,
                      .what = "cannot listen there",
                      .found = e.what(),
                      .expected = "an address of this machine that is free",
                      .action = "choose another address for metrics"});
  }
  impl->exposer->RegisterCollectable(impl->collector);
  return std::unique_ptr<Exposer>(new Exposer(std::move(impl)));
}

Exposer::Exposer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Exposer::~Exposer() = default;

}  // namespace penstock::telemetry
