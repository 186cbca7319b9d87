#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/config/yaml_message.h"
#include "common/hash/hash.h"
#include "common/job/attach.h"
#include "common/status/status.h"
#include "server/cli/batch_source.h"
#include "server/pipeline/job_pipeline.h"
#include "server/pipeline/planned_feed.h"
#include "server/pipeline/side_tensors.h"

namespace penstock::cli {
namespace {

constexpr shm::HolderId kSession = 2;
constexpr std::uint64_t kArenaBytes = 4ull << 30;

std::string DecoderPath() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "penstock-decoder").string();
}

// Owns everything that a daemon would; members end in reverse order.
class InProcessSource final : public BatchSource {
 public:
  static absl::StatusOr<std::unique_ptr<BatchSource>> Create(
      const FeedOptions& o) {
    std::unique_ptr<InProcessSource> s(new InProcessSource);
    s->options_ = o;
    PENSTOCK_ASSIGN_OR_RETURN(const std::string text,
                              config::ReadYamlFile(o.feed));
    std::error_code error;
    const std::string dir =
        std::filesystem::absolute(o.feed, error).parent_path().string();
    PENSTOCK_ASSIGN_OR_RETURN(s->feed_,
                              pipeline::LoadPlannedFeed(text, o.feed, dir));
    PENSTOCK_RETURN_IF_ERROR(pipeline::CheckSides(*s->feed_.plan));
    plan::DataRanks ranks{o.world, o.ranks_per_node};
    PENSTOCK_ASSIGN_OR_RETURN(ranks.speeds,
                              plan::ParseSpeeds(o.speeds, o.world));
    job::AttachIntent intent;
    intent.job = o.job.empty() ? s->feed_.name : o.job;
    intent.incarnation = "local";
    intent.resume = o.resume;
    intent.data_world = o.world;
    intent.ranks_per_node = o.ranks_per_node;
    intent.speeds = plan::FormatSpeeds(ranks.speeds);
    intent.order_digest = s->feed_.order_digest;
    intent.content_digest = s->feed_.content_digest;
    intent.selection_digest = s->feed_.selection_digest;
    intent.dataset_ids = s->feed_.dataset_ids;
    PENSTOCK_ASSIGN_OR_RETURN(const auto decision,
                              job::DecideAttach(nullptr, intent));
    s->job_ = intent.job;
    s->position_ = decision.start_step;
    PENSTOCK_ASSIGN_OR_RETURN(auto layout,
                              pipeline::MakeBatchLayout(*s->feed_.plan, ranks));
    PENSTOCK_ASSIGN_OR_RETURN(s->engine_, io::StartReadEngine({}, nullptr));
    pipeline::WorkerPoolOptions w;
    w.decoder_path = DecoderPath();
    w.workers = o.workers != 0
                    ? o.workers
                    : std::max(1u, std::thread::hardware_concurrency());
    w.queue_max = std::max(64u, 4 * w.workers);
    PENSTOCK_ASSIGN_OR_RETURN(s->pool_, pipeline::WorkerPool::Start(w));
    pipeline::JobPipelineOptions p;
    p.ranks = ranks;
    p.arena_bytes_max = o.arena_bytes != 0 ? o.arena_bytes : kArenaBytes;
    PENSTOCK_ASSIGN_OR_RETURN(
        s->pipeline_,
        pipeline::JobPipeline::Create(s->feed_.plan, std::move(layout), p,
                                      *s->engine_, s->pool_, s->shards_));
    // Only this rank consumes: the others want nothing.
    for (std::uint32_t r = 0; r < o.world; ++r) {
      if (r != o.rank) s->pipeline_->Join(kSession + 1 + r, r, UINT64_MAX);
    }
    s->pipeline_->Join(kSession, o.rank, s->position_);
    return std::unique_ptr<BatchSource>(std::move(s));
  }

  std::string Describe() const override {
    std::string text = absl::StrFormat("local, job %s, rank %d of %d from step %d",
                                       job_, options_.rank, options_.world,
                                       position_);
    for (const auto& note : feed_.notes) text += "\n" + note;
    return text;
  }

  absl::StatusOr<std::optional<ConsumedBatch>> Next() override {
    const auto begin = std::chrono::steady_clock::now();
    pipeline_->Ack(options_.rank, position_);
    PENSTOCK_ASSIGN_OR_RETURN(
        auto batch, pipeline_->Next(kSession, options_.rank, position_,
                                    options_.deadline_ms));
    if (!batch) return std::optional<ConsumedBatch>();
    ConsumedBatch out;
    out.step = batch->step;
    const auto slot = batch->slot;
    out.bytes = std::span<const std::uint8_t>(pipeline_->arena().bytes())
                    .subspan(slot.offset, pipeline_->layout().bytes);
    out.parts = PartsOf(*batch);
    out.sample_ids = batch->sample_ids;
    out.units = batch->units;
    out.global_samples = batch->global_samples;
    out.loss_scale = batch->loss_scale;
    out.tokens = batch->tokens;
    out.global_tokens = batch->global_tokens;
    for (const auto& d : batch->item_digests) {
      out.item_digests.push_back(hash::Hex(d));
    }
    out.batch_digest = hash::Hex(batch->batch_digest);
    if (batch->global_digest) out.global_digest = hash::Hex(*batch->global_digest);
    out.wait_ns = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::steady_clock::now() - begin)
            .count());
    pipeline::JobPipeline* p = pipeline_.get();
    out.keep = std::shared_ptr<const void>(
        nullptr, [p, slot](const void*) { p->Release(kSession, {slot}); });
    ++position_;
    return std::optional<ConsumedBatch>(std::move(out));
  }

  std::string StateDict() const override {
    job::Cursor c;
    c.job = job_;
    c.feed = feed_.order_digest.substr(0, 32);
    c.datasets =
        job::DatasetsDigest(feed_.dataset_ids, feed_.selection_digest)
            .substr(0, 32);
    c.next_step = position_;
    return job::EncodeCursor(c);
  }

 private:
  InProcessSource() = default;

  std::vector<BatchPart> PartsOf(const pipeline::PublishedBatch& batch) const {
    const pipeline::BatchLayout& layout = pipeline_->layout();
    std::vector<BatchPart> out;
    if (layout.unit_stride == 0) {
      out.push_back({"", layout.shapes[0].slab.tensors});
      for (auto& t : out[0].tensors) t.shape[0] = batch.units;
      return out;
    }
    for (std::uint64_t u = 0; u < batch.units; ++u) {
      const auto& shape =
          layout
              .shapes[u < batch.unit_shapes.size() ? batch.unit_shapes[u] : 0];
      out.push_back({shape.name, shape.slab.tensors});
      for (auto& t : out.back().tensors) t.offset += u * layout.unit_stride;
    }
    return out;
  }

  FeedOptions options_;
  pipeline::LoadedFeed feed_;
  std::string job_;
  std::uint64_t position_ = 0;
  pipeline::ShardCache shards_;
  std::unique_ptr<io::ReadEngine> engine_;
  std::shared_ptr<pipeline::WorkerPool> pool_;
  std::unique_ptr<pipeline::JobPipeline> pipeline_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> LocalSource(
    const FeedOptions& options) {
  return InProcessSource::Create(options);
}

}  // namespace penstock::cli
