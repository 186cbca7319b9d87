#include "common/plan/pieces.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/plan/small_meshes.h"

namespace penstock::plan {
namespace {

bool Says(const absl::Status& status, const char* text) {
  UNSCOPED_INFO(status.message());
  CHECK(test::HasFiveParts(status));
  return std::string(status.message()).find(text) != std::string::npos;
}

std::vector<Piece> PiecesOfAll(const Mesh& mesh, std::uint64_t items,
                               std::uint64_t sequence) {
  std::vector<Piece> all;
  for (std::uint32_t r = 0; r < mesh.size(); ++r) {
    const auto pieces = PiecesOf(mesh, Rank{r}, items, sequence, Step{7}, "x");
    REQUIRE(pieces.ok());
    all.insert(all.end(), pieces->begin(), pieces->end());
  }
  return all;
}

TEST_CASE("B-6: the pieces of all ranks are the batch, on every mesh",
          "[plan][exhaustive]") {
  for (const auto& axes : test::AllAxes(8)) {
    const Mesh mesh = Mesh::Create(axes).value();
    const auto copies = mesh.SizeOf(AxisName::kPp) * mesh.SizeOf(AxisName::kTp);
    INFO(mesh.Text());
    const std::uint64_t items = 3 * mesh.DataWorld();
    const std::uint64_t sequence = 2 * mesh.SizeOf(AxisName::kCp);
    std::vector<Piece> all = PiecesOfAll(mesh, items, sequence);
    REQUIRE(PiecesTile(all, items, sequence).ok() == (copies == 1));
    // Ranks that differ in tp or pp alone ask for the same: one copy tiles.
    std::sort(all.begin(), all.end(), [](const Piece& a, const Piece& b) {
      return std::pair(a.items.begin, a.sequence.begin) <
             std::pair(b.items.begin, b.sequence.begin);
    });
    all.erase(std::unique(all.begin(), all.end()), all.end());
    REQUIRE(all.size() * copies == mesh.size());
    REQUIRE(PiecesTile(all, items, sequence).ok());
  }
}

// Every rectangle in a batch of 3 items and 3 positions.
std::vector<Piece> AllRectangles() {
  std::vector<Piece> all;
  for (std::uint64_t a = 0; a < 3; ++a) {
    for (std::uint64_t b = a + 1; b <= 3; ++b) {
      for (std::uint64_t x = 0; x < 3; ++x) {
        for (std::uint64_t y = x + 1; y <= 3; ++y) {
          all.push_back({.items = {a, b}, .sequence = {x, y}});
        }
      }
    }
  }
  return all;
}

bool PaintsOnce(const std::vector<Piece>& pieces) {
  std::vector<int> cells(9, 0);
  for (const Piece& p : pieces) {
    for (auto i = p.items.begin; i < p.items.end; ++i) {
      for (auto t = p.sequence.begin; t < p.sequence.end; ++t)
        ++cells[i * 3 + t];
    }
  }
  return std::count(cells.begin(), cells.end(), 1) == 9;
}

TEST_CASE("pieces: three of them tile exactly when they paint each cell once",
          "[plan][exhaustive]") {
  const std::vector<Piece> all = AllRectangles();
  int tilings = 0;
  for (const Piece& a : all) {
    for (const Piece& b : all) {
      for (const Piece& c : all) {
        const std::vector<Piece> pieces = {a, b, c};
        const bool tile = PiecesTile(pieces, 3, 3).ok();
        if (tile != PaintsOnce(pieces)) FAIL("three pieces are judged wrongly");
        tilings += tile;
      }
    }
  }
  CHECK(tilings == 6 * 18);  // 2 of three strips, 16 of one and a halved one
}

TEST_CASE("pieces: a fault is named", "[plan]") {
  const auto piece = [](std::uint64_t a, std::uint64_t b, std::uint64_t x,
                        std::uint64_t y) {
    return Piece{Step{3}, "tokens", {a, b}, {x, y}};
  };
  const std::vector<Piece> gap = {piece(0, 4, 0, 8), piece(0, 2, 8, 16)};
  CHECK(Says(PiecesTile(gap, 4, 16), "nothing at item 2, position 8"));
  CHECK(Says(PiecesTile(gap, 4, 16), "pieces of step 3, tensor \"tokens\""));
  const std::vector<Piece> twice = {piece(0, 4, 0, 9), piece(3, 4, 8, 16)};
  CHECK(Says(PiecesTile(twice, 4, 8), "leaves the batch"));
  CHECK(Says(PiecesTile({{piece(0, 4, 0, 9), piece(0, 4, 8, 16)}}, 4, 16),
             "items [0,4) sequence [0,9) and items [0,4) sequence [8,16)"));
  CHECK(Says(PiecesTile({{piece(0, 0, 0, 9)}}, 4, 16), "empty"));
  CHECK(Says(PiecesTile({}, 4, 16), "no pieces"));
  CHECK(Says(PiecesTile({}, 0, 16), "0 items"));
  std::vector<Piece> mixed = {piece(0, 4, 0, 8), piece(0, 4, 8, 16)};
  mixed[1].step = Step{4};
  CHECK(Says(PiecesTile(mixed, 4, 16), "another batch"));
  mixed[1].step = Step{3};
  CHECK(PiecesTile(mixed, 4, 16).ok());
  mixed[1].tensor = "labels";
  CHECK(Says(PiecesTile(mixed, 4, 16), "another batch"));
}

TEST_CASE("pieces: a batch that the mesh does not part is refused", "[plan]") {
  const Mesh mesh = ParseMesh("dp=4,cp=2").value();
  const auto error = [&](std::uint64_t items, std::uint64_t sequence) {
    return PiecesOf(mesh, Rank{0}, items, sequence).status();
  };
  CHECK(Says(error(6, 8), "global batch 4 or 8 for this world"));
  CHECK(Says(error(8, 7), "6 or 8"));
  CHECK(Says(error(0, 8), "a multiple of 4"));
  CHECK(Says(error(8, 0), "sequence"));
  CHECK(PiecesOf(mesh, Rank{8}, 8, 8).status().code() ==
        absl::StatusCode::kOutOfRange);
}

TEST_CASE("pieces: a large batch is judged quickly", "[plan]") {
  const Mesh mesh = ParseMesh("dp=4096,cp=16").value();
  CHECK(PiecesTile(PiecesOfAll(mesh, 1u << 24, 1u << 20), 1u << 24, 1u << 20)
            .ok());
}

}  // namespace
}  // namespace penstock::plan
