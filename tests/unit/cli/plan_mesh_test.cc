#include "server/cli/plan_mesh.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace penstock::cli {
namespace {

using Lines = std::vector<std::string>;

plan::Mesh MeshOf(const char* text) { return plan::ParseMesh(text).value(); }

TEST_CASE("plan: a mesh is printed rank by rank", "[cli]") {
  const plan::Mesh mesh = MeshOf("pp=2,dp_shard=2");
  CHECK(
      MeshLines(mesh, 2, false) ==
      Lines{"rank 0     pp 0  dp_shard 0  data 0     leader 0     "
            "input+metadata",
            "rank 1     pp 0  dp_shard 1  data 1     leader 1     "
            "input+metadata",
            "rank 2     pp 1  dp_shard 0  data 0     leader 0     "
            "target+metadata",
            "rank 3     pp 1  dp_shard 1  data 1     leader 1     "
            "target+metadata",
            "mesh       pp=2,dp_shard=2: 4 ranks, 2 data ranks",
            "decode     nodes a share: 2 in the mean, 2 at most; 2 nodes of 2 "
            "ranks"});
  CHECK(MeshLines(mesh, 0, false).size() == 5);
}

TEST_CASE("plan: a mesh as JSON lines", "[cli]") {
  const Lines lines = MeshLines(MeshOf("dp=3,tp=2"), 3, true);
  REQUIRE(lines.size() == 7);
  using nlohmann::json;
  CHECK(json::parse(lines[3]) == json::parse(R"({
      "schema": "penstock.plan.v1", "type": "mesh_rank", "rank": 3,
      "coordinates": {"dp_replicate": 0, "dp_shard": 1, "tp": 1},
      "data_rank": 1, "leader": 2, "is_leader": false,
      "roles": ["input", "target", "metadata"]})"));
  CHECK(json::parse(lines[6]) == json::parse(R"({
      "schema": "penstock.plan.v1", "type": "mesh",
      "mesh": "dp_replicate=1,dp_shard=3,tp=2",
      "axes": [{"name": "dp_replicate", "size": 1},
               {"name": "dp_shard", "size": 3}, {"name": "tp", "size": 2}],
      "ranks": 6, "data_world": 3, "ranks_listed": true,
      "decode": {"ranks_per_node": 3, "nodes": 2, "mean_nodes": "4/3",
                 "max_nodes": 2}})"));
  CHECK(json::parse(MeshLines(MeshOf("tp=1"), 0, true).back())
            .at("decode")
            .is_null());
}

TEST_CASE("plan: a large mesh has the summary alone", "[cli]") {
  CHECK(MeshLines(MeshOf("dp=4096"), 8, false).size() == 4096 + 2);
  CHECK(
      MeshLines(MeshOf("dp=4097"), 8, false) ==
      Lines{"mesh       dp_replicate=1,dp_shard=4097: 4097 ranks, 4097 data "
            "ranks",
            "decode     nodes a share: 1 in the mean, 1 at most; 513 nodes of "
            "8 ranks",
            "note       ranks are listed up to a mesh of 4096"});
  const Lines json = MeshLines(MeshOf("dp=4097"), 8, true);
  REQUIRE(json.size() == 1);
  CHECK_FALSE(nlohmann::json::parse(json[0]).at("ranks_listed").get<bool>());
}

}  // namespace
}  // namespace penstock::cli
