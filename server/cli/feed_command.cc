#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/layout/item_digest.h"
#include "common/status/status.h"
#include "server/cli/batch_items.h"
#include "server/cli/batch_source.h"
#include "server/cli/command.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;

struct FeedFlags {
  FeedOptions options;
  std::uint64_t steps = 0;
  bool local = false, digest = false;
};

absl::Status CheckDigests(const ConsumedBatch& batch,
                          const std::vector<Digest128>& seen) {
  for (std::size_t i = 0; i < std::max(seen.size(), batch.item_digests.size());
       ++i) {
    if (i < seen.size() && i < batch.item_digests.size() &&
        hash::Hex(seen[i]) == batch.item_digests[i]) {
      continue;
    }
    return MakeError(
        absl::StatusCode::kDataLoss,
        {.where = absl::StrFormat(
             "step %d, sample %s", batch.step,
             i < batch.sample_ids.size() ? batch.sample_ids[i] : "?"),
         .what = "the bytes read are not those that were described",
         .found = i < seen.size() ? hash::Hex(seen[i]) : "no such sample",
         .expected = i < batch.item_digests.size() ? batch.item_digests[i]
                                                   : "no more samples",
         .action = "report it with the dataset, the feed and the step"});
  }
  return absl::OkStatus();
}

// What one run of the consumer saw.
struct Totals {
  std::uint64_t steps = 0, bytes = 0, frames = 0;
  std::vector<std::uint64_t> waits;
  double seconds = 0;

  std::uint64_t Percentile(double p) const {
    if (waits.empty()) return 0;
    auto sorted = waits;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min<std::size_t>(
        static_cast<std::size_t>(p * static_cast<double>(sorted.size())),
        sorted.size() - 1)];
  }
};

void PrintStep(const ConsumedBatch& batch, const FeedFlags& flags,
               const std::string& digest, bool json) {
  if (json) {
    Json line = {{"schema", "penstock.feed.step.v1"},
                 {"step", batch.step},
                 {"rank", flags.options.rank},
                 {"world", flags.options.world},
                 {"samples", batch.sample_ids},
                 {"units", batch.units},
                 {"global_samples", batch.global_samples},
                 {"loss_scale", batch.loss_scale},
                 {"wait_ms", static_cast<double>(batch.wait_ns) / 1e6}};
    if (batch.global_tokens != 0) {
      line["tokens"] = batch.tokens;
      line["global_tokens"] = batch.global_tokens;
    }
    if (!batch.parts[0].bucket.empty()) {
      line["buckets"] = Json::array();
      for (const BatchPart& part : batch.parts)
        line["buckets"].push_back(part.bucket);
    }
    if (flags.digest) {
      line["digest"] = digest;
      line["item_digests"] = batch.item_digests;
      line["global_digest"] = batch.global_digest;
    }
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (flags.digest) {
    std::printf("step %llu rank %u digest %s\n",
                (unsigned long long)batch.step, flags.options.rank,
                digest.c_str());
  }
  std::fflush(stdout);
}

void PrintTotals(const Totals& t, const BatchSource& source,
                 const FeedFlags& flags, bool json) {
  const double s = std::max(t.seconds, 1e-9);
  if (json) {
    std::printf("%s\n",
                Json({{"schema", "penstock.feed.v1"},
                      {"rank", flags.options.rank},
                      {"steps", t.steps},
                      {"seconds", t.seconds},
                      {"batches_per_s", static_cast<double>(t.steps) / s},
                      {"mb_per_s", static_cast<double>(t.bytes) / s / 1e6},
                      {"frames_per_s", static_cast<double>(t.frames) / s},
                      {"wait_p50_ms", t.Percentile(0.5) / 1e6},
                      {"wait_p99_ms", t.Percentile(0.99) / 1e6},
                      {"state_dict", source.StateDict()}})
                    .dump(-1, ' ', false, Json::error_handler_t::replace)
                    .c_str());
    return;
  }
  std::printf("rank %u: %llu steps in %.2f s: %.1f batches/s, %.1f MB/s, %.0f "
              "frames/s, wait p50 %.2f ms, p99 %.2f ms\n",
              flags.options.rank, (unsigned long long)t.steps, t.seconds,
              static_cast<double>(t.steps) / s,
              static_cast<double>(t.bytes) / s / 1e6,
              static_cast<double>(t.frames) / s, t.Percentile(0.5) / 1e6,
              t.Percentile(0.99) / 1e6);
}

absl::Status Consume(const FeedFlags& flags, bool json) {
  PENSTOCK_ASSIGN_OR_RETURN(
      auto source, flags.local ? LocalSource(flags.options)
                               : ConnectSource(flags.options));
  std::fprintf(stderr, "%s\n", source->Describe().c_str());
  Totals totals;
  const auto begin = std::chrono::steady_clock::now();
  while (flags.steps == 0 || totals.steps < flags.steps) {
    PENSTOCK_ASSIGN_OR_RETURN(auto batch, source->Next());
    if (!batch) {
      std::fprintf(stderr, "the data has ended\n");
      break;
    }
    std::string digest;
    if (flags.digest) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto seen, DigestItems(*batch));
      PENSTOCK_RETURN_IF_ERROR(CheckDigests(*batch, seen));
      digest = hash::Hex(layout::DigestOfDigests(seen));
    }
    ++totals.steps;
    totals.bytes += batch->bytes.size();
    totals.waits.push_back(batch->wait_ns);
    totals.frames += FramesOf(*batch);
    PrintStep(*batch, flags, digest, json);
  }
  totals.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  PrintTotals(totals, *source, flags, json);
  return absl::OkStatus();
}

}  // namespace

void AddFeedCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand(
      "feed", "the reference consumer: throughput, waits, digests");
  auto flags = std::make_shared<FeedFlags>();
  auto& o = flags->options;
  sub->add_option("--feed", o.feed, "feed file")->required();
  auto* connect =
      sub->add_option("--connect", o.address,
                      "socket folder of the daemon, or tcp:HOST:PORT");
  sub->add_flag("--local", flags->local, "without a daemon, the same bytes")
      ->excludes(connect);
  sub->add_option("--rank", o.rank, "data rank")
      ->check(WholeNumber);
  sub->add_option("--world", o.world, "data ranks")->check(CLI::Range(1, 65536));
  sub->add_option("--ranks-per-node", o.ranks_per_node,
                  "data ranks of a node, for cut: local; 0: all")
      ->check(WholeNumber);
  sub->add_option("--speeds", o.speeds,
                  "of the data ranks, as 1,1,0.5: units in proportion");
  sub->add_option("--steps", flags->steps, "steps to take; 0: to the end");
  sub->add_option("--job", o.job, "job (the feed's name)");
  sub->add_option("--incarnation", o.incarnation, "id of this run");
  sub->add_option("--resume", o.resume,
                  "new, step:K, or the text of a state_dict");
  sub->add_flag("--takeover", o.takeover,
                "open a generation although ranks are connected");
  sub->add_option("--timeout-ms", o.deadline_ms, "of one wait")
      ->check(WholeNumber);
  sub->add_option("--workers", o.workers, "decoder workers (local)")
      ->check(CLI::Range(0, 1024));
  sub->add_option("--arena-bytes", o.arena_bytes, "arena (local)")
      ->check(WholeNumber);
  sub->add_flag("--digest", flags->digest,
                "digest the bytes as read, and compare with the descriptor");
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback([flags, &context] {
    absl::Status status = CheckRank(flags->options.rank, flags->options.world);
    if (status.ok()) status = Consume(*flags, context.json);
    context.exit_code = status.ok() ? 0 : PrintError(status);
  });
}

}  // namespace penstock::cli
