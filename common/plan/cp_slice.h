#ifndef PENSTOCK_COMMON_PLAN_CP_SLICE_H_
#define PENSTOCK_COMMON_PLAN_CP_SLICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

// The cut of a sequence over context-parallel ranks. Every token tensor takes
// the same indices, after labels are shifted and positions are made. Pixels and
// document boundaries are never cut.
namespace penstock::plan {

inline constexpr std::uint64_t kSequenceMax = std::uint64_t{1} << 40;

enum class CpMode : std::uint8_t {
  kOff,          // every rank has the whole sequence
  kContiguous,   // equal runs
  kHeadTail,     // of 2C equal chunks, chunk c and chunk 2C-1-c
  kPerDocument,  // head and tail of every document
  kStriped,      // every C-th position from c
};

const char* CpModeText(CpMode mode);  // "off", "contiguous", …

// kInvalidArgument: not a mode's text
absl::StatusOr<CpMode> ParseCpMode(std::string_view text);

// How the ranks of a run cut sequences: all of them alike.
struct CpCut {
  CpMode mode = CpMode::kOff;
  std::uint32_t size = 1;  // ranks

  bool off() const { return mode == CpMode::kOff || size <= 1; }
  friend bool operator==(const CpCut&, const CpCut&) = default;
};

// "head_tail/2"; empty when it is off.
std::string FormatCpCut(const CpCut& cut);

// kInvalidArgument: no ranks, or more than 2^20. kOutOfRange: cp_index >=
// cp_size
absl::Status CheckCpRank(std::uint32_t cp_size, std::uint32_t cp_index);

// Positions begin, begin + stride, …: `count` of them.
struct IndexRange {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
  std::uint64_t stride = 1;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// Positions of a sequence of `sequence` tokens that rank `cp_index` of
// `cp_size` holds, in its order. Ranges that touch are not merged: head_tail
// gives two, per_document two a document.
//
// `boundaries` is read by per_document alone: the padded cu_seqlens, which rise
// from 0 to `sequence`. Empty documents, such as those that pad the list with
// its last value, give nothing.
//
// kInvalidArgument: a sequence of 0 or above kSequenceMax; no ranks, or more
//                   than 2^20; boundaries that do not rise from 0 to
//                   `sequence`; a length that is not a multiple of C
//                   (contiguous, striped) or 2C (head_tail, each document),
//                   with the nearest ones that are
// kOutOfRange:      cp_index >= cp_size
absl::StatusOr<std::vector<IndexRange>> CpSlice(
    CpMode mode, std::uint64_t sequence, std::uint32_t cp_size,
    std::uint32_t cp_index, absl::Span<const std::uint64_t> boundaries = {});

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_CP_SLICE_H_
