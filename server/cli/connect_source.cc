#include <penstock/client.hpp>

#include "common/status/status.h"
#include "server/cli/batch_source.h"

namespace penstock::cli {
namespace {

absl::StatusCode CodeOf(ps_code code) {
  switch (code) {
    case PS_OK: return absl::StatusCode::kOk;
    case PS_INVALID: return absl::StatusCode::kInvalidArgument;
    case PS_REFUSED: return absl::StatusCode::kFailedPrecondition;
    case PS_TIMEOUT: return absl::StatusCode::kDeadlineExceeded;
    case PS_UNAVAILABLE: return absl::StatusCode::kUnavailable;
    case PS_DATA_LOSS: return absl::StatusCode::kDataLoss;
    default: return absl::StatusCode::kInternal;
  }
}

absl::Status StatusOf(const penstock::Error& e) {
  return absl::Status(CodeOf(e.code), e.message);
}

layout::DType DTypeOf(ps_dtype dtype) {
  switch (dtype) {
    case PS_I32: return layout::DType::kI32;
    case PS_I64: return layout::DType::kI64;
    case PS_F32: return layout::DType::kF32;
    default: return layout::DType::kU8;
  }
}

class ClientSource final : public BatchSource {
 public:
  ClientSource(penstock::Feed feed, std::uint32_t rank)
      : feed_(std::move(feed)), rank_(rank) {}

  std::string Describe() const override {
    const ps_feed_info i = feed_.info();
    std::string text = "job " + std::string(i.job) + " generation " +
                       std::to_string(i.generation) + " rank " +
                       std::to_string(rank_) + " from step " +
                       std::to_string(i.start_step) +
                       (i.remote ? ", remote" : "");
    if (i.notes[0] != '\0') text += "\n" + std::string(i.notes);
    return text;
  }

  absl::StatusOr<std::optional<ConsumedBatch>> Next() override {
    auto step = feed_.Next();
    if (!step) {
      if (feed_.error().code != PS_OK) return StatusOf(feed_.error());
      return std::optional<ConsumedBatch>();
    }
    auto batch = std::make_shared<StepBatch>(*std::move(step));
    const ps_step_info info = batch->info();
    ConsumedBatch out;
    out.step = info.number;
    // The slab starts where the first tensor of the first microbatch lies.
    const auto* base =
        static_cast<const std::uint8_t*>(batch->microbatch(0)[0].data);
    out.bytes = {base, info.bytes};
    if (const auto whole = batch->tensors(); !whole.empty()) {
      out.parts.push_back(PartOf(whole, "", base));
    } else {
      for (std::uint32_t m = 0; m < info.microbatches; ++m) {
        out.parts.push_back(PartOf(batch->microbatch(m),
                                   batch->microbatch_info(m).bucket, base));
      }
    }
    for (std::uint32_t i = 0; i < info.samples; ++i) {
      out.sample_ids.push_back(batch->sample_id(i));
      out.item_digests.push_back(batch->item_digest(i));
    }
    out.units = info.units;
    out.global_samples = info.global_samples;
    out.loss_scale = info.loss_scale;
    out.tokens = info.tokens;
    out.global_tokens = info.global_tokens;
    out.batch_digest = info.batch_digest;
    out.global_digest = info.global_digest;
    out.wait_ns = info.wait_ns;
    out.keep = batch;
    return std::optional<ConsumedBatch>(std::move(out));
  }

  std::string StateDict() const override { return feed_.StateDict(); }

 private:
  static BatchPart PartOf(const std::vector<Tensor>& tensors,
                          std::string bucket, const std::uint8_t* base) {
    BatchPart part{std::move(bucket), {}};
    for (const Tensor& t : tensors) {
      layout::TensorDesc d;
      d.name = t.name;
      d.dtype = DTypeOf(t.dtype);
      d.shape.assign(t.shape, t.shape + t.dims);
      d.strides.assign(t.strides, t.strides + t.dims);
      d.offset = static_cast<std::uint64_t>(
          static_cast<const std::uint8_t*>(t.data) - base);
      part.tensors.push_back(std::move(d));
    }
    return part;
  }

  penstock::Feed feed_;
  std::uint32_t rank_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> ConnectSource(
    const FeedOptions& o) {
  ps_attach_options a{};
  a.struct_bytes = sizeof(a);
  a.address = o.address.empty() ? nullptr : o.address.c_str();
  a.job = o.job.empty() ? nullptr : o.job.c_str();
  a.feed = o.feed.c_str();
  a.incarnation = o.incarnation.empty() ? nullptr : o.incarnation.c_str();
  a.resume = o.resume.c_str();
  a.data_rank = o.rank;
  a.data_world = o.world;
  a.ranks_per_node = o.ranks_per_node;
  a.speeds = o.speeds.empty() ? nullptr : o.speeds.c_str();
  a.ack_leader = 1;
  a.takeover = o.takeover;
  a.deadline_ms = o.deadline_ms;
  a.first_deadline_ms = o.deadline_ms;
  penstock::Error error;
  auto feed = penstock::Feed::Attach(a, &error);
  if (!feed) return StatusOf(error);
  return std::make_unique<ClientSource>(*std::move(feed), o.rank);
}

}  // namespace penstock::cli
