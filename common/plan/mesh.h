#ifndef PENSTOCK_COMMON_PLAN_MESH_H_
#define PENSTOCK_COMMON_PLAN_MESH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/decimal.h"
#include "common/plan/tensor_role.h"
#include "common/types/ids.h"

// The grid of trainer ranks, and what each of them is given of a batch. A mesh
// cuts what was planned; it never changes which samples a step has.
namespace penstock::plan {

inline constexpr std::uint32_t kMeshRanksMax = 1u << 20;

// In TorchTitan's order, slowest first. Expert parallelism changes no data and
// is no axis here.
enum class AxisName : std::uint8_t { kPp, kDpReplicate, kDpShard, kCp, kTp };

const char* AxisText(AxisName name);  // "pp", "dp_replicate", …

struct Axis {
  AxisName name = AxisName::kDpShard;
  std::uint32_t size = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

// How a framework lays axes over ranks, slowest first.
enum class MeshOrder : std::uint8_t {
  // pp, dp_replicate, dp_shard, cp, tp; Accelerate and Megatron alike.
  kTorchTitan,
  // dp_replicate, dp_shard, pp, cp, tp: Megatron's --use-tp-pp-dp-mapping.
  kMegatronTpPpDp,
  kPlain,  // as written
};

const char* MeshOrderText(MeshOrder order);

// "torchtitan", "megatron_tp_pp_dp", "plain".
//
// kInvalidArgument: another text
absl::StatusOr<MeshOrder> ParseMeshOrder(std::string_view text);

// A value; any thread. At most kMeshRanksMax ranks. Every function that takes a
// rank returns kOutOfRange for one that the mesh does not have.
class Mesh {
 public:
  // `axes` slowest first. An absent axis has size 1 and index 0.
  //
  // kInvalidArgument: no axis, an axis twice, a size of 0, too many ranks;
  //                   `where` begins the message
  static absl::StatusOr<Mesh> Create(std::vector<Axis> axes,
                                     std::string_view where = "mesh");

  const std::vector<Axis>& axes() const { return axes_; }
  std::uint32_t size() const { return size_; }
  std::uint32_t SizeOf(AxisName name) const;

  // "dp_shard=4,cp=2": ParseMesh(Text(), kPlain) is this mesh.
  std::string Text() const;

  // One index an axis, in the order of axes().
  absl::StatusOr<std::vector<std::uint32_t>> CoordinatesOf(Rank rank) const;

  // The reverse.
  //
  // kInvalidArgument: not one index an axis
  // kOutOfRange:      an index >= its axis
  absl::StatusOr<Rank> RankOf(absl::Span<const std::uint32_t> indices) const;

  absl::StatusOr<std::uint32_t> IndexOn(AxisName name, Rank rank) const;

  // The share of the global batch that `rank` works on: dp_replicate index *
  // dp_shard size + dp_shard index, as cut.h takes it.
  absl::StatusOr<Rank> DataRank(Rank rank) const;
  std::uint32_t DataWorld() const;

  // The rank that acknowledges steps for the data rank of `rank`: the one with
  // index 0 on pp, cp and tp. It has an iterator in every framework, so the
  // minimum over leaders never waits for a rank that consumes nothing.
  absl::StatusOr<Rank> AckLeader(Rank rank) const;

 private:
  Mesh() = default;
  absl::Status CheckRank(Rank rank) const;
  std::uint32_t Index(AxisName name, std::uint32_t rank) const;
  std::uint32_t DataIndex(std::uint32_t rank) const;

  std::vector<Axis> axes_;
  std::vector<std::uint32_t> strides_;  // ranks between two neighbours
  std::uint32_t size_ = 1;
};

// "dp=4,cp=2,tp=2" in any order; sorted as `order` says. "dp=N" stands for
// dp_replicate=1,dp_shard=N. Blanks around names and sizes are allowed.
//
// kInvalidArgument: as Create; not name=size; ep, sp or an unknown name
absl::StatusOr<Mesh> ParseMesh(std::string_view text,
                               MeshOrder order = MeshOrder::kTorchTitan);

// On how many nodes one data rank's share is decoded.
struct Amplification {
  std::uint32_t nodes = 0;      // of the whole mesh
  std::uint32_t max_nodes = 0;  // of the widest share
  Fraction mean_nodes;          // over the shares
};

// Node of a rank = rank / ranks_per_node; the last node may be partly filled.
// O(ranks).
//
// kInvalidArgument: ranks_per_node is 0
absl::StatusOr<Amplification> DecodeAmplification(const Mesh& mesh,
                                                  std::uint32_t ranks_per_node);

// How many data ranks a node has, as DataRanks counts them: a data rank is on
// the node of its leader. 0 ranks_per_node: 0, one node. O(ranks).
//
// kInvalidArgument: nodes do not have the same number of them, one after the
// other
absl::StatusOr<std::uint32_t> DataRanksPerNode(const Mesh& mesh,
                                               std::uint32_t ranks_per_node);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_MESH_H_
