#ifndef PENSTOCK_COMMON_PLAN_CHECK_FAULTS_H_
#define PENSTOCK_COMMON_PLAN_CHECK_FAULTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/feed_spec.h"

// Parts of CheckFeed(). Private to common/plan.
namespace penstock::plan {

// Collects faults under a field path.
class Faults {
 public:
  void Add(std::string field, Problem problem) {
    faults_.push_back({std::move(field), std::move(problem)});
  }
  void Range(const std::string& field, std::uint64_t v, std::uint64_t low,
             std::uint64_t high) {
    if (v >= low && v <= high) return;
    Add(field, {.what = "out of range",
                .found = absl::StrCat(v),
                .expected = absl::StrCat(low, " to ", high)});
  }
  std::vector<Fault> Take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

inline std::string At(const char* list, std::size_t i) {
  return absl::StrCat(list, "[", i, "]");
}

// Names are parts of sample ids, metrics and messages.
void CheckName(const std::string& field, const std::string& name, Faults& faults);
// Every name of a list once; `seen` holds those before.
void CheckTwice(const char* list, std::size_t i, const std::string& name,
                std::map<std::string, std::size_t>& seen, Faults& faults);

// One window of a source, and that it fits the others of the feed.
void CheckViewOf(const FeedSpec& feed, const std::string& field, const ViewSpec& v,
                 Faults& faults);

// What changes on the way and how it is cut: stages, skipped steps, ends, modes,
// cost formula, microbatches.
void CheckCourse(const FeedSpec& feed, Faults& faults);

// What a unit is: buckets, packing, lengths, and the sizes and names of outputs.
void CheckUnits(const FeedSpec& feed, Faults& faults);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_CHECK_FAULTS_H_
