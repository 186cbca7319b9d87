#include "common/plan/pieces.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/cp_slice.h"
#include "common/plan/cut.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

std::string Text(const HalfOpen& range) {
  return absl::StrCat("[", range.begin, ",", range.end, ")");
}

std::string Text(const Piece& piece) {
  return absl::StrCat("items ", Text(piece.items), " sequence ",
                      Text(piece.sequence));
}

absl::Status Refuse(absl::StatusCode code, const Piece* piece, std::string what,
                    std::string found, std::string expected) {
  return MakeError(
      code,
      {.where = piece == nullptr
                    ? "pieces"
                    : absl::StrCat("pieces of step ", piece->step.value,
                                   ", tensor \"", piece->tensor, "\""),
       .what = std::move(what),
       .found = std::move(found),
       .expected = std::move(expected),
       .action = "correct the sharding, or the batch it is held against"});
}

absl::Status CheckPiece(const Piece& piece, const Piece& first,
                        std::uint64_t items, std::uint64_t sequence) {
  if (piece.step != first.step || piece.tensor != first.tensor) {
    return Refuse(absl::StatusCode::kInvalidArgument, &first,
                  "a piece is of another batch",
                  absl::StrCat("step ", piece.step.value, ", tensor \"",
                               piece.tensor, "\""),
                  "one step and one tensor");
  }
  if (piece.items.begin >= piece.items.end ||
      piece.sequence.begin >= piece.sequence.end) {
    return Refuse(absl::StatusCode::kInvalidArgument, &piece,
                  "a piece is empty", Text(piece), "begin below end");
  }
  if (piece.items.end > items || piece.sequence.end > sequence) {
    return Refuse(
        absl::StatusCode::kOutOfRange, &piece, "a piece leaves the batch",
        Text(piece),
        absl::StrCat("at most ", items, " items, sequence ", sequence));
  }
  return absl::OkStatus();
}

// The pieces that cross one row, walked from row to row. They never overlap, so
// they fill the row exactly when their lengths add up to it.
class Row {
 public:
  explicit Row(std::uint64_t sequence) : sequence_(sequence) {}

  absl::Status Add(const Piece& piece) {
    const auto next = across_.lower_bound(piece.sequence.begin);
    if (next != across_.end() &&
        next->second->sequence.begin < piece.sequence.end) {
      return Overlap(piece, *next->second);
    }
    if (next != across_.begin() &&
        std::prev(next)->second->sequence.end > piece.sequence.begin) {
      return Overlap(piece, *std::prev(next)->second);
    }
    across_.emplace_hint(next, piece.sequence.begin, &piece);
    filled_ += piece.sequence.end - piece.sequence.begin;
    return absl::OkStatus();
  }

  void Remove(const Piece& piece) {
    across_.erase(piece.sequence.begin);
    filled_ -= piece.sequence.end - piece.sequence.begin;
  }

  absl::Status CheckFilled(std::uint64_t item, const Piece& any) const {
    if (filled_ == sequence_) return absl::OkStatus();
    std::uint64_t at = 0;
    for (const auto& [begin, piece] : across_) {
      if (begin != at) break;
      at = piece->sequence.end;
    }
    return Refuse(absl::StatusCode::kFailedPrecondition, &any,
                  "the pieces leave a gap",
                  absl::StrCat("nothing at item ", item, ", position ", at),
                  "every position of every item exactly once");
  }

 private:
  static absl::Status Overlap(const Piece& a, const Piece& b) {
    return Refuse(absl::StatusCode::kFailedPrecondition, &a,
                  "two pieces overlap", absl::StrCat(Text(b), " and ", Text(a)),
                  "every position of every item exactly once");
  }

  std::uint64_t sequence_, filled_ = 0;
  std::map<std::uint64_t, const Piece*> across_;  // by sequence.begin
};

using Pointers = std::vector<const Piece*>;

bool BeginsEarlier(const Piece* a, const Piece* b) {
  return std::pair(a->items.begin, a->sequence.begin) <
         std::pair(b->items.begin, b->sequence.begin);
}

bool EndsEarlier(const Piece* a, const Piece* b) {
  return a->items.end < b->items.end;
}

// Stops at each row where a piece begins or ends: between two such rows nothing
// changes. Ends with the rows or at the first fault.
absl::Status Walk(const Pointers& begins, const Pointers& ends,
                  std::uint64_t items, std::uint64_t sequence) {
  Row row(sequence);
  std::size_t b = 0, e = 0;
  for (std::uint64_t item = 0; item < items;) {
    for (; e < ends.size() && ends[e]->items.end == item; ++e) {
      row.Remove(*ends[e]);
    }
    for (; b < begins.size() && begins[b]->items.begin == item; ++b) {
      PENSTOCK_RETURN_IF_ERROR(row.Add(*begins[b]));
    }
    PENSTOCK_RETURN_IF_ERROR(row.CheckFilled(item, *begins.front()));
    // The row is filled, so a piece is open and its end lies ahead.
    item = ends[e]->items.end;
    if (b < begins.size()) item = std::min(item, begins[b]->items.begin);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PiecesTile(absl::Span<const Piece> pieces, std::uint64_t items,
                        std::uint64_t sequence) {
  if (items == 0 || sequence == 0) {
    return Refuse(absl::StatusCode::kInvalidArgument, nullptr,
                  "the batch is empty",
                  absl::StrCat(items, " items, sequence ", sequence),
                  "1 or more of both");
  }
  if (pieces.empty()) {
    return Refuse(absl::StatusCode::kFailedPrecondition, nullptr,
                  "the pieces leave a gap", "no pieces",
                  "every position of every item exactly once");
  }
  Pointers begins;
  for (const Piece& piece : pieces) {
    PENSTOCK_RETURN_IF_ERROR(
        CheckPiece(piece, pieces.front(), items, sequence));
    begins.push_back(&piece);
  }
  Pointers ends = begins;
  std::sort(begins.begin(), begins.end(), BeginsEarlier);
  std::sort(ends.begin(), ends.end(), EndsEarlier);
  return Walk(begins, ends, items, sequence);
}

absl::StatusOr<std::vector<Piece>> PiecesOf(const Mesh& mesh, Rank rank,
                                            std::uint64_t items,
                                            std::uint64_t sequence, Step step,
                                            std::string_view tensor) {
  PENSTOCK_ASSIGN_OR_RETURN(const Rank data, mesh.DataRank(rank));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t cp,
                            mesh.IndexOn(AxisName::kCp, rank));
  if (items == 0) {
    return Refuse(absl::StatusCode::kInvalidArgument, nullptr,
                  "the batch is empty", "0 items",
                  absl::StrCat("a multiple of ", mesh.DataWorld()));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t share,
                            UnitsOfRank({}, items, {mesh.DataWorld()}));
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::vector<IndexRange> slice,
      CpSlice(CpMode::kContiguous, sequence, mesh.SizeOf(AxisName::kCp), cp));
  const std::uint64_t row = data.value * share;
  const std::uint64_t at = slice.front().begin;
  return std::vector<Piece>{{.step = step,
                             .tensor = std::string(tensor),
                             .items = {row, row + share},
                             .sequence = {at, at + slice.front().count}}};
}

}  // namespace penstock::plan
