#ifndef PENSTOCK_SERVER_CLI_PLAN_MESH_H_
#define PENSTOCK_SERVER_CLI_PLAN_MESH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/mesh.h"

namespace penstock::cli {

inline constexpr std::uint32_t kMeshRanksListed = 4096;

// One line a rank (coordinates, data rank, leader, roles), then the summary,
// with what nodes decode when ranks_per_node > 0. A mesh of more than
// kMeshRanksListed ranks has the summary alone, which says so. `json`: lines of
// the types "mesh_rank" and "mesh" of penstock.plan.v1.
std::vector<std::string> MeshLines(const plan::Mesh& mesh,
                                   std::uint32_t ranks_per_node, bool json);

// MeshLines on stdout.
void PrintMesh(const plan::Mesh& mesh, std::uint32_t ranks_per_node, bool json);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_MESH_H_
