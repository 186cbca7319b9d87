#include "common/plan/planner.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/local_cut.h"
#include "common/plan/steps.h"
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

}  // namespace

absl::StatusOr<Planner> Planner::Create(FeedSpec feed,
                                        std::vector<SourceInput> sources) {
  PENSTOCK_RETURN_IF_ERROR(CheckFeedStatus(feed));
  PENSTOCK_RETURN_IF_ERROR(CheckSorted(feed, sources.size()));
  auto inputs = std::make_shared<PlanInputs>();
  PENSTOCK_ASSIGN_OR_RETURN(inputs->cost, CostFormula::Parse(feed.cost));
  if (!feed.length.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(inputs->length, CostFormula::Parse(feed.length));
  }
  inputs->feed = std::move(feed);
  inputs->sources = std::move(sources);
  Planner planner(std::move(inputs));
  PENSTOCK_ASSIGN_OR_RETURN(planner.stream_, Stream::Create(planner.inputs_));
  PENSTOCK_RETURN_IF_ERROR(planner.CheckBuckets());
  PENSTOCK_RETURN_IF_ERROR(planner.CheckEnd());
  return planner;
}

absl::Status Planner::CheckBuckets() const {
  std::set<std::uint32_t> used;
  for (const auto& l : stream_->lineages()) {
    for (const Lineage::Stratum& s : l->strata()) {
      for (const Pool::Bucket& b : s.pool.buckets()) used.insert(b.shape);
    }
  }
  for (std::uint32_t i = 0; i < feed().buckets.size(); ++i) {
    if (used.contains(i)) continue;
    const BucketSpec& b = feed().buckets[i];
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrCat("feed \"", feed().name, "\", bucket \"", b.name, "\""),
         .what = "no sample of any source goes to the bucket",
         .found = "0 samples",
         .expected = absl::StrCat("samples of up to ", b.frames, " frames nearest to ",
                                  b.width, "x", b.height),
         .action = "remove the bucket, or correct its size, rate or frames"});
  }
  return absl::OkStatus();
}

// That there is a step at all; with packing the packs of the data are counted as
// far as that.
absl::Status Planner::CheckEnd() const {
  std::optional<PackPlan> packs;
  if (packing()) {
    PENSTOCK_ASSIGN_OR_RETURN(packs, MakePacks());
    if (stream_->total()) {
      PENSTOCK_RETURN_IF_ERROR(packs->Reach(UnitsBefore(feed(), DataStep({0}) + 1)));
    }
  }
  if (TotalSteps(packs ? &*packs : nullptr) != 0) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "feed \"" + feed().name + "\"",
       .what = "the data ends before the first step",
       .found = absl::StrCat("global batch ", feed().global_batch, ", epochs ",
                             feed().epochs,
                             packs ? absl::StrCat(", ", packs->packs(), " packs") : ""),
       .expected = "at least one whole global batch",
       .action = "use a smaller global batch or hop, or more epochs"});
}

std::optional<std::uint64_t> Planner::TotalSteps(const PackPlan* packs) const {
  std::optional<std::uint64_t> units;
  if (packing()) {
    if (packs->ended()) units = packs->packs();
  } else if (feed().mode == Mode::kEvaluation) {
    units = stream_->total();
  } else if (const auto steps = schedule().total()) {
    return *steps - SkippedBefore(feed(), *steps);
  }
  if (!units) return std::nullopt;
  const std::uint64_t whole = StepsWithin(feed(), *units);
  if (feed().mode != Mode::kEvaluation) return whole - SkippedBefore(feed(), whole);
  return whole + (*units % feed().global_batch != 0 ? 1 : 0);
}

// What `before` counts up to a step, without the steps that are skipped.
template <typename Before>
auto Planner::Delivered(Step step, const Before& before) const {
  const std::uint64_t data_step = DataStep(step);
  auto out = before(data_step);
  for (const SkipSpec& s : feed().skip) {
    if (s.from >= data_step || !out.ok()) break;
    const auto from = before(s.from), to = before(std::min(s.to, data_step));
    if (!from.ok() || !to.ok()) return from.ok() ? to : from;
    for (std::size_t i = 0; i < out->size(); ++i) (*out)[i] -= (*to)[i] - (*from)[i];
  }
  return out;
}

std::uint64_t Planner::SourceSize(std::uint32_t source) const {
  if (feed().mode == Mode::kEvaluation) {
    std::size_t lineage = 0;
    for (std::uint32_t i = 0; i < feed().sources.size(); ++i) {
      if (feed().sources[i].weight.nanos == 0) continue;
      if (i == source) return stream_->lineages()[lineage]->size();
      ++lineage;
    }
    return 0;
  }
  for (const Segment& g : schedule().segments()) {
    const std::int32_t l = g.starts[source].lineage;
    if (l >= 0) return schedule().lineages()[static_cast<std::size_t>(l)]->size();
  }
  return 0;
}

const std::string& Planner::StratumOf(const Sample& sample,
                                      const PackPlan* packs) const {
  const Stream& stream = packing() ? *packs->stream() : *stream_;
  return stream.lineages()[sample.lineage]->strata()[sample.stratum].label;
}

std::uint64_t Planner::DataStep(Step step) const {
  return DataStepOf(feed(), step.value);
}

std::uint64_t Planner::UnitsOf(Step step) const {
  return GlobalBatchAt(feed(), DataStep(step));
}

std::uint64_t Planner::UnitsBeforeStep(Step step) const {
  return UnitsBefore(feed(), DataStep(step));
}

absl::StatusOr<std::vector<std::uint64_t>> Planner::RankUnits(
    const DataRanks& ranks) const {
  std::set<std::uint64_t> batches = {feed().global_batch}, units;
  const std::uint64_t end = packing() ? UINT64_MAX : schedule().total().value_or(UINT64_MAX);
  for (const StageSpec& s : feed().stages) {
    if (s.step < end) batches.insert(GlobalBatchAt(feed(), s.step));
  }
  for (const std::uint64_t batch : batches) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t of_rank,
                              UnitsOfRank(CutRuleOf(feed()), batch, ranks));
    units.insert(of_rank);
  }
  return std::vector<std::uint64_t>(units.begin(), units.end());
}

absl::Status Planner::Ended(Step step, std::uint64_t end) const {
  return MakeError(
      absl::StatusCode::kOutOfRange,
      {.where = "feed \"" + feed().name + "\"",
       .what = "the data has ended",
       .found = absl::StrCat("step ", step.value),
       .expected = absl::StrCat("0 to ", end - 1, " (", end, " steps, epochs ",
                                feed().epochs, ")"),
       .action = "ask for an earlier step, or raise epochs"});
}

absl::StatusOr<GlobalBatch> Planner::PlanStep(Step step, PackPlan* packs) const {
  const std::uint64_t end = TotalSteps(packs).value_or(
      kStepMax - SkippedBefore(feed(), kStepMax));
  if (step.value >= end) return Ended(step, end);
  GlobalBatch batch{step, DataStep(step), UnitsOf(step), {}, {}};
  batch.units.reserve(batch.global_batch);
  batch.samples.reserve(batch.global_batch);
  if (packing()) {
    const std::uint64_t first = UnitsBeforeStep(step);
    PENSTOCK_RETURN_IF_ERROR(packs->Read(first, first + batch.global_batch,
                                         &batch.samples, &batch.units));
    // That the data ends may only be known now.
    const auto total = TotalSteps(packs);
    if (total && step.value >= *total) return Ended(step, *total);
    return batch;
  }
  if (feed().mode == Mode::kEvaluation) {
    const std::uint64_t first = step.value * batch.global_batch;
    stream_->Read(first, std::min(first + batch.global_batch, *stream_->total()),
                  &batch.samples, &batch.units);
    return batch;
  }
  const Segment& segment = schedule().At(batch.data_step);
  const std::uint64_t first = segment.first_position +
                              (batch.data_step - segment.first_step) *
                                  batch.global_batch;
  stream_->Read(first, first + batch.global_batch, &batch.samples, &batch.units);
  // After steps that are skipped no lane goes on.
  if (feed().lanes != 0 && step.value > 0 &&
      DataStep({step.value - 1}) + 1 != batch.data_step) {
    for (std::uint64_t l = 0; l < feed().lanes; ++l)
      batch.samples[l].reset = true;
  }
  return batch;
}

std::vector<std::uint64_t> Planner::CostsOf(const GlobalBatch& batch) const {
  std::vector<std::uint64_t> out;
  out.reserve(batch.units.size());
  for (const Unit& u : batch.units) {
    std::uint64_t cost = 0;
    for (std::uint64_t i = u.first; i < u.first + u.samples; ++i) {
      const Sample& s = batch.samples[i];
      cost += inputs_->cost.Of(CostInputsOf(s, inputs()[s.source].index));
    }
    out.push_back(cost);
  }
  return out;
}

absl::StatusOr<BatchCut> Planner::Cut(const GlobalBatch& batch,
                                      const DataRanks& ranks) const {
  std::vector<std::uint64_t> costs;
  std::vector<std::uint32_t> homes;
  if (feed().cut == CutMode::kBalanced) costs = CostsOf(batch);
  if (feed().cut == CutMode::kLocal) homes = HomesOf(batch, ranks.nodes());
  return CutBatch(CutRuleOf(feed()), batch.global_batch, batch.units.size(),
                  ranks, costs, homes);
}

std::vector<std::uint32_t> Planner::HomesOf(const GlobalBatch& batch,
                                            std::uint32_t nodes) const {
  std::vector<std::uint32_t> out;
  out.reserve(batch.units.size());
  for (const Unit& u : batch.units) {
    const Sample& s = batch.samples[u.first];
    out.push_back(HomeOf(s, inputs()[s.source].index, nodes));
  }
  return out;
}

absl::StatusOr<std::vector<std::uint64_t>> Planner::CountsBefore(
    Step step, PackPlan* packs) const {
  using Counts = absl::StatusOr<std::vector<std::uint64_t>>;
  if (packing()) {
    return Delivered(step, [&](std::uint64_t k) -> Counts {
      return packs->CountsBefore(UnitsBefore(feed(), k));
    });
  }
  if (feed().mode == Mode::kEvaluation) {
    const std::uint64_t units = std::min(UnitsBeforeStep(step), *stream_->total());
    return stream_->CountsBefore(units);
  }
  return Delivered(step, [this](std::uint64_t k) -> Counts {
    return schedule().CountsBefore(k);
  });
}

absl::StatusOr<std::vector<double>> Planner::AskedBefore(Step step,
                                                         PackPlan* packs) const {
  using Asked = absl::StatusOr<std::vector<double>>;
  if (feed().mode == Mode::kEvaluation) return std::vector<double>{};
  return Delivered(step, [&](std::uint64_t k) -> Asked {
    if (!packing()) return schedule().AskedBefore(k);
    PENSTOCK_ASSIGN_OR_RETURN(const auto counts,
                              packs->CountsBefore(UnitsBefore(feed(), k)));
    return packs->stream()->schedule().AskedBefore(
        std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  });
}

}  // namespace penstock::plan
