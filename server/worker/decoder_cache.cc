#include "server/worker/decoder_cache.h"

#include <algorithm>

#include "common/status/status.h"

namespace penstock::worker {

absl::StatusOr<decode::VideoDecoder*> DecoderCache::Decoder(
    const format::CodecParameters& parameters) {
  const auto it =
      std::find_if(decoders_.begin(), decoders_.end(),
                   [&](const Open& o) { return o.parameters == parameters; });
  if (it != decoders_.end()) {
    decoders_.splice(decoders_.begin(), decoders_, it);
    decoders_.front().decoder->Reset();
    return decoders_.front().decoder.get();
  }
  if (decoders_.size() >= kDecoders) decoders_.pop_back();
  PENSTOCK_ASSIGN_OR_RETURN(auto decoder,
                            decode::VideoDecoder::Create(parameters));
  decoders_.push_front({parameters, std::move(decoder)});
  return decoders_.front().decoder.get();
}

absl::StatusOr<const layout::TransformPlan*> DecoderCache::Plan(
    const layout::VideoTransform& transform) {
  const auto it = std::find_if(plans_.begin(), plans_.end(), [&](const auto& p) {
    return p.transform() == transform;
  });
  if (it != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, it);
    return &plans_.front();
  }
  if (plans_.size() >= kPlans) plans_.pop_back();
  PENSTOCK_ASSIGN_OR_RETURN(auto plan, layout::TransformPlan::Create(transform));
  plans_.push_front(std::move(plan));
  return &plans_.front();
}

}  // namespace penstock::worker
