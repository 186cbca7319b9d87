#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/plan/cut.h"
#include "common/plan/weights.h"
#include "common/status/status.h"
#include "server/cli/command.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using dataset::OpenedFeed;
using Shares = std::vector<std::vector<std::uint64_t>>;

constexpr char kSchema[] = "penstock.plan.v1";

struct PlanFlags {
  std::string feed;
  std::uint64_t step = 0;
  std::uint32_t world = 1;
  std::optional<std::uint32_t> rank;
};

void Print(const std::string& line) { std::printf("%s\n", line.c_str()); }

Json SourceJson(const OpenedFeed& feed, std::uint32_t i, std::uint64_t before) {
  const dataset::OpenedSource& s = feed.sources[i];
  const auto quota = feed.planner->mixture().quota(i);
  return {{"name", s.name},
          {"dataset", s.dataset->dir()},
          {"dataset_id", s.dataset->id()},
          {"weight", plan::FormatDecimal(feed.feed().sources[i].weight)},
          {"quota", quota},
          {"quota_of", plan::kMixturePeriod},
          {"captures", s.captures.size()},
          {"samples", feed.planner->SourceSize(i)},
          {"selection_digest", hash::Hex(s.selection)},
          {"samples_before", before}};
}

void PrintHeadJson(const OpenedFeed& feed, const PlanFlags& flags) {
  const auto total = feed.planner->TotalSteps();
  const auto before = feed.planner->CountsBefore({flags.step});
  Json sources = Json::array();
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    sources.push_back(SourceJson(feed, i, before[i]));
  }
  Print(Json{{"schema", kSchema},
             {"type", "feed"},
             {"name", feed.feed().name},
             {"step", flags.step},
             {"world", flags.world},
             {"global_batch", feed.feed().global_batch},
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
  Print(absl::StrFormat("feed       %s, step %d of %s, global batch %d",
                        feed.feed().name, flags.step,
                        total ? absl::StrFormat("%d", *total) : "unlimited",
                        feed.feed().global_batch));
  Print("order      " + hash::Hex(feed.order_digest));
  Print("content    " + hash::Hex(feed.content_digest));
  Print("selection  " + hash::Hex(feed.selection_digest));
  const auto before = feed.planner->CountsBefore({flags.step});
  for (std::uint32_t i = 0; i < feed.sources.size(); ++i) {
    const dataset::OpenedSource& s = feed.sources[i];
    Print(absl::StrFormat(
        "source     %s: weight %s, %d captures, %d samples, %d drawn before, "
        "dataset %s",
        s.name, plan::FormatQuota(feed.planner->mixture().quota(i)),
        s.captures.size(), feed.planner->SourceSize(i), before[i],
        s.dataset->id().substr(0, 12)));
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

void PrintRank(const OpenedFeed& feed, const plan::GlobalBatch& batch,
               std::uint32_t rank, const std::vector<std::uint64_t>& items,
               bool json) {
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
  if (!json) return;
  Print(Json{{"schema", kSchema},
             {"type", "rank"},
             {"step", batch.step.value},
             {"rank", rank},
             {"samples", std::move(samples)}}
            .dump(-1, ' ', false, Json::error_handler_t::replace));
}

absl::Status RunPlan(const PlanFlags& flags, bool json) {
  PENSTOCK_ASSIGN_OR_RETURN(OpenedFeed feed, dataset::OpenFeedFile(flags.feed));
  const plan::FeedSpec& spec = feed.feed();
  PENSTOCK_ASSIGN_OR_RETURN(
      Shares shares,
      plan::AssignToRanks(spec.global_batch, spec.microbatch, flags.world));
  if (flags.rank) {  // for its error alone
    PENSTOCK_RETURN_IF_ERROR(plan::ItemsOfRank(spec.global_batch,
                                               spec.microbatch, flags.world,
                                               Rank{*flags.rank})
                                 .status());
  }
  PENSTOCK_ASSIGN_OR_RETURN(plan::GlobalBatch batch,
                            feed.planner->PlanStep({flags.step}));
  json ? PrintHeadJson(feed, flags) : PrintHeadText(feed, flags);
  for (std::uint32_t r = 0; r < flags.world; ++r) {
    if (flags.rank && *flags.rank != r) continue;
    PrintRank(feed, batch, r, shares[r], json);
  }
  return absl::OkStatus();
}

}  // namespace

void AddPlanCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand(
      "plan", "what each rank gets at a step; reads no shard");
  auto flags = std::make_shared<PlanFlags>();
  sub->add_option("--feed", flags->feed, "feed file (YAML)")->required();
  sub->add_option("--step", flags->step, "step, from 0")->required()
      ->check(WholeNumber);
  sub->add_option("--world", flags->world, "data-parallel ranks")
      ->check(CLI::Range(1u, 1u << 20));
  sub->add_option("--rank", flags->rank, "only this rank")
      ->check(WholeNumber);
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback([flags, &context] {
    const absl::Status status = RunPlan(*flags, context.json);
    context.exit_code = status.ok() ? 0 : PrintError(status);
  });
}

}  // namespace penstock::cli
