#ifndef PENSTOCK_COMMON_PLAN_COST_H_
#define PENSTOCK_COMMON_PLAN_COST_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/capture_index.h"
#include "common/plan/sample.h"

// Predicted cost of a sample: what the balanced cut evens out.
namespace penstock::plan {

// What a formula may name; all of the GOPs that the sample's frames lie in, as
// the capture index has them.
struct CostInputs {
  double decode = 0;  // recorded at import: macroblocks and sixteenths of bytes
  double frames = 0;  // of the sample
  double pixels = 0;  // of those frames, in the source's size
  double bytes = 0;   // compressed
  double events = 0;  // between the begin of the first GOP and of the last
  double tokens = 0;  // of text, likewise
};
// The GOPs that hold the sample's frames, without the preroll; empty: the index
// has none.
std::span<const format::GopRow> GopsOf(const Sample& sample,
                                       const format::CaptureIndexView& index);

CostInputs CostInputsOf(const Sample& sample,
                        const format::CaptureIndexView& index);
// Frames and pixels only.
CostInputs FrameInputsOf(const Sample& sample,
                         const format::CaptureIndexView& index);

// Sums, differences and products of numbers and the names above, with
// parentheses: "decode + 0.2*events". Doubles, each operation rounded once: equal
// everywhere.
class CostFormula {
 public:
  static constexpr std::size_t kBytesMax = 1024;

  // kInvalidArgument: not a formula; an unknown name (says which there are)
  static absl::StatusOr<CostFormula> Parse(std::string_view text);

  // Whole, from 0 to 2^50: less is 0, more is 2^50.
  std::uint64_t Of(const CostInputs& inputs) const;
  // Whether it names more than frames and pixels.
  bool UsesGops() const { return uses_gops_; }

 private:
  struct Op {
    char kind;         // 'n' number, 'v' name, '+', '-', '*'
    double number = 0;
    int name = 0;
  };
  class Parser;
  std::vector<Op> program_;  // postfix
  bool uses_gops_ = false;
};

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_COST_H_
