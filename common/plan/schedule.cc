#include "common/plan/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/stream.h"
#include "common/plan/tokens.h"
#include "common/plan/weights.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

__extension__ using Wide = unsigned __int128;

std::string NameOf(const SourceSpec& s) {
  return absl::StrCat("source \"", s.name, "\" (", s.dataset, ")");
}

}  // namespace

// Lays the stages out one after the other, and cuts a stage where a source is
// exhausted.
class Schedule::Builder {
 public:
  // `before` has lineages that were made, or is null.
  Builder(const PlanInputs& inputs, const Schedule* before)
      : inputs_(inputs),
        feed_(inputs.feed),
        before_(before),
        states_(feed_.sources.size()) {
    for (std::size_t i = 0; i < feed_.sources.size(); ++i) {
      states_[i].weight = feed_.sources[i].weight;
      states_[i].view = feed_.sources[i].view;
    }
  }

  absl::StatusOr<Schedule> InSteps() {
    std::vector<std::uint64_t> starts;
    for (const StageSpec& s : feed_.stages) starts.push_back(s.step);
    batch_ = feed_.global_batch;
    in_steps_ = true;
    return Lay(starts, kStepMax);
  }

  absl::StatusOr<Schedule> InUnits(std::span<const std::uint64_t> starts) {
    return Lay(starts, kUnitsMax);
  }

 private:
  struct State {
    Decimal weight;
    ViewSpec view;
    bool exhausted = false;
    std::int32_t lineage = -1;
    std::uint64_t draws = 0, epoch = 0;
  };
  static constexpr std::uint64_t kUnitsMax = std::uint64_t{1} << 62;

  absl::StatusOr<Schedule> Lay(std::span<const std::uint64_t> starts,
                               std::uint64_t end) {
    for (std::size_t i = 0; i <= starts.size() && !out_.total_; ++i) {
      if (i > 0) Enter(feed_.stages[i - 1]);
      PENSTOCK_RETURN_IF_ERROR(LayStage(i < starts.size() ? starts[i] : end));
    }
    return std::move(out_);
  }

  void Enter(const StageSpec& stage) {
    if (in_steps_ && stage.global_batch != 0) batch_ = stage.global_batch;
    for (const StageSource& change : stage.sources) {
      for (std::size_t i = 0; i < states_.size(); ++i) {
        if (feed_.sources[i].name != change.name) continue;
        State& s = states_[i];
        if (change.weight) s.weight = *change.weight;
        if (!change.view || *change.view == s.view) continue;
        s.view = *change.view;
        if (s.lineage < 0) continue;
        if (feed_.lanes != 0) {  // a deal of its own counts the epochs
          s.lineage = -1;
          continue;
        }
        // Another view begins a new epoch.
        s.epoch += Of(s).PassesBegun(s.draws);
        s.draws = 0;
        s.lineage = -1;
      }
    }
  }

  const Lineage& Of(const State& s) const {
    return *out_.lineages_[static_cast<std::size_t>(s.lineage)];
  }

  // Segments from step_ to `end` (not in it).
  absl::Status LayStage(std::uint64_t end) {
    while (step_ < end) {
      PENSTOCK_ASSIGN_OR_RETURN(Segment segment, Begin());
      if (out_.total_) return absl::OkStatus();
      const auto [at, source] = FirstExhausted(segment);
      const std::uint64_t next = std::min(at, end);
      if (next > step_) Append(std::move(segment), next);
      if (next == end) return absl::OkStatus();
      if (feed_.exhaustion != Exhaustion::kRenormalise) {
        out_.total_ = next;
        return absl::OkStatus();
      }
      states_[source].exhausted = true;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Segment> Begin() {
    Segment segment{.first_step = step_,
                    .global_batch = batch_,
                    .first_position = position_};
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Decimal> weights, Weights());
    const bool any = std::any_of(weights.begin(), weights.end(),
                                 [](const Decimal& w) { return w.nanos > 0; });
    if (!any) {  // CheckFeed refused zero weights: all are exhausted
      out_.total_ = step_;
      return segment;
    }
    const WeightRounding rounding = RoundWeights(weights);
    if (!rounding.ok()) return Refused(rounding);
    PENSTOCK_RETURN_IF_ERROR(CheckRoom());
    segment.mixture = MixtureOf(rounding.quotas);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (rounding.quotas[i] > 0) PENSTOCK_RETURN_IF_ERROR(MakeLineage(i));
    }
    if (feed_.lanes != 0) {
      PENSTOCK_RETURN_IF_ERROR(DealLanes(rounding.quotas));
      segment.deal = deal_;
      segment.chunks = chunks_;
    }
    for (const State& s : states_) {
      segment.starts.push_back({s.lineage, s.draws, s.epoch});
    }
    return segment;
  }

  // Lanes go on as long as sources, their lanes and their views are the same.
  absl::Status DealLanes(const std::vector<std::uint32_t>& quotas) {
    const auto lanes =
        LaneDeal::LanesOf(quotas, static_cast<std::uint32_t>(feed_.lanes));
    std::vector<LaneDeal::Source> sources(states_.size());
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (quotas[i] > 0 && lanes[i] == 0) return NoLane(i, quotas[i]);
      if (quotas[i] > 0) {
        sources[i].lineage =
            out_.lineages_[static_cast<std::size_t>(states_[i].lineage)];
      }
    }
    const auto same = [&](std::size_t i) {
      return dealt_[i].lineage == sources[i].lineage &&
             deal_->LanesOf(static_cast<std::uint32_t>(i)) == lanes[i];
    };
    bool goes_on = deal_ != nullptr;
    for (std::size_t i = 0; i < states_.size() && goes_on; ++i)
      goes_on = same(i);
    if (goes_on) return absl::OkStatus();
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (deal_ != nullptr) {
        states_[i].epoch +=
            deal_->PassesBegun(static_cast<std::uint32_t>(i), chunks_);
      }
      sources[i].epoch = states_[i].epoch;
    }
    PENSTOCK_ASSIGN_OR_RETURN(LaneDeal deal,
                              LaneDeal::Create(feed_, lanes, sources));
    deal_ = std::make_shared<const LaneDeal>(std::move(deal));
    dealt_ = std::move(sources);
    chunks_ = 0;
    return absl::OkStatus();
  }

  absl::Status NoLane(std::size_t source, std::uint32_t quota) const {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrCat("feed \"", feed_.name, "\", data step ", step_,
                               ", ", NameOf(feed_.sources[source])),
         .what = "a positive weight that gets no lane",
         .found =
             absl::StrCat(FormatQuota(quota), " of ", feed_.lanes, " lanes"),
         .expected = "at least one lane for each source with a weight",
         .action = "use more lanes, raise the weight, or set it to 0"});
  }

  // Of this segment, in units.
  absl::StatusOr<std::vector<Decimal>> Weights() {
    std::vector<Decimal> weights;
    for (const State& s : states_) {
      weights.push_back(s.exhausted ? Decimal{} : s.weight);
    }
    if (feed_.per == Per::kSamples) return weights;
    std::vector<std::uint64_t> tokens(states_.size());
    std::uint64_t least = UINT64_MAX;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (weights[i].nanos == 0) continue;
      PENSTOCK_RETURN_IF_ERROR(MakeLineage(i));
      tokens[i] = MeanTokens(inputs_, static_cast<std::uint32_t>(i), Of(states_[i]));
      least = std::min(least, tokens[i]);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (weights[i].nanos == 0) continue;
      const Wide share = Wide{weights[i].nanos} * least / tokens[i];
      weights[i].nanos = std::max<std::uint64_t>(static_cast<std::uint64_t>(share), 1);
    }
    return weights;
  }

  absl::Status Refused(const WeightRounding& rounding) const {
    Problem problem = rounding.fault.problem;
    problem.where = absl::StrCat(
        "feed \"", feed_.name, "\", data step ", step_,
        rounding.fault.source < 0
            ? ""
            : ", " + NameOf(feed_.sources[static_cast<std::size_t>(
                         rounding.fault.source)]));
    return MakeError(absl::StatusCode::kInvalidArgument, problem);
  }

  absl::Status CheckRoom() const {
    if (out_.segments_.size() < kSegmentsMax) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "feed \"" + feed_.name + "\"",
         .what = "stages and exhausted sources make too many mixtures",
         .found = absl::StrCat("more than ", kSegmentsMax),
         .expected = absl::StrCat("at most ", kSegmentsMax),
         .action = "use fewer sources with a limit, or exhaustion: stop"});
  }

  std::shared_ptr<const Mixture> MixtureOf(
      const std::vector<std::uint32_t>& quotas) {
    if (quotas != quotas_) {
      quotas_ = quotas;
      mixture_ = std::make_shared<const Mixture>(quotas);
    }
    return mixture_;
  }

  absl::Status MakeLineage(std::size_t i) {
    State& s = states_[i];
    if (s.lineage >= 0) return absl::OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(auto lineage, Made(i, s.view));
    s.lineage = static_cast<std::int32_t>(out_.lineages_.size());
    out_.lineages_.push_back(std::move(lineage));
    out_.views_.emplace_back(static_cast<std::uint32_t>(i), s.view);
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const Lineage>> Made(std::size_t i,
                                                      const ViewSpec& view) const {
    if (before_ != nullptr) {
      const auto& views = before_->views_;
      const auto at = std::find(views.begin(), views.end(),
                                std::pair(static_cast<std::uint32_t>(i), view));
      if (at != views.end()) {
        return before_->lineages_[static_cast<std::size_t>(at - views.begin())];
      }
    }
    if (auto made = inputs_.sources[i].Made(view); made != nullptr) return made;
    const SourceSpec& spec = feed_.sources[i];
    PENSTOCK_ASSIGN_OR_RETURN(Lineage lineage,
                              Lineage::Create(view, spec.strata, feed_.buckets,
                                              inputs_.sources[i], NameOf(spec)));
    return std::make_shared<const Lineage>(std::move(lineage));
  }

  // The first data step that would draw a source beyond its limit, and which.
  std::pair<std::uint64_t, std::size_t> FirstExhausted(const Segment& g) const {
    std::pair<std::uint64_t, std::size_t> first{UINT64_MAX, 0};
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const std::uint64_t limit = LimitOf(feed_, feed_.sources[i]);
      const auto source = static_cast<std::uint32_t>(i);
      const std::uint32_t quota = g.mixture->quota(source);
      if (limit == 0 || quota == 0) continue;
      const State& s = states_[i];
      if (g.deal) {
        const std::uint64_t chunks =
            s.epoch < limit ? g.deal->ChunksWithin(source, limit - s.epoch) : 0;
        const std::uint64_t left = chunks - std::min(chunks, g.chunks);
        first = std::min(
            first, {g.first_step + left / (g.global_batch / feed_.lanes), i});
        continue;
      }
      std::uint64_t left = 0;
      if (s.epoch < limit) {
        const std::uint64_t within = Of(s).DrawsWithin(limit - s.epoch);
        left = within - std::min(within, s.draws);
      }
      if (left / quota >= Mixture::kPeriodsMax) continue;
      const std::uint64_t step =
          g.first_step + g.mixture->PositionOf(source, left) / g.global_batch;
      first = std::min(first, {step, i});
    }
    return first;
  }

  void Append(Segment segment, std::uint64_t next) {
    const std::uint64_t units = (next - step_) * segment.global_batch;
    if (segment.deal) {
      chunks_ += units / feed_.lanes;
    } else {
      for (std::size_t i = 0; i < states_.size(); ++i) {
        states_[i].draws +=
            segment.mixture->CountBefore(static_cast<std::uint32_t>(i), units);
      }
    }
    position_ += units;
    step_ = next;
    out_.segments_.push_back(std::move(segment));
  }

  const PlanInputs& inputs_;
  const FeedSpec& feed_;
  const Schedule* before_;
  std::vector<State> states_;
  bool in_steps_ = false;
  std::uint64_t batch_ = 1, step_ = 0, position_ = 0;
  std::vector<std::uint32_t> quotas_;  // of mixture_
  std::shared_ptr<const Mixture> mixture_;
  std::shared_ptr<const LaneDeal> deal_;  // the latest
  std::vector<LaneDeal::Source> dealt_;   // its sources
  std::uint64_t chunks_ = 0;              // that each of its lanes has given
  Schedule out_;
};

absl::StatusOr<Schedule> Schedule::Create(const PlanInputs& inputs) {
  return Builder(inputs, nullptr).InSteps();
}

absl::StatusOr<Schedule> Schedule::CreateInUnits(
    const PlanInputs& inputs, std::span<const std::uint64_t> starts,
    const Schedule* before) {
  return Builder(inputs, before).InUnits(starts);
}

const Segment& Schedule::At(std::uint64_t data_step) const {
  const auto after = std::upper_bound(
      segments_.begin(), segments_.end(), data_step,
      [](std::uint64_t k, const Segment& s) { return k < s.first_step; });
  return *std::prev(after);
}

std::vector<std::uint64_t> Schedule::CountsBefore(std::uint64_t data_step) const {
  std::vector<std::uint64_t> counts(segments_[0].starts.size());
  EachBefore(data_step, [&](const Segment& g, std::uint64_t units) {
    for (std::uint32_t s = 0; s < counts.size(); ++s) {
      counts[s] += g.CountBefore(s, units);
    }
  });
  return counts;
}

std::vector<double> Schedule::AskedBefore(std::uint64_t data_step) const {
  std::vector<double> asked(segments_[0].starts.size());
  EachBefore(data_step, [&](const Segment& g, std::uint64_t units) {
    for (std::uint32_t s = 0; s < asked.size(); ++s) {
      asked[s] += static_cast<double>(units) * g.ShareOf(s);
    }
  });
  return asked;
}

}  // namespace penstock::plan
