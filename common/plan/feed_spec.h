#ifndef PENSTOCK_COMMON_PLAN_FEED_SPEC_H_
#define PENSTOCK_COMMON_PLAN_FEED_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/transform.h"
#include "common/plan/decimal.h"
#include "common/plan/tensor_role.h"
#include "common/status/status.h"
#include "common/types/ids.h"

// A feed as values, defaults resolved; the meaning of the fields is in
// proto/penstock/v1/feed.proto.
namespace penstock::plan {

inline constexpr int kPlanVersion = 3;
inline constexpr int kTransformVersion = 1;

enum class Align { kNone, kGop };
enum class Pairing { kFrameTActionT, kFrameTActionTMinus1 };
enum class OrderMode { kShuffle, kSequential };
enum class CutMode { kStrided, kMegatron, kBalanced, kLocal };
enum class Mode { kTraining, kEvaluation };
enum class Exhaustion { kRepeat, kStop, kRenormalise };
enum class Uneven { kError, kMask };
enum class StrataMode { kProportional, kUniform, kTemperature, kExplicit };
enum class Per { kSamples, kTokens };
enum class TooLong { kError, kTruncate, kSplit };

struct ViewSpec {
  std::string track;  // empty: the capture's first video track
  std::uint64_t frames = 1;
  std::uint64_t min_frames = 0;  // of windows that a run's end cuts; 0: frames
  std::uint64_t stride = 1;      // 0 when fps is given
  Fraction fps;              // 0/1 when stride is given
  std::uint64_t hop = 0;     // 0: frames * stride
  Align align = Align::kNone;
  Pairing pairing = Pairing::kFrameTActionT;
  friend bool operator==(const ViewSpec&, const ViewSpec&) = default;

  std::uint64_t shortest() const { return min_frames != 0 ? min_frames : frames; }
};

// Groups of a source's captures; none when `by` is empty.
struct StrataSpec {
  std::vector<std::string> by;  // columns
  StrataMode mode = StrataMode::kProportional;
  Decimal temperature = kOne;
  std::vector<std::pair<std::string, Decimal>> weights;  // explicit: label, weight
};

struct SourceSpec {
  std::string name;
  std::string dataset, dataset_id, filter;
  Decimal weight = kOne;
  ViewSpec view;
  StrataSpec strata;
  std::uint64_t epochs = 0;  // 0: the feed's
};

struct StageSource {
  std::string name;
  std::optional<Decimal> weight;
  std::optional<ViewSpec> view;
};

// What changes from a data step on.
struct StageSpec {
  std::uint64_t step = 0;
  std::uint64_t global_batch = 0;  // 0: as before
  std::vector<StageSource> sources;
};

// Data steps [from, to) that are not delivered.
struct SkipSpec {
  std::uint64_t from = 0, to = 0;
};

struct VideoOutput {
  std::uint32_t width = 0, height = 0;
  layout::PixelLayout layout = layout::PixelLayout::kTchw;
  layout::Colour colour = layout::Colour::kRgb;
  layout::Resize resize = layout::Resize::kBilinear;
};
struct KeysOutput {
  std::string track;
  std::vector<std::string> keys;
};
struct MouseOutput {
  std::string track;
};
struct ColumnsOutput {
  std::string track;
  std::vector<std::string> columns;
};
struct TimesOutput {};

struct OutputSpec {
  std::string name;
  std::variant<VideoOutput, KeysOutput, MouseOutput, ColumnsOutput, TimesOutput>
      kind;
  TensorRole role = TensorRole::kInput;  // in no digest: who is given it
};

// One shape of microbatches, and which samples it takes (pool.h).
struct BucketSpec {
  std::string name;
  std::uint64_t frames = 1;
  std::uint32_t width = 0, height = 0;
  Fraction fps;               // 0/1: of any rate
  std::uint64_t samples = 1;  // of a microbatch
};

// Several samples in a unit, up to a budget of tokens (pack.h).
struct PackingSpec {
  std::uint64_t tokens = 0;  // 0: no packing
  std::uint64_t window = 4096;
  std::uint64_t segments = 64;
  std::uint64_t frames = 0;  // 0: as many as the budget has room for
  std::uint64_t length_multiple = 1;
  TooLong too_long = TooLong::kError;
  friend bool operator==(const PackingSpec&, const PackingSpec&) = default;
};

struct FeedSpec {
  std::string name;
  Seed seed;
  std::uint64_t global_batch = 1;
  std::uint64_t microbatch = 0;     // 0: the whole share of a rank
  std::uint64_t epochs = 0;         // 0: never ends
  std::vector<SourceSpec> sources;  // planned in the order of their names
  OrderMode order = OrderMode::kShuffle;
  CutMode cut = CutMode::kStrided;
  Mode mode = Mode::kTraining;
  Exhaustion exhaustion = Exhaustion::kRepeat;
  Uneven uneven = Uneven::kError;
  std::vector<StageSpec> stages;
  std::vector<SkipSpec> skip;
  std::string cost = "decode";  // CostFormula
  std::string length;           // CostFormula, in tokens; empty: none
  Per per = Per::kSamples;      // what weights are shares of
  std::vector<BucketSpec> buckets;
  PackingSpec packing;
  std::uint64_t lanes = 0;  // 0: no lanes
  std::vector<OutputSpec> outputs;
};

// Limits: far above any use, so that no arithmetic of the plan overflows.
inline constexpr std::uint64_t kGlobalBatchMax = 1u << 24;
inline constexpr std::uint64_t kFramesMax = 1u << 16;
inline constexpr std::uint64_t kStrideMax = 1u << 20;
inline constexpr std::uint64_t kHopMax = 1u << 31;
inline constexpr std::uint64_t kEpochsMax = 1u << 30;
inline constexpr std::uint64_t kStepMax = std::uint64_t{1} << 38;
inline constexpr std::size_t kSourcesMax = 4096;
inline constexpr std::size_t kOutputsMax = 64;
inline constexpr std::size_t kStagesMax = 64;
inline constexpr std::size_t kSkipsMax = 1024;
inline constexpr std::size_t kBucketsMax = 64;
inline constexpr std::uint64_t kBucketSamplesMax = 1u << 16;
inline constexpr std::uint64_t kPackTokensMax = 1u << 28;
inline constexpr std::uint64_t kPackWindowMax = 1u << 14;
inline constexpr std::uint64_t kPackSegmentsMax = 1u << 14;
inline constexpr std::uint64_t kLanesMax = 1u << 16;
inline constexpr std::size_t kStrataColumnsMax = 8;
inline constexpr std::size_t kStrataMax = 4096;  // of a source
inline constexpr std::uint32_t kSideMax = layout::kOutputSideMax;  // pixels

// Names of the tensors that come with the outputs: with buckets "sample_frames"
// (i32 [samples]: frames that are not padding), with lanes "reset" (i32
// [units]), with packing "segment_ids" and "position_ids" (i32 [tokens]),
// "cu_seqlens" and "cu_frames" (i32 [segments + 1]).
std::vector<std::string> PlanTensorNames(const FeedSpec& feed);

// One thing that is wrong with a feed and the field it is in, as
// "sources[1].view.frames".
struct Fault {
  std::string field;
  Problem problem;
};

// Everything that is wrong with the values; empty when the feed may be planned.
std::vector<Fault> CheckFeed(const FeedSpec& feed);

// The first fault as kInvalidArgument, or OK.
absl::Status CheckFeedStatus(const FeedSpec& feed);

// Passes over a source before it is exhausted; 0: never.
inline std::uint64_t LimitOf(const FeedSpec& feed, const SourceSpec& source) {
  if (feed.exhaustion == Exhaustion::kRepeat) return 0;
  return source.epochs != 0 ? source.epochs : feed.epochs;
}

// Puts the sources in the order of their names: a source's index, the ties of
// the mixture and the digests do not depend on the order in the file.
void SortSources(FeedSpec& feed);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_FEED_SPEC_H_
