#include "common/plan/planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random/permutation.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

absl::Status CheckSorted(const FeedSpec& feed, std::size_t inputs) {
  const bool sorted = std::is_sorted(
      feed.sources.begin(), feed.sources.end(),
      [](const auto& a, const auto& b) { return a.name < b.name; });
  if (sorted && inputs == feed.sources.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the planner needs the feed's sources sorted by name (SortSources) and "
      "one input for each");
}

// Steps of [0, k) that `skip`, sorted and apart, leaves out.
std::uint64_t SkippedBefore(const std::vector<SkipSpec>& skip, std::uint64_t k) {
  std::uint64_t out = 0;
  for (const SkipSpec& s : skip) {
    if (s.from >= k) break;
    out += std::min(s.to, k) - s.from;
  }
  return out;
}

}  // namespace

// The orders used while walking over neighbouring positions: the last pass of
// each stratum, made when first needed.
class Planner::Walk {
 public:
  explicit Walk(const Planner& planner) : planner_(planner) {
    std::size_t strata = 0;
    for (const Lineage& l : planner.lineages()) {
      first_.push_back(strata);
      strata += l.strata().size();
    }
    orders_.resize(strata);
  }

  // Sample number `i` of a segment.
  Sample At(const Segment& segment, std::uint64_t i) {
    const Mixture::Slot slot = segment.mixture->At(i);
    const Segment::Start& start = segment.starts[slot.source];
    const auto lineage = static_cast<std::uint32_t>(start.lineage);
    const Lineage::Draw draw =
        planner_.lineages()[lineage].At(start.draws + slot.rank);
    return Make(slot.source, lineage, draw, Epoch{start.epoch + draw.pass});
  }

  // Sample number `i` of an evaluation.
  Sample Evaluated(std::uint64_t i) {
    const auto& before = planner_.evaluated_before_;
    const auto lineage = static_cast<std::uint32_t>(
        std::upper_bound(before.begin(), before.end(), i) - before.begin() - 1);
    return Make(planner_.evaluated_source_[lineage], lineage,
                {0, 0, i - before[lineage]}, Epoch{0});
  }

 private:
  struct PassOrder {
    Epoch epoch;
    random::Permutation permutation;
  };

  Sample Make(std::uint32_t source, std::uint32_t lineage,
              const Lineage::Draw& draw, Epoch epoch) {
    const View& view = planner_.lineages()[lineage].strata()[draw.stratum].view;
    const std::uint64_t index = Order(source, lineage, draw, epoch);
    const Window w = view.At(index);
    return {.source = source,
            .lineage = lineage,
            .stratum = draw.stratum,
            .epoch = epoch,
            .index = index,
            .capture = w.capture,
            .track = w.track,
            .start_frame = w.start_frame,
            .stride = w.stride,
            .frames = static_cast<std::uint32_t>(
                planner_.feed_.sources[source].view.frames)};
  }

  std::uint64_t Order(std::uint32_t source, std::uint32_t lineage,
                      const Lineage::Draw& draw, Epoch epoch) {
    const FeedSpec& feed = planner_.feed_;
    if (feed.order == OrderMode::kSequential) return draw.place;
    std::optional<PassOrder>& order = orders_[first_[lineage] + draw.stratum];
    if (!order || order->epoch != epoch) {
      const Lineage::Stratum& stratum =
          planner_.lineages()[lineage].strata()[draw.stratum];
      const std::string& name = feed.sources[source].name;
      order.emplace(PassOrder{
          epoch,
          random::Permutation(
              stratum.view.size(),
              random::MakeKey(feed.seed, "plan.order",
                              stratum.label.empty()
                                  ? name
                                  : absl::StrCat(name, "/", stratum.label),
                              epoch.value))});
    }
    return order->permutation.At(draw.place);
  }

  const Planner& planner_;
  std::vector<std::size_t> first_;  // of a lineage's strata
  std::vector<std::optional<PassOrder>> orders_;
};

absl::StatusOr<Planner> Planner::Create(FeedSpec feed,
                                        std::vector<SourceInput> sources) {
  PENSTOCK_RETURN_IF_ERROR(CheckFeedStatus(feed));
  PENSTOCK_RETURN_IF_ERROR(CheckSorted(feed, sources.size()));
  Planner planner(std::move(feed), std::move(sources));
  PENSTOCK_ASSIGN_OR_RETURN(planner.cost_, CostFormula::Parse(planner.feed_.cost));
  PENSTOCK_RETURN_IF_ERROR(planner.feed_.mode == Mode::kEvaluation
                               ? planner.LayEvaluation()
                               : planner.LayTraining());
  if (planner.total_steps_ != 0) return planner;
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "feed \"" + planner.feed_.name + "\"",
       .what = "the data ends before the first step",
       .found = absl::StrCat("global batch ", planner.feed_.global_batch,
                             ", epochs ", planner.feed_.epochs),
       .expected = "at least one whole global batch",
       .action = "use a smaller global batch or hop, or more epochs"});
}

absl::Status Planner::LayTraining() {
  PENSTOCK_ASSIGN_OR_RETURN(schedule_, Schedule::Create(feed_, inputs_));
  if (schedule_.total()) {
    total_steps_ =
        *schedule_.total() - SkippedBefore(feed_.skip, *schedule_.total());
  }
  return absl::OkStatus();
}

absl::Status Planner::LayEvaluation() {
  evaluated_before_.push_back(0);
  for (std::uint32_t i = 0; i < feed_.sources.size(); ++i) {
    const SourceSpec& spec = feed_.sources[i];
    if (spec.weight.nanos == 0) continue;
    PENSTOCK_ASSIGN_OR_RETURN(
        Lineage lineage,
        Lineage::Create(spec.view, {}, inputs_[i],
                        absl::StrCat("source \"", spec.name, "\" (",
                                     spec.dataset, ")")));
    evaluated_before_.push_back(evaluated_before_.back() + lineage.size());
    evaluated_source_.push_back(i);
    evaluated_.push_back(std::move(lineage));
  }
  const std::uint64_t samples = evaluated_before_.back();
  total_steps_ = samples / feed_.global_batch +
                 (samples % feed_.global_batch != 0 ? 1 : 0);
  return absl::OkStatus();
}

// What `before` counts up to a step, without the steps that are skipped.
template <typename Before>
auto Planner::Delivered(Step step, const Before& before) const {
  const std::uint64_t data_step = DataStep(step);
  auto out = before(data_step);
  for (const SkipSpec& s : feed_.skip) {
    if (s.from >= data_step) break;
    const auto from = before(s.from), to = before(std::min(s.to, data_step));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= to[i] - from[i];
  }
  return out;
}

std::uint64_t Planner::SourceSize(std::uint32_t source) const {
  if (feed_.mode == Mode::kEvaluation) {
    for (std::size_t i = 0; i < evaluated_.size(); ++i) {
      if (evaluated_source_[i] == source) return evaluated_[i].size();
    }
    return 0;
  }
  for (const Segment& g : schedule_.segments()) {
    const std::int32_t l = g.starts[source].lineage;
    if (l >= 0) return schedule_.lineages()[static_cast<std::size_t>(l)].size();
  }
  return 0;
}

const std::string& Planner::StratumOf(const Sample& sample) const {
  return lineages()[sample.lineage].strata()[sample.stratum].label;
}

std::uint64_t Planner::DataStep(Step step) const {
  std::uint64_t k = step.value;
  for (const SkipSpec& s : feed_.skip) {
    if (k < s.from) break;
    k += s.to - s.from;
  }
  return k;
}

std::uint64_t Planner::UnitsOf(Step step) const {
  return feed_.mode == Mode::kEvaluation
             ? feed_.global_batch
             : schedule_.At(DataStep(step)).global_batch;
}

absl::StatusOr<std::vector<std::uint64_t>> Planner::RankUnits(
    std::uint32_t world) const {
  std::set<std::uint64_t> batches, units;
  for (const Segment& g : schedule_.segments()) batches.insert(g.global_batch);
  if (feed_.mode == Mode::kEvaluation) batches.insert(feed_.global_batch);
  for (const std::uint64_t batch : batches) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t of_rank,
                              UnitsOfRank(CutRuleOf(feed_), batch, world));
    units.insert(of_rank);
  }
  return std::vector<std::uint64_t>(units.begin(), units.end());
}

absl::StatusOr<GlobalBatch> Planner::PlanStep(Step step) const {
  const std::uint64_t end = total_steps_.value_or(
      kStepMax - SkippedBefore(feed_.skip, kStepMax));
  if (step.value >= end) {
    return MakeError(
        absl::StatusCode::kOutOfRange,
        {.where = "feed \"" + feed_.name + "\"",
         .what = "the data has ended",
         .found = absl::StrCat("step ", step.value),
         .expected = absl::StrCat("0 to ", end - 1, " (", end,
                                  " steps, epochs ", feed_.epochs, ")"),
         .action = "ask for an earlier step, or raise epochs"});
  }
  GlobalBatch batch{step, DataStep(step), UnitsOf(step), {}};
  batch.samples.reserve(batch.units);
  Walk walk(*this);
  if (feed_.mode == Mode::kEvaluation) {
    const std::uint64_t first = step.value * batch.units;
    const std::uint64_t last =
        std::min(first + batch.units, evaluated_before_.back());
    for (std::uint64_t i = first; i < last; ++i) {
      batch.samples.push_back(walk.Evaluated(i));
    }
    return batch;
  }
  const Segment& segment = schedule_.At(batch.data_step);
  const std::uint64_t first =
      (batch.data_step - segment.first_step) * batch.units;
  for (std::uint64_t i = 0; i < batch.units; ++i) {
    batch.samples.push_back(walk.At(segment, first + i));
  }
  return batch;
}

std::vector<std::uint64_t> Planner::CostsOf(const GlobalBatch& batch) const {
  std::vector<std::uint64_t> out;
  out.reserve(batch.samples.size());
  for (const Sample& s : batch.samples) {
    out.push_back(cost_.Of(CostInputsOf(s, inputs_[s.source].index)));
  }
  return out;
}

absl::StatusOr<BatchCut> Planner::Cut(const GlobalBatch& batch,
                                      std::uint32_t world) const {
  std::vector<std::uint64_t> costs;
  if (feed_.cut == CutMode::kBalanced) costs = CostsOf(batch);
  return CutBatch(CutRuleOf(feed_), batch.units, batch.samples.size(), world, costs);
}

std::vector<std::uint64_t> Planner::CountsBefore(Step step) const {
  if (feed_.mode == Mode::kEvaluation) {
    std::vector<std::uint64_t> counts(feed_.sources.size());
    const std::uint64_t end = step.value * feed_.global_batch;
    for (std::size_t i = 0; i < evaluated_.size(); ++i) {
      const std::uint64_t before = std::min(end, evaluated_before_[i]);
      counts[evaluated_source_[i]] =
          std::min(end, evaluated_before_[i + 1]) - before;
    }
    return counts;
  }
  return Delivered(step, [this](std::uint64_t k) { return schedule_.CountsBefore(k); });
}

std::vector<double> Planner::AskedBefore(Step step) const {
  if (feed_.mode == Mode::kEvaluation) return {};
  return Delivered(step, [this](std::uint64_t k) { return schedule_.AskedBefore(k); });
}

}  // namespace penstock::plan
