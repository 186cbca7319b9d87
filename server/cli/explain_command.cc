#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/plan/cost.h"
#include "common/status/status.h"
#include "server/cli/command.h"
#include "server/cli/counting.h"
#include "server/dataset/plan_source.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;
using dataset::OpenedFeed;

struct ExplainFlags {
  std::string feed;
  std::uint64_t step = 0;
  std::uint32_t world = 1, rank = 0, ranks_per_node = 0;
  std::string speeds;
};

// One GOP that a sample needs: where its bytes lie.
struct ByteRange {
  std::string shard;
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t first_frame = 0, frames = 0, preroll = 0;
};

struct Explained {
  std::vector<ByteRange> ranges;
  std::uint64_t bytes = 0;
  double decode = 0;       // recorded at import
  std::uint64_t cost = 0;  // by the feed's formula
};

absl::StatusOr<Explained> Explain(const OpenedFeed& feed, const plan::Sample& s) {
  const auto& dataset = *feed.sources[s.source].dataset;
  const auto& index = dataset.index();
  Explained out;
  const plan::CostInputs inputs = plan::CostInputsOf(s, index);
  out.decode = inputs.decode;
  out.cost = feed.planner->plan_inputs()->cost.Of(inputs);
  for (const auto& row : plan::GopsOf(s, index)) {
    PENSTOCK_ASSIGN_OR_RETURN(std::string shard, dataset.ShardPath(row.shard));
    out.ranges.push_back({std::move(shard), row.offset, row.bytes,
                          row.first_frame, row.frame_count, row.preroll});
    out.bytes += row.bytes;
  }
  return out;
}

Json RangesJson(const Explained& e) {
  Json out = Json::array();
  for (const ByteRange& r : e.ranges) {
    out.push_back({{"shard", r.shard},
                   {"offset", r.offset},
                   {"bytes", r.bytes},
                   {"first_frame", r.first_frame},
                   {"frames", r.frames},
                   {"preroll_gops", r.preroll}});
  }
  return out;
}

void Print(const OpenedFeed& feed, const plan::Sample& s, std::uint64_t item,
           const Explained& e, bool json) {
  const auto& source = feed.sources[s.source];
  if (json) {
    std::printf(
        "%s\n",
        Json{{"schema", "penstock.explain.v1"},
             {"item", item},
             {"id", feed.IdOf(s)},
             {"source", source.name},
             {"group", feed.StratumOf(s)},
             {"epoch", s.epoch.value},
             {"index", s.index},
             {"capture",
              hash::Hex(source.dataset->index().captures[s.capture].id)},
             {"start_frame", s.start_frame},
             {"frames", s.frames},
             {"stride", s.stride},
             {"bytes", e.bytes},
             {"tokens", s.tokens},
             {"cost", e.cost},
             {"decode_cost", e.decode},
             {"ranges", RangesJson(e)}}
            .dump(-1, ' ', false, Json::error_handler_t::replace)
            .c_str());
    return;
  }
  std::printf("item %-4llu %s  %llu bytes in %zu GOPs, predicted cost %llu\n",
              (unsigned long long)item, feed.IdOf(s).c_str(),
              (unsigned long long)e.bytes, e.ranges.size(),
              (unsigned long long)e.cost);
  for (const ByteRange& r : e.ranges) {
    std::printf("  %s [%llu, %llu)  frames %llu to %llu%s\n", r.shard.c_str(),
                (unsigned long long)r.offset,
                (unsigned long long)(r.offset + r.bytes),
                (unsigned long long)r.first_frame,
                (unsigned long long)(r.first_frame + r.frames),
                r.preroll > 0
                    ? absl::StrFormat(", lead frames need %d GOPs before", r.preroll)
                          .c_str()
                    : "");
  }
}

absl::Status RunExplain(const ExplainFlags& flags, bool json) {
  PENSTOCK_RETURN_IF_ERROR(CheckRank(flags.rank, flags.world));
  PENSTOCK_ASSIGN_OR_RETURN(auto speeds,
                            plan::ParseSpeeds(flags.speeds, flags.world));
  const plan::DataRanks ranks{flags.world, flags.ranks_per_node,
                              std::move(speeds)};
  PENSTOCK_ASSIGN_OR_RETURN(OpenedFeed feed, dataset::OpenFeedFile(flags.feed));
  ShowCounting(feed);
  PENSTOCK_ASSIGN_OR_RETURN(plan::GlobalBatch batch,
                            feed.PlanStep({flags.step}));
  PENSTOCK_ASSIGN_OR_RETURN(const plan::BatchCut cut,
                            feed.planner->Cut(batch, ranks));
  const auto costs = feed.planner->CostsOf(batch);
  for (const std::uint64_t item : cut.ranks[flags.rank]) {
    const plan::Unit& u = batch.units[item];
    if (!json && u.samples > 1) {
      std::printf("item %-4llu has %u samples, predicted cost %llu\n",
                  (unsigned long long)item, u.samples,
                  (unsigned long long)costs[item]);
    }
    for (std::uint32_t k = 0; k < u.samples; ++k) {
      const plan::Sample& s = batch.samples[u.first + k];
      PENSTOCK_ASSIGN_OR_RETURN(const Explained e, Explain(feed, s));
      Print(feed, s, item, e, json);
    }
  }
  const std::uint64_t masked = cut.units - cut.ranks[flags.rank].size();
  if (masked > 0 && !json) std::printf("%llu masked units\n", (unsigned long long)masked);
  return absl::OkStatus();
}

}  // namespace

void AddExplainCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand(
      "explain", "where the bytes of a rank's step come from; reads no shard");
  auto flags = std::make_shared<ExplainFlags>();
  sub->add_option("--feed", flags->feed, "feed file (YAML)")->required();
  sub->add_option("--step", flags->step, "step, from 0")->required()
      ->check(WholeNumber);
  sub->add_option("--world", flags->world, "data-parallel ranks")
      ->check(CLI::Range(1u, 1u << 20));
  sub->add_option("--rank", flags->rank, "data rank")->check(WholeNumber);
  sub->add_option("--ranks-per-node", flags->ranks_per_node,
                  "data ranks of a node, for cut: local; 0: all")
      ->check(WholeNumber);
  sub->add_option("--speeds", flags->speeds,
                  "of the data ranks, as 1,1,0.5: units in proportion");
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback([flags, &context] {
    const absl::Status status = RunExplain(*flags, context.json);
    context.exit_code = status.ok() ? 0 : PrintError(status);
  });
}

}  // namespace penstock::cli
