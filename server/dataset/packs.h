#ifndef PENSTOCK_SERVER_DATASET_PACKS_H_
#define PENSTOCK_SERVER_DATASET_PACKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/planner.h"
#include "common/status/status.h"

namespace penstock::dataset {

// The pack index of a feed with packing: how many packs each window of samples
// gives. Counted ahead by several threads, kept in a file, so that what was counted
// once is not counted again, also when the counting was cut off.
//
// Threading: any thread; one caller at a time counts and reads.
// Bounds: of plan::PackPlan, and a batch of windows in the making.
class Packs {
 public:
  // Packs counted so far, and how many are wanted.
  using Progress = std::function<void(std::uint64_t, std::uint64_t)>;

  // Starts with what `file` knows under `key`; a file that is not there, damaged
  // or of another key is as none. Empty `file`: kept in memory only.
  //
  // kInvalidArgument: as plan::PackPlan::Create
  static absl::StatusOr<std::unique_ptr<Packs>> Open(
      std::shared_ptr<const plan::Planner> planner, const Digest256& key,
      std::string file);

  // Called while counting takes long, from the thread that asked.
  void SetProgress(Progress progress) { progress_ = std::move(progress); }

  // The packs, `count` of them counted or all that there are, for `use` alone.
  //
  // kInvalidArgument: as plan::PackOne
  template <typename Use>
  auto With(std::uint64_t count, const Use& use)
      -> decltype(use(std::declval<plan::PackPlan*>())) {
    std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(Count(count));
    return use(&plan_);
  }

 private:
  Packs(std::shared_ptr<const plan::Planner> planner, const Digest256& key,
        std::string file, plan::PackPlan plan)
      : planner_(std::move(planner)),
        key_(key),
        file_(std::move(file)),
        plan_(std::move(plan)) {}

  absl::Status Load();
  absl::Status Count(std::uint64_t count);
  absl::StatusOr<std::vector<std::uint32_t>> CountOf(
      const std::vector<plan::PackWindow>& windows) const;
  void Save();

  const std::shared_ptr<const plan::Planner> planner_;
  const Digest256 key_;
  const std::string file_;
  Progress progress_;
  std::mutex mutex_;
  plan::PackPlan plan_;             // under mutex_
  std::uint64_t saved_windows_ = 0;  // under mutex_
};

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_PACKS_H_
