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
#include "common/status/status.h"
#include "server/cli/command.h"
#include "server/cli/counting.h"
#include "server/cli/plan_head.h"
#include "server/cli/plan_heatmap.h"
#include "server/cli/plan_home.h"
#include "server/cli/plan_mesh.h"
#include "server/cli/plan_shapes.h"
#include "server/dataset/plan_source.h"
#include "server/pipeline/batch_layout.h"
#include "server/pipeline/planned_feed.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using dataset::OpenedFeed;

struct PlanFlags {
  std::string feed;
  std::uint64_t step = 0;
  std::uint32_t world = 1;
  std::optional<std::uint32_t> rank;
  std::string mesh, mesh_order = "torchtitan";
  std::uint32_t ranks_per_node = 0;
  std::string speeds, cp = "off";
  std::optional<std::uint64_t> to;
  bool shapes = false;
  std::optional<std::string> heatmap;
};

void Print(const std::string& line) { std::printf("%s\n", line.c_str()); }

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
      {"frames", s.frames},
      {"tokens", s.tokens},
      {"reset", s.reset}};
}

struct DataRank {
  std::uint32_t world, rank;
};

void PrintUnit(const OpenedFeed& feed, const plan::GlobalBatch& batch,
               std::uint32_t rank, std::uint64_t item) {
  const plan::Unit& u = batch.units[item];
  std::uint64_t tokens = 0;
  for (std::uint32_t k = 0; k < u.samples; ++k) {
    const plan::Sample& s = batch.samples[u.first + k];
    tokens += s.tokens;
    Print(absl::StrFormat("rank %-5d item %-5d %s", rank, item, feed.IdOf(s)));
  }
  if (!feed.feed().buckets.empty()) {
    Print(absl::StrFormat("rank %-5d item %-5d is %d samples of bucket %s",
                          rank, item, u.samples,
                          feed.feed().buckets[u.shape].name));
  } else if (feed.planner->packing()) {
    Print(absl::StrFormat(
        "rank %-5d item %-5d is a pack of %d samples, %d tokens", rank, item,
        u.samples, tokens));
  }
}

void PrintRank(const OpenedFeed& feed, const plan::GlobalBatch& batch,
               DataRank at, const plan::BatchCut& cut, bool json) {
  const std::vector<std::uint64_t>& items = cut.ranks[at.rank];
  const std::uint64_t masked = cut.units - items.size();
  if (!json) {
    for (const std::uint64_t item : items)
      PrintUnit(feed, batch, at.rank, item);
    if (masked > 0)
      Print(absl::StrFormat("rank %-5d %d masked", at.rank, masked));
    return;
  }
  Json samples = Json::array(), shapes = Json::array();
  for (const std::uint64_t item : items) {
    const plan::Unit& u = batch.units[item];
    for (std::uint32_t k = 0; k < u.samples; ++k) {
      samples.push_back(SampleJson(feed, batch.samples[u.first + k], item));
    }
    if (!feed.feed().buckets.empty()) {
      shapes.push_back(feed.feed().buckets[u.shape].name);
    }
  }
  const std::uint64_t weight = plan::WeightOf(batch, items);
  const std::uint64_t whole = plan::WeightOf(batch);
  Json line{{"schema", kPlanSchema},
            {"type", "rank"},
            {"step", batch.step.value},
            {"data_step", batch.data_step},
            {"rank", at.rank},
            {"units", cut.units},
            {"masked", masked},
            {"global_samples", batch.samples.size()},
            {"loss_scale", plan::LossScale(weight, whole, at.world)},
            {"samples", std::move(samples)}};
  if (!feed.feed().length.empty()) {
    line["tokens"] = weight;
    line["global_tokens"] = whole;
  }
  if (!shapes.empty()) line["buckets"] = std::move(shapes);
  Print(line.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// What the mixture was asked for and what it gave in the steps [step, to).
absl::Status PrintRange(const OpenedFeed& feed, const PlanFlags& flags, bool json) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t end,
                            RangeEnd(feed, flags.step, *flags.to));
  PENSTOCK_ASSIGN_OR_RETURN(const auto before, feed.CountsBefore({flags.step}));
  PENSTOCK_ASSIGN_OR_RETURN(const auto after, feed.CountsBefore({end}));
  PENSTOCK_ASSIGN_OR_RETURN(auto asked_before, feed.AskedBefore({flags.step}));
  PENSTOCK_ASSIGN_OR_RETURN(auto asked_after, feed.AskedBefore({end}));
  asked_before.resize(after.size());  // evaluation asks for what there is
  asked_after.resize(after.size());
  for (std::uint32_t i = 0; i < after.size(); ++i) {
    const double asked = asked_after[i] - asked_before[i];
    const std::uint64_t got = after[i] - before[i];
    if (json) {
      Print(Json{
          {"schema", kPlanSchema},
          {"type", "range"},
          {"from", flags.step},
          {"to", end},
          {"source", feed.sources[i].name},
          {"asked", asked},
          {"realised",
           got}}.dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      Print(absl::StrFormat("steps %d to %d  %s: asked %.2f samples, realised %d",
                            flags.step, end, feed.sources[i].name, asked, got));
    }
  }
  return absl::OkStatus();
}

// How even the predicted costs are over the ranks, and how even they can be.
void PrintBalance(const OpenedFeed& feed, const plan::GlobalBatch& batch,
                  const plan::BatchCut& cut, const plan::DataRanks& world,
                  bool json) {
  std::vector<std::uint32_t> ranks(batch.units.size());
  for (std::uint32_t r = 0; r < cut.ranks.size(); ++r) {
    for (const std::uint64_t i : cut.ranks[r]) ranks[i] = r;
  }
  const auto report = plan::ReportBalance(feed.planner->CostsOf(batch), ranks,
                                          world.world, world.speeds);
  if (json) {
    Print(Json{{"schema", kPlanSchema},
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

// --ranks-per-node counts ranks of the mesh, where there is one.
absl::StatusOr<plan::DataRanks> DataRanksOf(
    const OpenedFeed& feed, const PlanFlags& flags,
    const std::optional<plan::Mesh>& mesh) {
  plan::DataRanks out{flags.world, flags.ranks_per_node};
  PENSTOCK_ASSIGN_OR_RETURN(out.speeds,
                            plan::ParseSpeeds(flags.speeds, flags.world));
  if (!mesh || feed.feed().cut != plan::CutMode::kLocal) return out;
  PENSTOCK_ASSIGN_OR_RETURN(
      out.ranks_per_node, plan::DataRanksPerNode(*mesh, flags.ranks_per_node));
  return out;
}

absl::Status RunPlan(PlanFlags flags, bool json) {
  std::optional<plan::Mesh> mesh;
  plan::CpCut cp;
  PENSTOCK_ASSIGN_OR_RETURN(cp.mode, plan::ParseCpMode(flags.cp));
  if (!flags.mesh.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(const plan::MeshOrder order,
                              plan::ParseMeshOrder(flags.mesh_order));
    PENSTOCK_ASSIGN_OR_RETURN(mesh, plan::ParseMesh(flags.mesh, order));
    flags.world = mesh->DataWorld();
    cp.size = mesh->SizeOf(plan::AxisName::kCp);
  }
  PENSTOCK_RETURN_IF_ERROR(CheckRank(flags.rank.value_or(0), flags.world));
  PENSTOCK_ASSIGN_OR_RETURN(OpenedFeed feed, dataset::OpenFeedFile(flags.feed));
  ShowCounting(feed);
  PENSTOCK_ASSIGN_OR_RETURN(const plan::DataRanks ranks,
                            DataRanksOf(feed, flags, mesh));
  if (!cp.off()) {
    PENSTOCK_RETURN_IF_ERROR(pipeline::CheckCpCut(*pipeline::PlanOf(feed), cp));
  }
  if (flags.shapes) return PrintShapes(feed, ranks, cp, json);
  if (flags.heatmap) {
    return PrintHeatmap(feed, {*flags.heatmap, flags.step, flags.to, ranks}, json);
  }
  PENSTOCK_ASSIGN_OR_RETURN(plan::GlobalBatch batch,
                            feed.PlanStep({flags.step}));
  PENSTOCK_ASSIGN_OR_RETURN(const plan::BatchCut cut,
                            feed.planner->Cut(batch, ranks));
  PENSTOCK_RETURN_IF_ERROR(PrintPlanHead(feed, flags.step, flags.world, json));
  PrintBalance(feed, batch, cut, ranks, json);
  PENSTOCK_RETURN_IF_ERROR(PrintHomes(feed, batch, ranks, json));
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
  sub->add_option(
      "--ranks-per-node", flags->ranks_per_node,
      "ranks of a node: how many nodes decode the same share, homes of "
      "cut: local; 0: all");
  sub->add_option("--speeds", flags->speeds,
                  "of the data ranks, as 1,1,0.5: units in proportion");
  sub->add_option(
         "--cp", flags->cp,
         "what the cp axis of --mesh does to token tensors: off, contiguous, "
         "head_tail, per_document or striped")
      ->needs("--mesh");
  auto* shapes = sub->add_flag("--shapes", flags->shapes,
                               "print every shape of a microbatch instead");
  sub->add_option("--heatmap", flags->heatmap,
                  "draw the steps from --step to --to (200 without --to, 2000 at "
                  "most) into this SVG file instead: costs by rank, mixture")
      ->excludes(shapes);
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback([flags, step, shapes, &context] {
    if (step->empty() && shapes->empty()) throw CLI::RequiredError("--step");
    const absl::Status status = RunPlan(*flags, context.json);
    context.exit_code = status.ok() ? 0 : PrintError(status);
  });
}

}  // namespace penstock::cli
