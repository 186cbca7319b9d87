#include "common/plan/cp_slice.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/plan/small_meshes.h"

namespace penstock::plan {
namespace {

using U64s = std::vector<std::uint64_t>;

constexpr CpMode kCuts[] = {CpMode::kContiguous, CpMode::kHeadTail,
                            CpMode::kStriped};

std::uint64_t UnitOf(CpMode mode, std::uint64_t cp_size) {
  return mode == CpMode::kHeadTail ? 2 * cp_size : cp_size;
}

// Whether the ranks hold equally many positions, and each position once.
bool Tiles(CpMode mode, std::uint64_t sequence, std::uint32_t cp_size,
           const U64s& boundaries = {}) {
  U64s held(sequence, 0);
  for (std::uint32_t c = 0; c < cp_size; ++c) {
    std::uint64_t count = 0;
    const auto slice = CpSlice(mode, sequence, cp_size, c, boundaries);
    if (!slice.ok()) return false;
    for (const IndexRange& range : *slice) {
      for (std::uint64_t i = 0; i < range.count; ++i) {
        ++held.at(range.begin + i * range.stride);
      }
      count += range.count;
    }
    if (count != sequence / cp_size) return false;
  }
  return held == U64s(sequence, 1);
}

TEST_CASE("cp: the slices of all ranks are the sequence, in equal shares",
          "[plan][exhaustive]") {
  for (std::uint32_t cp_size = 1; cp_size <= 8; ++cp_size) {
    for (CpMode mode : kCuts) {
      for (std::uint64_t sequence = 1; sequence <= 64; ++sequence) {
        INFO(CpModeText(mode) << " " << sequence << " over " << cp_size);
        REQUIRE(Tiles(mode, sequence, cp_size) ==
                (sequence % UnitOf(mode, cp_size) == 0));
      }
    }
  }
}

TEST_CASE("cp: the slices of all ranks are the documents",
          "[plan][exhaustive]") {
  for (std::uint64_t cp_size = 1; cp_size <= 8; ++cp_size) {
    for (std::uint64_t lengths = 1; lengths < 64; ++lengths) {
      const std::uint64_t unit = 2 * cp_size;  // lengths of 0 to 3 units
      const std::uint64_t a = lengths % 4 * unit;
      const std::uint64_t b = a + lengths / 4 % 4 * unit;
      const std::uint64_t end = b + lengths / 16 * unit;
      INFO(a << " " << b << " " << end << " over " << cp_size);
      REQUIRE(Tiles(CpMode::kPerDocument, end, cp_size, {0, a, b, end, end}));
    }
  }
}

TEST_CASE("cp: off gives everything to every rank", "[plan]") {
  for (std::uint32_t c = 0; c < 3; ++c) {
    CHECK(CpSlice(CpMode::kOff, 7, 3, c).value() ==
          std::vector<IndexRange>{{0, 7, 1}});
  }
}

TEST_CASE("cp: head and tail weigh the same under a causal mask", "[plan]") {
  const auto cost = [](std::uint32_t c) {  // position p attends to p + 1
    std::uint64_t sum = 0;
    const auto slice = CpSlice(CpMode::kHeadTail, 48, 4, c).value();
    for (const IndexRange& range : slice) {
      for (std::uint64_t i = 0; i < range.count; ++i)
        sum += range.begin + i + 1;
    }
    return sum;
  };
  for (std::uint32_t c = 1; c < 4; ++c) CHECK(cost(c) == cost(0));
}

TEST_CASE("cp: a length that does not fit names those that do", "[plan]") {
  const auto says = [](const absl::StatusOr<std::vector<IndexRange>>& slice,
                       const char* text) {
    UNSCOPED_INFO(slice.status().message());
    CHECK(test::HasFiveParts(slice.status()));
    return std::string(slice.status().message()).find(text) !=
           std::string::npos;
  };
  CHECK(says(CpSlice(CpMode::kHeadTail, 1022, 8, 0), "1008 or 1024"));
  CHECK(says(CpSlice(CpMode::kContiguous, 1022, 8, 0), "1016 or 1024"));
  CHECK(says(CpSlice(CpMode::kStriped, 5, 8, 0), "a multiple of 8: 8"));
  const U64s odd = {0, 16, 38, 64};
  CHECK(says(CpSlice(CpMode::kPerDocument, 64, 4, 0, odd), "document 1"));
  CHECK(says(CpSlice(CpMode::kPerDocument, 64, 4, 0, odd), "16 or 24"));
}

TEST_CASE("cp: what is no cut is refused", "[plan]") {
  const auto code = [](CpMode mode, std::uint64_t sequence,
                       std::uint32_t cp_size, std::uint32_t c,
                       const U64s& boundaries = {}) {
    const auto slice = CpSlice(mode, sequence, cp_size, c, boundaries);
    UNSCOPED_INFO(slice.status().message());
    CHECK(test::HasFiveParts(slice.status()));
    return slice.status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kDocuments = CpMode::kPerDocument;
  CHECK(code(CpMode::kOff, 8, 2, 2) == absl::StatusCode::kOutOfRange);
  CHECK(code(CpMode::kOff, 8, 0, 0) == kInvalid);
  CHECK(code(CpMode::kOff, 8, (1u << 20) + 1, 0) == kInvalid);
  CHECK(code(CpMode::kStriped, 0, 2, 0) == kInvalid);
  CHECK(code(CpMode::kStriped, kSequenceMax + 2, 2, 0) == kInvalid);
  CHECK(code(kDocuments, 8, 2, 0) == kInvalid);
  CHECK(code(kDocuments, 8, 2, 0, {0}) == kInvalid);
  CHECK(code(kDocuments, 8, 2, 0, {4, 8}) == kInvalid);
  CHECK(code(kDocuments, 8, 2, 0, {0, 4}) == kInvalid);
  CHECK(code(kDocuments, 8, 2, 0, {0, 12, 8}) == kInvalid);
  CHECK(CpSlice(CpMode::kStriped, kSequenceMax, 1u << 20, 0).ok());
}

TEST_CASE("cp: modes have texts", "[plan]") {
  for (CpMode mode : {CpMode::kOff, CpMode::kContiguous, CpMode::kHeadTail,
                      CpMode::kPerDocument, CpMode::kStriped}) {
    CHECK(ParseCpMode(CpModeText(mode)).value() == mode);
  }
  CHECK(test::HasFiveParts(ParseCpMode("ptrr").status()));
}

TEST_CASE("cp: cuts have texts", "[plan]") {
  const CpCut cut{CpMode::kHeadTail, 4};
  CHECK(FormatCpCut(cut) == "head_tail/4");
  CHECK(FormatCpCut({CpMode::kOff, 4}).empty());
  CHECK(FormatCpCut({CpMode::kStriped, 1}).empty());
}

}  // namespace
}  // namespace penstock::plan
