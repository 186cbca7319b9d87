#include "server/cli/plan_head.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/plan/pack_fill.h"
#include "common/plan/weights.h"
#include "common/status/status.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using dataset::OpenedFeed;

void Print(const std::string& line) { std::printf("%s\n", line.c_str()); }

// The mixture that holds at the first unit of a step; none in evaluation.
struct Holding {
  std::shared_ptr<const plan::Stream> stream;
  const plan::Segment* segment = nullptr;  // of the stream's schedule
};

absl::StatusOr<Holding> HoldingAt(const OpenedFeed& feed, std::uint64_t step) {
  const plan::Planner& p = *feed.planner;
  if (feed.feed().mode == plan::Mode::kEvaluation) return Holding{};
  if (feed.packs == nullptr) {
    return Holding{p.stream(), &p.schedule().At(p.DataStep({step}))};
  }
  // Stages begin where windows do: by the samples that were packed before.
  const std::uint64_t first = p.UnitsBeforeStep({step});
  const auto find = [&](plan::PackPlan* packs) -> absl::StatusOr<Holding> {
    PENSTOCK_ASSIGN_OR_RETURN(const auto counts, packs->CountsBefore(first));
    const auto position =
        std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    return Holding{packs->stream(), &packs->stream()->schedule().At(position)};
  };
  return feed.packs->With(first, find);
}

std::uint32_t QuotaOf(const Holding& holding, std::uint32_t source) {
  return holding.segment == nullptr ? 0 : holding.segment->mixture->quota(source);
}

// 0 without lanes.
std::uint32_t LanesOf(const Holding& holding, std::uint32_t source) {
  return holding.segment == nullptr || !holding.segment->deal
             ? 0
             : holding.segment->deal->LanesOf(source);
}

// Null without strata.
const std::vector<plan::Lineage::Stratum>* StrataOf(const OpenedFeed& feed,
                                                    const Holding& holding,
                                                    std::uint32_t source) {
  if (holding.segment == nullptr || feed.feed().sources[source].strata.by.empty()) {
    return nullptr;
  }
  const auto lineage = holding.segment->starts[source].lineage;
  if (lineage < 0) return nullptr;
  return &holding.stream->lineages()[static_cast<std::size_t>(lineage)]->strata();
}

Json StrataJson(const OpenedFeed& feed, const Holding& holding,
                std::uint32_t source) {
  Json out = Json::array();
  if (const auto* strata = StrataOf(feed, holding, source)) {
    for (const auto& s : *strata) {
      out.push_back({{"label", s.label},
                     {"samples", s.pool.samples()},
                     {"quota", s.quota}});
    }
  }
  return out;
}

Json SourceJson(const OpenedFeed& feed, const Holding& holding, std::uint32_t i,
                std::uint64_t before) {
  const dataset::OpenedSource& s = feed.sources[i];
  const auto quota = QuotaOf(holding, i);
  return {{"name", s.name},
          {"dataset", s.dataset->dir()},
          {"dataset_id", s.dataset->id()},
          {"weight", plan::FormatDecimal(feed.feed().sources[i].weight)},
          {"quota", quota},
          {"quota_of", plan::kMixturePeriod},
          {"lanes", LanesOf(holding, i)},
          {"captures", s.captures.size()},
          {"samples", feed.planner->SourceSize(i)},
          {"selection_digest", hash::Hex(s.selection)},
          {"strata", StrataJson(feed, holding, i)},
          {"samples_before", before}};
}

void PrintJson(const OpenedFeed& feed, const Holding& holding, std::uint64_t step,
               std::uint32_t world,
               const std::vector<std::uint64_t>& before,
               const std::optional<plan::PackFill>& fill) {
  const auto total = feed.TotalSteps();
  Json sources = Json::array();
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    sources.push_back(SourceJson(feed, holding, i, before[i]));
  }
  Json line{{"schema", kPlanSchema},
             {"type", "feed"},
             {"name", feed.feed().name},
             {"step", step},
             {"data_step", feed.planner->DataStep({step})},
             {"world", world},
             {"global_batch", feed.planner->UnitsOf({step})},
             {"microbatch", feed.feed().microbatch},
             {"total_steps", total ? Json(*total) : Json(nullptr)},
             {"order_digest", hash::Hex(feed.order_digest)},
             {"content_digest", hash::Hex(feed.content_digest)},
             {"selection_digest", hash::Hex(feed.selection_digest)},
             {"sources", std::move(sources)},
             {"notes", feed.notes}};
  if (fill) {
    line["packing"] = {{"tokens", feed.feed().packing.tokens},
                       {"window", feed.feed().packing.window},
                       {"expected_fill", fill->fill},
                       {"proposed_tokens",
                        fill->proposed != 0 ? Json(fill->proposed) : Json(nullptr)}};
  }
  Print(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PrintText(const OpenedFeed& feed, const Holding& holding, std::uint64_t step,
               const std::vector<std::uint64_t>& before,
               const std::optional<plan::PackFill>& fill) {
  const auto total = feed.TotalSteps();
  const std::uint64_t data_step = feed.planner->DataStep({step});
  Print(absl::StrFormat(
      "feed       %s, step %d of %s, global batch %d%s", feed.feed().name,
      step, total ? absl::StrFormat("%d", *total) : "unlimited",
      feed.planner->UnitsOf({step}),
      data_step != step ? absl::StrFormat(", data step %d", data_step) : ""));
  Print("order      " + hash::Hex(feed.order_digest));
  Print("content    " + hash::Hex(feed.content_digest));
  Print("selection  " + hash::Hex(feed.selection_digest));
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    const dataset::OpenedSource& s = feed.sources[i];
    Print(absl::StrFormat(
        "source     %s: weight %s, %d captures, %d samples, %d drawn before, "
        "dataset %s",
        s.name, plan::FormatQuota(QuotaOf(holding, i)),
        s.captures.size(), feed.planner->SourceSize(i), before[i],
        s.dataset->id().substr(0, 12)));
    if (feed.feed().lanes != 0) {
      Print(absl::StrFormat("  lanes    %d of %d", LanesOf(holding, i),
                            feed.feed().lanes));
    }
    if (const auto* strata = StrataOf(feed, holding, i)) {
      for (const auto& g : *strata) {
        Print(absl::StrFormat("  group    \"%s\": weight %s, %d samples", g.label,
                              plan::FormatQuota(g.quota), g.pool.samples()));
      }
    }
  }
  if (fill) {
    Print(absl::StrFormat(
        "packing    %d tokens, windows of %d samples, expected fill %.4f%s",
        feed.feed().packing.tokens, feed.feed().packing.window, fill->fill,
        fill->proposed == 0 ? ""
                            : absl::StrFormat("; tokens: %d would fill at least %.2f",
                                              fill->proposed, plan::kFillWanted)));
  }
  for (const std::string& note : feed.notes) Print("note       " + note);
}

}  // namespace

absl::Status PrintPlanHead(const OpenedFeed& feed, std::uint64_t step,
                           std::uint32_t world, bool json) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto before, feed.CountsBefore({step}));
  PENSTOCK_ASSIGN_OR_RETURN(const Holding holding, HoldingAt(feed, step));
  std::optional<plan::PackFill> fill;
  if (feed.planner->packing()) {
    PENSTOCK_ASSIGN_OR_RETURN(const plan::PackPlan packs, feed.planner->MakePacks());
    PENSTOCK_ASSIGN_OR_RETURN(
        fill, plan::ExpectedFill(*feed.planner->plan_inputs(), packs));
  }
  if (json) {
    PrintJson(feed, holding, step, world, before, fill);
  } else {
    PrintText(feed, holding, step, before, fill);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> RangeEnd(const OpenedFeed& feed, std::uint64_t from,
                                       std::uint64_t to) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto total,
                            feed.ReachStep({std::max<std::uint64_t>(to, 1) - 1}));
  const std::uint64_t end = std::min(to, total.value_or(to));
  if (end > from) return end;
  return MakeError(absl::StatusCode::kOutOfRange,
                   {.where = "--to",
                    .what = "no steps in the range",
                    .found = absl::StrFormat("%d to %d", from, end),
                    .expected = "an end above --step and within the data",
                    .action = "correct --step or --to"});
}

}  // namespace penstock::cli
