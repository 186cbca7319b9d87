#include "common/plan/mesh.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/unit/plan/small_meshes.h"

namespace penstock::plan {
namespace {

constexpr MeshOrder kOrders[] = {MeshOrder::kTorchTitan,
                                 MeshOrder::kMegatronTpPpDp, MeshOrder::kPlain};

bool Says(const absl::Status& status, const std::string& text) {
  UNSCOPED_INFO(status.message());
  return std::string(status.message()).find(text) != std::string::npos;
}

// Calls `law` with every mesh of at most 8 ranks, however written and sorted.
void ForEveryMesh(const std::function<bool(const Mesh&)>& law) {
  for (const auto& axes : test::AllAxes(8)) {
    for (MeshOrder order : kOrders) {
      INFO(test::TextOf(axes) << " " << MeshOrderText(order));
      const auto mesh = ParseMesh(test::TextOf(axes), order);
      REQUIRE(mesh.ok());
      REQUIRE(law(*mesh));
    }
  }
}

TEST_CASE("mesh: ranks and coordinates are one to one", "[plan][exhaustive]") {
  ForEveryMesh([](const Mesh& mesh) {
    std::set<std::vector<std::uint32_t>> seen;
    for (std::uint32_t r = 0; r < mesh.size(); ++r) {
      const auto at = mesh.CoordinatesOf(Rank{r}).value();
      for (std::size_t i = 0; i < at.size(); ++i) {
        if (at[i] >= mesh.axes()[i].size) return false;
        if (mesh.IndexOn(mesh.axes()[i].name, Rank{r}).value() != at[i]) {
          return false;
        }
      }
      if (mesh.RankOf(at).value() != Rank{r}) return false;
      seen.insert(at);
    }
    return seen.size() == mesh.size();
  });
}

TEST_CASE("mesh: every data rank has exactly one leader of acknowledgements",
          "[plan][exhaustive]") {
  ForEveryMesh([](const Mesh& mesh) {
    std::map<Rank, std::set<Rank>> leaders;
    std::uint32_t selves = 0;
    for (std::uint32_t r = 0; r < mesh.size(); ++r) {
      const Rank leader = mesh.AckLeader(Rank{r}).value();
      const Rank data = mesh.DataRank(Rank{r}).value();
      leaders[data].insert(leader);
      selves += leader == Rank{r};
      if (mesh.DataRank(leader).value() != data) return false;
      for (AxisName axis : {AxisName::kPp, AxisName::kCp, AxisName::kTp}) {
        if (mesh.IndexOn(axis, leader).value() != 0) return false;
      }
    }
    return selves == mesh.DataWorld() &&
           std::all_of(leaders.begin(), leaders.end(),
                       [](const auto& l) { return l.second.size() == 1; });
  });
}

TEST_CASE("B-27: data ranks are 0 to D-1, each on equally many ranks",
          "[plan][exhaustive]") {
  ForEveryMesh([](const Mesh& mesh) {
    std::vector<std::uint32_t> ranks(mesh.DataWorld(), 0);
    for (std::uint32_t r = 0; r < mesh.size(); ++r) {
      ++ranks.at(mesh.DataRank(Rank{r}).value().value);
    }
    return std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t n) {
      return n == mesh.size() / mesh.DataWorld();
    });
  });
}

TEST_CASE("mesh: the order of writing matters in plain alone",
          "[plan][exhaustive]") {
  std::map<std::pair<MeshOrder, std::string>, std::string> texts;
  for (const auto& axes : test::AllAxes(8)) {
    auto sorted = axes;
    std::sort(sorted.begin(), sorted.end(),
              [](const Axis& a, const Axis& b) { return a.name < b.name; });
    const auto plain = ParseMesh(test::TextOf(axes), MeshOrder::kPlain);
    REQUIRE(plain->axes() == axes);
    REQUIRE(ParseMesh(test::TextOf(axes))->axes() == sorted);
    const auto key =
        std::pair(MeshOrder::kMegatronTpPpDp, test::TextOf(sorted));
    const auto text =
        ParseMesh(test::TextOf(axes), MeshOrder::kMegatronTpPpDp)->Text();
    REQUIRE(texts.emplace(key, text).first->second == text);
  }
}

TEST_CASE("mesh: the text of a mesh is that mesh", "[plan][exhaustive]") {
  ForEveryMesh([](const Mesh& mesh) {
    return ParseMesh(mesh.Text(), MeshOrder::kPlain)->axes() == mesh.axes();
  });
}

TEST_CASE("mesh: refusals say what to write", "[plan]") {
  const auto error = [](const char* text) { return ParseMesh(text).status(); };
  CHECK(Says(error("dp=4,ep=2"), "leave ep out"));
  CHECK(Says(error("sp=2"), "count ranks that each load a sample (Ulysses)"));
  CHECK(Says(error("data=2"), "pp, dp_replicate, dp_shard (or dp), cp, tp"));
  CHECK(Says(error("dp=2,dp_shard=2"), "axis dp_shard is given twice"));
  CHECK(Says(error("dp=2,dp_shard=2"), "give either dp or those two"));
  CHECK(Says(error("dp=0"), "a whole number from 1 to 1048576"));
  CHECK(Says(error("dp=1048576,tp=2"), "a product of at most 1048576"));
  CHECK(Says(error("dp=2,"), "name=size"));
  CHECK(Says(error(""), "the mesh has no axis"));
  CHECK(Says(error("\x01\xff=2"), "\\001\\377"));
  CHECK(Says(ParseMeshOrder("titan").status(),
             "torchtitan, megatron_tp_pp_dp, plain"));
  for (const char* text : {"dp=4,ep=2", "sp=2", "data=2", "dp=2,dp_shard=2",
                           "dp=0", "dp=1048576,tp=2", "dp=2,", ""}) {
    INFO(text);
    CHECK(test::HasFiveParts(error(text)));
    CHECK(error(text).code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(test::HasFiveParts(ParseMeshOrder("").status()));
  CHECK(Says(Mesh::Create({{AxisName::kTp, 0}}).status(), "tp=0"));
  CHECK(Says(Mesh::Create({{AxisName::kTp, 1u << 21}}).status(), "tp=2097152"));
}

TEST_CASE("mesh: ranks and coordinates outside are refused", "[plan]") {
  const Mesh mesh = ParseMesh("dp=3,tp=2").value();
  const Rank outside{6};
  for (const absl::Status& status :
       {mesh.CoordinatesOf(outside).status(), mesh.DataRank(outside).status(),
        mesh.AckLeader(outside).status(),
        mesh.IndexOn(AxisName::kCp, outside).status(),
        mesh.RankOf({{0, 3, 0}}).status(), RolesOf(2, 2).status(),
        RolesOf(0, 0).status()}) {
    CHECK(status.code() == absl::StatusCode::kOutOfRange);
    CHECK(test::HasFiveParts(status));
  }
  for (const absl::Status& status :
       {mesh.RankOf({{0, 0}}).status(), mesh.RankOf({}).status(),
        DecodeAmplification(mesh, 0).status()}) {
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(test::HasFiveParts(status));
  }
}

TEST_CASE("mesh: each role is given on one stage or on all",
          "[plan][exhaustive]") {
  for (std::uint32_t size = 1; size <= 16; ++size) {
    std::map<TensorRole, std::uint32_t> stages;
    for (std::uint32_t pp = 0; pp < size; ++pp) {
      const auto roles = RolesOf(pp, size).value();
      for (TensorRole role : roles) ++stages[role];
    }
    CHECK(stages[TensorRole::kInput] == 1);
    CHECK(stages[TensorRole::kTarget] == 1);
    CHECK(stages[TensorRole::kMetadata] == size);
  }
}

TEST_CASE("B-30: the nodes that decode one share", "[plan]") {
  const auto of = [](const char* text, std::uint32_t ranks_per_node,
                     MeshOrder order = MeshOrder::kTorchTitan) {
    return DecodeAmplification(ParseMesh(text, order).value(), ranks_per_node)
        .value();
  };
  CHECK(of("dp=4,tp=8", 8).max_nodes == 1);
  CHECK(of("dp=4,tp=16", 8).max_nodes == 2);
  // pp outermost parts the stages of a share, pp inside dp keeps them together.
  CHECK(of("pp=2,dp=8", 8).max_nodes == 2);
  CHECK(of("pp=2,dp=8", 8, MeshOrder::kMegatronTpPpDp).max_nodes == 1);
  // Shares of 2 over nodes of 3: 01|2 23|... the middle one lies on both.
  const Amplification uneven = of("dp=3,tp=2", 3);
  CHECK(uneven.nodes == 2);
  CHECK(uneven.max_nodes == 2);
  CHECK(uneven.mean_nodes == Fraction{4, 3});
  const Amplification large = of("pp=1024,dp=1024", 8);
  CHECK(large.nodes == 131072);
  CHECK(large.max_nodes == 1024);
  CHECK(large.mean_nodes == Fraction{1024, 1});
}

TEST_CASE("the data ranks of a node, as a local cut counts them", "[plan]") {
  const auto of = [](const char* text, std::uint32_t ranks_per_node,
                     MeshOrder order = MeshOrder::kTorchTitan) {
    return DataRanksPerNode(ParseMesh(text, order).value(), ranks_per_node);
  };
  CHECK(of("dp=16", 8).value() == 8);
  CHECK(of("dp=16", 0).value() == 0);
  CHECK(of("dp=10", 4).value() == 4);  // the last node has 2
  CHECK(of("dp=8,tp=4", 8).value() == 2);
  CHECK(of("dp=4,tp=16", 8).value() == 1);  // on the node of its leader
  CHECK(of("dp=4", 100).value() == 4);
  // pp outermost: the leaders are the ranks of the first stage.
  CHECK(of("pp=2,dp=8", 8).value() == 8);
  CHECK(of("pp=2,dp=8", 8, MeshOrder::kMegatronTpPpDp).value() == 4);
  CHECK(of("dp=8,tp=3", 8).value() == 3);  // nodes lead 3, 3, 2
  CHECK(of("dp=9,tp=3", 8).status().code() ==
        absl::StatusCode::kInvalidArgument);  // 3, 3, 2, 1
}

}  // namespace
}  // namespace penstock::plan
