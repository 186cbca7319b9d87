#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/plan/balance.h"
#include "common/plan/cut.h"
#include "common/plan/mesh.h"
#include "common/plan/weights.h"
#include "common/status/status.h"
#include "server/cli/command.h"
#include "server/cli/plan_mesh.h"
#include "server/cli/plan_shapes.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using dataset::OpenedFeed;

constexpr char kSchema[] = "penstock.plan.v1";

struct PlanFlags {
  std::string feed;
  std::uint64_t step = 0;
  std::uint32_t world = 1;
  std::optional<std::uint32_t> rank;
  std::string mesh, mesh_order = "torchtitan";
  std::uint32_t ranks_per_node = 0;
  std::optional<std::uint64_t> to;
  bool shapes = false;
};

void Print(const std::string& line) { std::printf("%s\n", line.c_str()); }

// What a source has of the mixture at a step; evaluation has none.
std::uint32_t QuotaAt(const OpenedFeed& feed, std::uint32_t source,
                      std::uint64_t step) {
  const plan::Planner& p = *feed.planner;
  if (feed.feed().mode == plan::Mode::kEvaluation) return 0;
  return p.schedule().At(p.DataStep({step})).mixture->quota(source);
}

// The strata of a source in the view that holds at a step.
const std::vector<plan::Lineage::Stratum>* StrataAt(const OpenedFeed& feed,
                                                    std::uint32_t source,
                                                    std::uint64_t step) {
  const plan::Planner& p = *feed.planner;
  if (feed.feed().mode == plan::Mode::kEvaluation ||
      feed.feed().sources[source].strata.by.empty()) {
    return nullptr;
  }
  const auto lineage =
      p.schedule().At(p.DataStep({step})).starts[source].lineage;
  if (lineage < 0) return nullptr;
  return &p.schedule().lineages()[static_cast<std::size_t>(lineage)].strata();
}

Json StrataJson(const OpenedFeed& feed, std::uint32_t source, std::uint64_t step) {
  Json out = Json::array();
  if (const auto* strata = StrataAt(feed, source, step)) {
    for (const auto& s : *strata) {
      out.push_back({{"label", s.label},
                     {"samples", s.view.size()},
                     {"quota", s.quota}});
    }
  }
  return out;
}

Json SourceJson(const OpenedFeed& feed, std::uint32_t i, std::uint64_t step,
                std::uint64_t before) {
  const dataset::OpenedSource& s = feed.sources[i];
  const auto quota = QuotaAt(feed, i, step);
  return {{"name", s.name},
          {"dataset", s.dataset->dir()},
          {"dataset_id", s.dataset->id()},
          {"weight", plan::FormatDecimal(feed.feed().sources[i].weight)},
          {"quota", quota},
          {"quota_of", plan::kMixturePeriod},
          {"captures", s.captures.size()},
          {"samples", feed.planner->SourceSize(i)},
          {"selection_digest", hash::Hex(s.selection)},
          {"strata", StrataJson(feed, i, step)},
          {"samples_before", before}};
}

void PrintHeadJson(const OpenedFeed& feed, const PlanFlags& flags) {
  const auto total = feed.planner->TotalSteps();
  const auto before = feed.planner->CountsBefore({flags.step});
  Json sources = Json::array();
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    sources.push_back(SourceJson(feed, i, flags.step, before[i]));
  }
  Print(Json{{"schema", kSchema},
             {"type", "feed"},
             {"name", feed.feed().name},
             {"step", flags.step},
             {"data_step", feed.planner->DataStep({flags.step})},
             {"world", flags.world},
             {"global_batch", feed.planner->UnitsOf({flags.step})},
             {"microbatch", feed.feed().microbatch},
             {"total_steps", total ? Json(*total) : Json(nullptr)},
             {"order_digest", hash::Hex(feed.order_digest)},
             {"content_digest", hash::Hex(feed.content_digest)},
             {"selection_digest", hash::Hex(feed.selection_digest)},
             {"sources", std::move(sources)},
             {"notes", feed.notes}}
            .dump(-1, ' ', false, Json::error_handler_t::replace));
}

void PrintHeadText(const OpenedFeed& feed, const PlanFlags& flags) {
  const auto total = feed.planner->TotalSteps();
  const std::uint64_t data_step = feed.planner->DataStep({flags.step});
  Print(absl::StrFormat(
      "feed       %s, step %d of %s, global batch %d%s", feed.feed().name,
      flags.step, total ? absl::StrFormat("%d", *total) : "unlimited",
      feed.planner->UnitsOf({flags.step}),
      data_step != flags.step ? absl::StrFormat(", data step %d", data_step) : ""));
  Print("order      " + hash::Hex(feed.order_digest));
  Print("content    " + hash::Hex(feed.content_digest));
  Print("selection  " + hash::Hex(feed.selection_digest));
  const auto before = feed.planner->CountsBefore({flags.step});
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    const dataset::OpenedSource& s = feed.sources[i];
    Print(absl::StrFormat(
        "source     %s: weight %s, %d captures, %d samples, %d drawn before, "
        "dataset %s",
        s.name, plan::FormatQuota(QuotaAt(feed, i, flags.step)),
        s.captures.size(), feed.planner->SourceSize(i), before[i],
        s.dataset->id().substr(0, 12)));
    if (const auto* strata = StrataAt(feed, i, flags.step)) {
      for (const auto& g : *strata) {
        Print(absl::StrFormat("  group    \"%s\": weight %s, %d samples", g.label,
                              plan::FormatQuota(g.quota), g.view.size()));
      }
    }
  }
  for (const std::string& note : feed.notes) Print("note       " + note);
}

Json SampleJson(const OpenedFeed& feed, const plan::Sample& s,
                std::uint64_t item) {
  const auto& source = feed.sources[s.source];
  return {
      {"item", item},
      {"id", feed.IdOf(s)},
      {"source", source.name},
      {"epoch", s.epoch.value},
      {"index", s.index},
      {"capture", hash::Hex(source.dataset->index().captures[s.capture].id)},
      {"track", s.track},
      {"start_frame", s.start_frame},
      {"stride", s.stride},
      {"frames", s.frames}};
}

struct DataRank {
  std::uint32_t world, rank;
};

void PrintRank(const OpenedFeed& feed, const plan::GlobalBatch& batch,
               DataRank at, const plan::BatchCut& cut, bool json) {
  const std::vector<std::uint64_t>& items = cut.samples[at.rank];
  const std::uint32_t rank = at.rank;
  const std::uint64_t masked = cut.units - items.size();
  Json samples = Json::array();
  for (std::uint64_t item : items) {
    const plan::Sample& s = batch.samples[item];
    if (json) {
      samples.push_back(SampleJson(feed, s, item));
    } else {
      Print(
          absl::StrFormat("rank %-5d item %-5d %s", rank, item, feed.IdOf(s)));
    }
  }
  if (!json && masked > 0) {
    Print(absl::StrFormat("rank %-5d %d masked", rank, masked));
  }
  if (!json) return;
  Print(Json{{"schema", kSchema},
             {"type", "rank"},
             {"step", batch.step.value},
             {"data_step", batch.data_step},
             {"rank", rank},
             {"units", cut.units},
             {"masked", masked},
             {"global_samples", batch.samples.size()},
             {"loss_scale", plan::LossScale(items.size(), batch.samples.size(),
                                            at.world)},
             {"samples", std::move(samples)}}
            .dump(-1, ' ', false, Json::error_handler_t::replace));
}

// What the mixture was asked for and what it gave in the steps [step, to).
absl::Status PrintRange(const OpenedFeed& feed, const PlanFlags& flags, bool json) {
  const plan::Planner& p = *feed.planner;
  const std::uint64_t end = std::min(*flags.to, p.TotalSteps().value_or(*flags.to));
  if (end <= flags.step) {
    return MakeError(absl::StatusCode::kOutOfRange,
                     {.where = "--to",
                      .what = "no steps in the range",
                      .found = absl::StrFormat("%d to %d", flags.step, end),
                      .expected = "an end above --step and within the data",
                      .action = "correct --to"});
  }
  const auto before = p.CountsBefore({flags.step}), after = p.CountsBefore({end});
  auto asked_before = p.AskedBefore({flags.step}), asked_after = p.AskedBefore({end});
  asked_before.resize(after.size());  // evaluation asks for what there is
  asked_after.resize(after.size());
  for (std::uint32_t i = 0; i < after.size(); ++i) {
    const double asked = asked_after[i] - asked_before[i];
    const std::uint64_t got = after[i] - before[i];
    if (json) {
      Print(Json{{"schema", kSchema}, {"type", "range"}, {"from", flags.step},
                 {"to", end}, {"source", feed.sources[i].name},
                 {"asked", asked}, {"realised", got}}
                .dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      Print(absl::StrFormat("steps %d to %d  %s: asked %.2f samples, realised %d",
                            flags.step, end, feed.sources[i].name, asked, got));
    }
  }
  return absl::OkStatus();
}

// How even the predicted costs are over the ranks, and how even they can be.
void PrintBalance(const OpenedFeed& feed, const plan::GlobalBatch& batch,
                  const plan::BatchCut& cut, bool json) {
  std::vector<std::uint32_t> ranks(batch.samples.size());
  for (std::uint32_t r = 0; r < cut.samples.size(); ++r) {
    for (const std::uint64_t i : cut.samples[r]) ranks[i] = r;
  }
  const auto report = plan::ReportBalance(
      feed.planner->CostsOf(batch), ranks,
      static_cast<std::uint32_t>(cut.samples.size()));
  if (json) {
    Print(Json{{"schema", kSchema},
               {"type", "balance"},
               {"cost", feed.feed().cost},
               {"max_over_mean", report.max_over_mean},
               {"lower_bound", report.lower_bound}}
              .dump());
    return;
  }
  Print(absl::StrFormat("cost       %s: max/mean over ranks %.4f, lower bound %.4f",
                        feed.feed().cost, report.max_over_mean,
                        report.lower_bound));
}

absl::Status RunPlan(PlanFlags flags, bool json) {
  std::optional<plan::Mesh> mesh;
  if (!flags.mesh.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(const plan::MeshOrder order,
                              plan::ParseMeshOrder(flags.mesh_order));
    PENSTOCK_ASSIGN_OR_RETURN(mesh, plan::ParseMesh(flags.mesh, order));
    flags.world = mesh->DataWorld();
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRank(flags.rank.value_or(0), flags.world));
  PENSTOCK_ASSIGN_OR_RETURN(OpenedFeed feed, dataset::OpenFeedFile(flags.feed));
  if (flags.shapes) return PrintShapes(feed, flags.world, json);
  PENSTOCK_ASSIGN_OR_RETURN(plan::GlobalBatch batch,
                            feed.planner->PlanStep({flags.step}));
  PENSTOCK_ASSIGN_OR_RETURN(const plan::BatchCut cut,
                            feed.planner->Cut(batch, flags.world));
  json ? PrintHeadJson(feed, flags) : PrintHeadText(feed, flags);
  PrintBalance(feed, batch, cut, json);
  if (mesh) PrintMesh(*mesh, flags.ranks_per_node, json);
  if (flags.to) return PrintRange(feed, flags, json);
  for (std::uint32_t r = 0; r < flags.world; ++r) {
    if (flags.rank && *flags.rank != r) continue;
    PrintRank(feed, batch, {flags.world, r}, cut, json);
  }
  return absl::OkStatus();
}

}  // namespace

void AddPlanCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand(
      "plan", "what each rank gets at a step; reads no shard");
  auto flags = std::make_shared<PlanFlags>();
  sub->add_option("--feed", flags->feed, "feed file (YAML)")->required();
  auto* step = sub->add_option("--step", flags->step, "step, from 0")
                   ->check(WholeNumber);
  sub->add_option("--world", flags->world, "data-parallel ranks")
      ->check(CLI::Range(1u, 1u << 20));
  sub->add_option("--rank", flags->rank, "only this data rank")
      ->check(WholeNumber);
  sub->add_option("--to", flags->to,
                  "print the samples asked for and realised by source in the "
                  "steps from --step to this one instead")
      ->check(WholeNumber);
  sub->add_option("--mesh", flags->mesh,
                  "axes and sizes instead of --world, as dp=4,cp=2,tp=2")
      ->excludes("--world");
  sub->add_option("--mesh-order", flags->mesh_order,
                  "torchtitan, megatron_tp_pp_dp or plain");
  sub->add_option("--ranks-per-node", flags->ranks_per_node,
                  "prints how many nodes decode the same share");
  auto* shapes = sub->add_flag("--shapes", flags->shapes,
                               "print every shape of a microbatch instead");
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback([flags, step, shapes, &context] {
    if (step->empty() && shapes->empty()) throw CLI::RequiredError("--step");
    const absl::Status status = RunPlan(*flags, context.json);
    context.exit_code = status.ok() ? 0 : PrintError(status);
  });
}

}  // namespace penstock::cli
