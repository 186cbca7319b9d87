// The C++ against tests/golden/plan/mesh.json, which mesh_restate.py makes from
// the design's words alone.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/plan/cp_slice.h"
#include "common/plan/mesh.h"
#include "common/plan/pieces.h"
#include "tests/unit/plan/small_meshes.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::json;

const Json& Golden(const char* part) {
  static const Json golden = [] {
    std::ifstream in(PENSTOCK_SOURCE_DIR "/tests/golden/plan/mesh.json");
    return Json::parse(in);
  }();
  return golden.at(part);
}

Json AxesJson(const Mesh& mesh) {
  Json axes = Json::array();
  for (const Axis& axis : mesh.axes()) {
    axes.push_back({AxisText(axis.name), axis.size});
  }
  return axes;
}

Json RolesJson(std::uint32_t stage, std::uint32_t stages) {
  Json out = Json::array();
  const auto roles = RolesOf(stage, stages).value();
  for (TensorRole role : roles) out.push_back(RoleText(role));
  return out;
}

TEST_CASE("golden: ranks of meshes", "[plan][golden]") {
  for (const Json& c : Golden("meshes")) {
    const std::string text = c.at("text"), order = c.at("order");
    INFO(text << " " << order);
    const auto mesh = ParseMesh(text, ParseMeshOrder(order).value());
    REQUIRE(mesh.ok());
    CHECK(AxesJson(*mesh) == c.at("axes"));
    REQUIRE(mesh->size() == c.at("data").size());
    const auto stages = mesh->SizeOf(AxisName::kPp);
    for (std::uint32_t r = 0; r < mesh->size(); ++r) {
      CHECK(Json(*mesh->CoordinatesOf(Rank{r})) == c.at("coordinates")[r]);
      CHECK(mesh->DataRank(Rank{r})->value == c.at("data")[r]);
      CHECK(mesh->AckLeader(Rank{r})->value == c.at("leaders")[r]);
      const auto stage = mesh->IndexOn(AxisName::kPp, Rank{r}).value();
      CHECK(RolesJson(stage, stages) == c.at("roles")[r]);
    }
  }
}

TEST_CASE("golden: nodes that decode one share", "[plan][golden]") {
  for (const Json& c : Golden("meshes")) {
    const std::string text = c.at("text"), order = c.at("order");
    INFO(text << " " << order);
    const auto mesh = ParseMesh(text, ParseMeshOrder(order).value()).value();
    for (const Json& n : c.at("nodes")) {
      const auto found = DecodeAmplification(mesh, n.at("ranks_per_node"));
      REQUIRE(found.ok());
      CHECK(found->nodes == n.at("nodes"));
      CHECK(found->max_nodes == n.at("max"));
      CHECK(Json{found->mean_nodes.num, found->mean_nodes.den} == n.at("mean"));
    }
  }
}

TEST_CASE("golden: texts that are no mesh", "[plan][golden]") {
  for (const std::string text : Golden("refused")) {
    INFO(text);
    for (auto order : {MeshOrder::kTorchTitan, MeshOrder::kMegatronTpPpDp,
                       MeshOrder::kPlain}) {
      const auto status = ParseMesh(text, order).status();
      CHECK(status.code() == absl::StatusCode::kInvalidArgument);
      CHECK(test::HasFiveParts(status));
    }
  }
}

Json Positions(const std::vector<IndexRange>& ranges) {
  Json out = Json::array();
  for (const IndexRange& range : ranges) {
    for (std::uint64_t i = 0; i < range.count; ++i) {
      out.push_back(range.begin + i * range.stride);
    }
  }
  return out;
}

TEST_CASE("golden: context-parallel slices", "[plan][golden]") {
  for (const Json& c : Golden("slices")) {
    INFO(c.dump());
    const CpMode mode = ParseCpMode(c.at("mode").get<std::string>()).value();
    const auto boundaries =
        c.at("boundaries").get<std::vector<std::uint64_t>>();
    for (std::uint32_t i = 0; i < c.at("cp"); ++i) {
      const auto slice =
          CpSlice(mode, c.at("sequence"), c.at("cp"), i, boundaries);
      REQUIRE(slice.ok() == !c.at("slices").is_null());
      if (slice.ok()) {
        CHECK(Positions(*slice) == c.at("slices")[i]);
        continue;
      }
      std::string nearest;
      for (const Json& n : c.at("nearest")) {
        nearest += (nearest.empty() ? ": " : " or ") + n.dump();
      }
      const std::string text(slice.status().message());
      INFO(text);
      CHECK(text.find(nearest + "\n") != std::string::npos);
    }
  }
}

TEST_CASE("golden: pieces of ranks", "[plan][golden]") {
  for (const Json& c : Golden("pieces")) {
    INFO(c.dump());
    const Mesh mesh = ParseMesh(c.at("mesh").get<std::string>()).value();
    for (std::uint32_t r = 0; r < mesh.size(); ++r) {
      const auto pieces =
          PiecesOf(mesh, Rank{r}, c.at("items"), c.at("sequence"));
      REQUIRE(pieces.ok() == !c.at("ranks").is_null());
      if (!pieces.ok()) continue;
      REQUIRE(pieces->size() == 1);
      const Piece& p = pieces->front();
      CHECK(Json{p.items.begin, p.items.end, p.sequence.begin,
                 p.sequence.end} == c.at("ranks")[r]);
    }
  }
}

std::string Verdict(const absl::Status& status) {
  const std::string text(status.message());
  for (const char* word : {"overlap", "gap", "empty"}) {
    if (text.substr(0, text.find('\n')).find(word) != std::string::npos) {
      return word;
    }
  }
  return status.ok() ? "tiles" : "outside";
}

TEST_CASE("golden: tilings", "[plan][golden]") {
  for (const Json& c : Golden("tilings")) {
    INFO(c.dump());
    std::vector<Piece> pieces;
    for (const Json& p : c.at("pieces")) {
      pieces.push_back({.items = {p[0], p[1]}, .sequence = {p[2], p[3]}});
    }
    const auto status = PiecesTile(pieces, c.at("items"), c.at("sequence"));
    INFO(status.message());
    CHECK(Verdict(status) == c.at("verdict"));
  }
}

}  // namespace
}  // namespace penstock::plan
