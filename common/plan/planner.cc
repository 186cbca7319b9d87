#include "common/plan/planner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/canonical.h"
#include "common/random/permutation.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::uint64_t kViewSizeMax = std::uint64_t{1} << 46;

std::string NameOf(const SourceSpec& s) {
  return absl::StrCat("source \"", s.name, "\" (", s.dataset, ")");
}

absl::Status CheckSorted(const FeedSpec& feed, std::size_t inputs) {
  const bool sorted = std::is_sorted(
      feed.sources.begin(), feed.sources.end(),
      [](const auto& a, const auto& b) { return a.name < b.name; });
  if (sorted && inputs == feed.sources.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the planner needs the feed's sources sorted by name (SortSources) and "
      "one input for each");
}

}  // namespace

// The orders used while walking over neighbouring positions: the last epoch of
// each source, made when first needed.
class Planner::Walk {
 public:
  explicit Walk(const Planner& planner)
      : planner_(planner), orders_(planner.feed_.sources.size()) {}

  Sample At(std::uint64_t position) {
    const Mixture::Slot slot = planner_.mixture_.At(position);
    const View& view = *planner_.views_[slot.source];
    const Epoch epoch{slot.rank / view.size()};
    const std::uint64_t index =
        Order(slot.source, epoch, slot.rank % view.size());
    const Window w = view.At(index);
    return {.source = slot.source,
            .epoch = epoch,
            .index = index,
            .capture = w.capture,
            .track = w.track,
            .start_frame = w.start_frame,
            .stride = w.stride,
            .frames = static_cast<std::uint32_t>(
                planner_.feed_.sources[slot.source].view.frames)};
  }

 private:
  struct EpochOrder {
    Epoch epoch;
    random::Permutation permutation;
  };

  std::uint64_t Order(std::uint32_t source, Epoch epoch, std::uint64_t i) {
    const FeedSpec& feed = planner_.feed_;
    if (feed.order == OrderMode::kSequential) return i;
    std::optional<EpochOrder>& order = orders_[source];
    if (!order || order->epoch != epoch) {
      order.emplace(EpochOrder{
          epoch, random::Permutation(
                     planner_.views_[source]->size(),
                     random::MakeKey(feed.seed, "plan.order",
                                     feed.sources[source].name, epoch.value))});
    }
    return order->permutation.At(i);
  }

  const Planner& planner_;
  std::vector<std::optional<EpochOrder>> orders_;
};

absl::StatusOr<Planner> Planner::Create(FeedSpec feed,
                                        std::vector<SourceInput> sources) {
  PENSTOCK_RETURN_IF_ERROR(CheckFeedStatus(feed));
  PENSTOCK_RETURN_IF_ERROR(CheckSorted(feed, sources.size()));
  Mixture mixture(QuotasOf(feed));
  Planner planner(std::move(feed), std::move(mixture));
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    planner.views_.emplace_back();
    if (planner.mixture_.quota(i) == 0) continue;
    const SourceSpec& spec = planner.feed_.sources[i];
    PENSTOCK_ASSIGN_OR_RETURN(View view,
                              View::Create(spec.view, sources[i].index,
                                           sources[i].captures, NameOf(spec)));
    if (view.size() > kViewSizeMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(spec),
                       ": more than 2^46 windows; use a larger "
                       "hop"));
    }
    planner.views_.back() = std::move(view);
  }
  planner.total_steps_ = planner.ComputeTotalSteps();
  if (planner.total_steps_ == 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "feed \"" + planner.feed_.name + "\"",
         .what = "the data ends before the first step",
         .found = absl::StrCat("global batch ", planner.feed_.global_batch,
                               ", epochs ", planner.feed_.epochs),
         .action = "use a smaller global batch or hop, or more epochs"});
  }
  return planner;
}

std::uint64_t Planner::SourceSize(std::uint32_t source) const {
  return views_[source] ? views_[source]->size() : 0;
}

std::optional<std::uint64_t> Planner::ComputeTotalSteps() const {
  if (feed_.epochs == 0) return std::nullopt;
  __extension__ using Wide = unsigned __int128;
  std::uint64_t steps = kStepMax;
  for (std::uint32_t s = 0; s < views_.size(); ++s) {
    if (!views_[s]) continue;
    const Wide draws = Wide{feed_.epochs} * views_[s]->size();
    // rank/quota·2^16 stays below 2^62 for ranks below; more is kStepMax anyway
    // for any batch.
    if (draws / mixture_.quota(s) >= (Wide{1} << 46)) continue;
    // The draw that would begin one epoch too many.
    const std::uint64_t end =
        mixture_.PositionOf(s, static_cast<std::uint64_t>(draws));
    steps = std::min(steps, end / feed_.global_batch);
  }
  return steps;
}

absl::StatusOr<GlobalBatch> Planner::PlanStep(Step step) const {
  const std::uint64_t end = total_steps_.value_or(kStepMax);
  if (step.value >= end) {
    return MakeError(
        absl::StatusCode::kOutOfRange,
        {.where = "feed \"" + feed_.name + "\"",
         .what = "the data has ended",
         .found = absl::StrCat("step ", step.value),
         .expected = absl::StrCat("0 to ", end - 1, " (", end,
                                  " steps, epochs ", feed_.epochs, ")")});
  }
  GlobalBatch batch{step, {}};
  batch.samples.reserve(feed_.global_batch);
  Walk walk(*this);
  const std::uint64_t first = step.value * feed_.global_batch;
  for (std::uint64_t i = 0; i < feed_.global_batch; ++i) {
    batch.samples.push_back(walk.At(first + i));
  }
  return batch;
}

std::vector<std::uint64_t> Planner::CountsBefore(Step step) const {
  std::vector<std::uint64_t> counts;
  for (std::uint32_t s = 0; s < views_.size(); ++s) {
    counts.push_back(mixture_.CountBefore(s, step.value * feed_.global_batch));
  }
  return counts;
}

}  // namespace penstock::plan
