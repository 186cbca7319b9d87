#include "common/plan/cp_slice.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::array kTexts = {"off", "contiguous", "head_tail", "per_document",
                               "striped"};
constexpr std::uint32_t kCpSizeMax = 1u << 20;

absl::Status Refuse(std::string what, std::string found, std::string expected,
                    std::string action) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = "context-parallel cut",
                    .what = std::move(what),
                    .found = std::move(found),
                    .expected = std::move(expected),
                    .action = std::move(action)});
}

// `subject` is the sequence or a document, `length` its tokens.
absl::Status CheckMultiple(const std::string& subject, std::uint64_t length,
                           std::uint64_t unit) {
  if (length % unit == 0) return absl::OkStatus();
  const std::uint64_t low = length / unit * unit;
  return Refuse(
      absl::StrCat(subject, " cannot be cut into equal parts"),
      absl::StrCat("a length of ", length),
      absl::StrCat("a multiple of ", unit, ": ",
                   low == 0 ? "" : absl::StrCat(low, " or "), low + unit),
      "pad it to one of these lengths, or take another cp size or mode");
}

absl::Status CheckBoundaries(std::uint64_t sequence,
                             absl::Span<const std::uint64_t> boundaries) {
  if (boundaries.size() < 2 || boundaries.front() != 0 ||
      boundaries.back() != sequence) {
    return Refuse("document boundaries do not span the sequence",
                  boundaries.empty() ? "no boundaries"
                                     : absl::StrCat(boundaries.size(), " from ",
                                                    boundaries.front(), " to ",
                                                    boundaries.back()),
                  absl::StrCat("two or more from 0 to ", sequence),
                  "give the padded boundaries of the whole sequence");
  }
  for (std::size_t i = 1; i < boundaries.size(); ++i) {
    if (boundaries[i] >= boundaries[i - 1]) continue;
    return Refuse(absl::StrCat("document boundary ", i, " falls"),
                  absl::StrCat(boundaries[i], " after ", boundaries[i - 1]),
                  absl::StrCat(boundaries[i - 1], " or more"),
                  "give the boundaries in rising order");
  }
  return absl::OkStatus();
}

// Appends chunks c and 2C-1-c of the 2C equal chunks of [begin, begin +
// length).
void AppendHeadTail(std::uint64_t begin, std::uint64_t length,
                    std::uint64_t cp_size, std::uint64_t cp_index,
                    std::vector<IndexRange>& out) {
  const std::uint64_t chunk = length / (2 * cp_size);
  if (chunk == 0) return;
  out.push_back({begin + cp_index * chunk, chunk});
  out.push_back({begin + (2 * cp_size - 1 - cp_index) * chunk, chunk});
}

absl::StatusOr<std::vector<IndexRange>> SliceDocuments(
    std::uint64_t sequence, std::uint64_t cp_size, std::uint64_t cp_index,
    absl::Span<const std::uint64_t> boundaries) {
  PENSTOCK_RETURN_IF_ERROR(CheckBoundaries(sequence, boundaries));
  std::vector<IndexRange> out;
  for (std::size_t i = 1; i < boundaries.size(); ++i) {
    const std::uint64_t length = boundaries[i] - boundaries[i - 1];
    PENSTOCK_RETURN_IF_ERROR(
        CheckMultiple(absl::StrCat("document ", i - 1), length, 2 * cp_size));
    AppendHeadTail(boundaries[i - 1], length, cp_size, cp_index, out);
  }
  return out;
}

}  // namespace

const char* CpModeText(CpMode mode) {
  return kTexts[static_cast<std::size_t>(mode)];
}

absl::StatusOr<CpMode> ParseCpMode(std::string_view text) {
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    if (text == kTexts[i]) return static_cast<CpMode>(i);
  }
  return Refuse(
      "no such mode",
      absl::StrCat("\"", absl::CEscape(std::string(text.substr(0, 80))), "\""),
      absl::StrJoin(kTexts, ", "),
      "take off where the trainer cuts the sequence itself");
}

absl::Status CheckCpRank(std::uint32_t cp_size, std::uint32_t cp_index) {
  if (cp_size == 0 || cp_size > kCpSizeMax) {
    return Refuse("an impossible number of ranks",
                  absl::StrCat("cp size ", cp_size),
                  absl::StrCat("1 to ", kCpSizeMax), "correct the cp size");
  }
  if (cp_index < cp_size) return absl::OkStatus();
  return MakeError(absl::StatusCode::kOutOfRange,
                   {.where = "context-parallel cut",
                    .what = "no such rank",
                    .found = absl::StrCat("rank ", cp_index, " of ", cp_size),
                    .expected = absl::StrCat("0 to ", cp_size - 1),
                    .action = "correct the cp index or the cp size"});
}

std::string FormatCpCut(const CpCut& cut) {
  if (cut.off()) return "";
  return absl::StrCat(CpModeText(cut.mode), "/", cut.size);
}

absl::StatusOr<std::vector<IndexRange>> CpSlice(
    CpMode mode, std::uint64_t sequence, std::uint32_t cp_size,
    std::uint32_t cp_index, absl::Span<const std::uint64_t> boundaries) {
  PENSTOCK_RETURN_IF_ERROR(CheckCpRank(cp_size, cp_index));
  if (sequence == 0 || sequence > kSequenceMax) {
    return Refuse("an impossible sequence length", absl::StrCat(sequence),
                  absl::StrCat("1 to ", kSequenceMax), "correct the length");
  }
  if (mode == CpMode::kOff) return std::vector<IndexRange>{{0, sequence}};
  if (mode == CpMode::kPerDocument) {
    return SliceDocuments(sequence, cp_size, cp_index, boundaries);
  }
  const bool halves = mode == CpMode::kHeadTail;
  PENSTOCK_RETURN_IF_ERROR(CheckMultiple(
      "the sequence", sequence, std::uint64_t{cp_size} * (halves ? 2 : 1)));
  const std::uint64_t share = sequence / cp_size;
  std::vector<IndexRange> out;
  if (halves) {
    AppendHeadTail(0, sequence, cp_size, cp_index, out);
  } else if (mode == CpMode::kStriped) {
    out.push_back({cp_index, share, cp_size});
  } else {
    out.push_back({cp_index * share, share});
  }
  return out;
}

}  // namespace penstock::plan
