#include "server/cli/plan_mesh.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::ordered_json;
using plan::AxisText;
using plan::Mesh;

constexpr char kSchema[] = "penstock.plan.v1";

// What is printed of one rank.
struct Line {
  Rank rank;
  std::vector<std::uint32_t> at;  // in the order of the axes
  Rank data, leader;
  std::vector<plan::TensorRole> roles;
};

// `rank` is one of the mesh, so no call fails.
Line LineOf(const Mesh& mesh, Rank rank) {
  const auto stage = mesh.IndexOn(plan::AxisName::kPp, rank).value();
  return {
      .rank = rank,
      .at = mesh.CoordinatesOf(rank).value(),
      .data = mesh.DataRank(rank).value(),
      .leader = mesh.AckLeader(rank).value(),
      .roles = plan::RolesOf(stage, mesh.SizeOf(plan::AxisName::kPp)).value()};
}

std::string RankText(const Mesh& mesh, const Line& line) {
  std::string at;
  for (std::size_t i = 0; i < line.at.size(); ++i) {
    const plan::Axis& axis = mesh.axes()[i];
    const int digits = static_cast<int>(absl::StrCat(axis.size - 1).size());
    absl::StrAppendFormat(&at, "%s %-*d  ", AxisText(axis.name), digits,
                          line.at[i]);
  }
  const auto append = [](std::string* out, plan::TensorRole role) {
    out->append(plan::RoleText(role));
  };
  return absl::StrFormat("rank %-5d %sdata %-5d leader %-5d %s",
                         line.rank.value, at, line.data.value,
                         line.leader.value,
                         absl::StrJoin(line.roles, "+", append));
}

std::string RankJson(const Mesh& mesh, const Line& line) {
  Json at = Json::object(), roles = Json::array();
  for (std::size_t i = 0; i < line.at.size(); ++i) {
    at[AxisText(mesh.axes()[i].name)] = line.at[i];
  }
  for (plan::TensorRole role : line.roles) roles.push_back(RoleText(role));
  return Json{{"schema", kSchema},
              {"type", "mesh_rank"},
              {"rank", line.rank.value},
              {"coordinates", std::move(at)},
              {"data_rank", line.data.value},
              {"leader", line.leader.value},
              {"is_leader", line.leader == line.rank},
              {"roles", std::move(roles)}}
      .dump();
}

std::string DecodeText(const plan::Amplification& found,
                       std::uint32_t ranks_per_node) {
  const auto& mean = found.mean_nodes;
  return absl::StrFormat(
      "decode     nodes a share: %s in the mean, %d at most; %d nodes of %d "
      "ranks",
      mean.den == 1 ? absl::StrCat(mean.num) : plan::FormatFraction(mean),
      found.max_nodes, found.nodes, ranks_per_node);
}

void AppendSummaryText(const Mesh& mesh, std::uint32_t ranks_per_node,
                       std::vector<std::string>& lines) {
  lines.push_back(absl::StrFormat("mesh       %s: %d ranks, %d data ranks",
                                  mesh.Text(), mesh.size(), mesh.DataWorld()));
  if (ranks_per_node > 0) {
    lines.push_back(
        DecodeText(plan::DecodeAmplification(mesh, ranks_per_node).value(),
                   ranks_per_node));
  }
  if (mesh.size() > kMeshRanksListed) {
    lines.push_back(absl::StrFormat(
        "note       ranks are listed up to a mesh of %d", kMeshRanksListed));
  }
}

Json DecodeJson(const Mesh& mesh, std::uint32_t ranks_per_node) {
  if (ranks_per_node == 0) return nullptr;
  const auto found = plan::DecodeAmplification(mesh, ranks_per_node).value();
  return {{"ranks_per_node", ranks_per_node},
          {"nodes", found.nodes},
          {"mean_nodes", plan::FormatFraction(found.mean_nodes)},
          {"max_nodes", found.max_nodes}};
}

std::string SummaryJson(const Mesh& mesh, std::uint32_t ranks_per_node) {
  Json axes = Json::array();
  for (const plan::Axis& axis : mesh.axes()) {
    axes.push_back({{"name", AxisText(axis.name)}, {"size", axis.size}});
  }
  return Json{{"schema", kSchema},
              {"type", "mesh"},
              {"mesh", mesh.Text()},
              {"axes", std::move(axes)},
              {"ranks", mesh.size()},
              {"data_world", mesh.DataWorld()},
              {"ranks_listed", mesh.size() <= kMeshRanksListed},
              {"decode", DecodeJson(mesh, ranks_per_node)}}
      .dump();
}

}  // namespace

std::vector<std::string> MeshLines(const Mesh& mesh,
                                   std::uint32_t ranks_per_node, bool json) {
  std::vector<std::string> lines;
  const std::uint32_t listed =
      mesh.size() <= kMeshRanksListed ? mesh.size() : 0;
  for (std::uint32_t r = 0; r < listed; ++r) {
    const Line line = LineOf(mesh, Rank{r});
    lines.push_back(json ? RankJson(mesh, line) : RankText(mesh, line));
  }
  if (json) {
    lines.push_back(SummaryJson(mesh, ranks_per_node));
  } else {
    AppendSummaryText(mesh, ranks_per_node, lines);
  }
  return lines;
}

void PrintMesh(const Mesh& mesh, std::uint32_t ranks_per_node, bool json) {
  for (const std::string& line : MeshLines(mesh, ranks_per_node, json)) {
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace penstock::cli
