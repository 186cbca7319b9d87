#ifndef PENSTOCK_COMMON_PLAN_PIECES_H_
#define PENSTOCK_COMMON_PLAN_PIECES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/mesh.h"
#include "common/types/ids.h"

// Pieces of a global batch as XLA shardings ask for them: rectangles of items
// and sequence positions. Rows are items in plan order on every mesh, which a
// strided cut would not give.
namespace penstock::plan {

struct HalfOpen {  // [begin, end)
  std::uint64_t begin = 0, end = 0;
  friend bool operator==(const HalfOpen&, const HalfOpen&) = default;
};

struct Piece {
  Step step;
  std::string tensor;
  HalfOpen items;     // rows of the global batch
  HalfOpen sequence;  // positions of each row
  friend bool operator==(const Piece&, const Piece&) = default;
};

// OK when the pieces, all of one step and tensor, hold each position of each
// of `items` rows exactly once. In any order; O(n log n).
//
// kInvalidArgument:    an empty batch, an empty piece, one of another step or
//                      tensor
// kOutOfRange:         a piece that leaves the batch
// kFailedPrecondition: an overlap or a gap; names the pieces, or the first item
//                      and position that are missing
absl::Status PiecesTile(absl::Span<const Piece> pieces, std::uint64_t items,
                        std::uint64_t sequence);

// What `rank` asks for when rows lie over data ranks in contiguous runs and the
// sequence over cp in contiguous runs: one piece. Ranks that differ only in tp
// or pp ask for the same. A tensor without a sequence axis is asked for with a
// mesh without cp.
//
// kInvalidArgument: no items; the data world does not divide `items`, or cp
//                   `sequence`, with the nearest numbers that work
// kOutOfRange:      a rank that the mesh does not have
absl::StatusOr<std::vector<Piece>> PiecesOf(const Mesh& mesh, Rank rank,
                                            std::uint64_t items,
                                            std::uint64_t sequence,
                                            Step step = {},
                                            std::string_view tensor = "");

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PIECES_H_
