#ifndef PENSTOCK_SERVER_WORKER_DECODER_CACHE_H_
#define PENSTOCK_SERVER_WORKER_DECODER_CACHE_H_

#include <list>
#include <memory>

#include "absl/status/statusor.h"
#include "common/format/shard.h"
#include "common/layout/transform.h"
#include "server/decode/video_decoder.h"

namespace penstock::worker {

// Open decoders and transform plans, kept between jobs: opening a decoder costs
// allocations that its frames then reuse, a plan its weight tables.
//
// Threading: one thread.
// Bounds: kDecoders decoders and kPlans plans; the one unused longest goes.
class DecoderCache {
 public:
  static constexpr std::size_t kDecoders = 4;
  static constexpr std::size_t kPlans = 32;

  // A decoder in its reset state, valid until the next call. Errors as
  // VideoDecoder::Create().
  absl::StatusOr<decode::VideoDecoder*> Decoder(
      const format::CodecParameters& parameters);
  // Valid until the next call. Errors as TransformPlan::Create().
  absl::StatusOr<const layout::TransformPlan*> Plan(
      const layout::VideoTransform& transform);

  std::size_t decoder_count() const { return decoders_.size(); }

 private:
  struct Open {
    format::CodecParameters parameters;
    std::unique_ptr<decode::VideoDecoder> decoder;
  };
  std::list<Open> decoders_;  // last used first
  std::list<layout::TransformPlan> plans_;
};

}  // namespace penstock::worker

#endif  // PENSTOCK_SERVER_WORKER_DECODER_CACHE_H_
