#include "common/plan/mesh.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::array kAxisTexts = {"pp", "dp_replicate", "dp_shard", "cp",
                                   "tp"};

std::string AxisSizeText(const Axis& axis) {
  return absl::StrCat(AxisText(axis.name), "=", axis.size);
}

std::string AxesText(const std::vector<Axis>& axes) {
  return absl::StrJoin(axes, ",", [](std::string* out, const Axis& axis) {
    out->append(AxisSizeText(axis));
  });
}

absl::Status CheckSizes(const std::vector<Axis>& axes, std::string_view where) {
  std::uint64_t ranks = 1;
  for (const Axis& axis : axes) {
    if (axis.size == 0 || axis.size > kMeshRanksMax) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       {.where = std::string(where),
                        .what = "an axis has an impossible size",
                        .found = AxisSizeText(axis),
                        .expected = absl::StrCat("1 to ", kMeshRanksMax),
                        .action = "correct the size, or leave the axis out"});
    }
    // Two factors of at most 2^20 each: no overflow before the check.
    ranks *= axis.size;
    if (ranks > kMeshRanksMax) {
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          {.where = std::string(where),
           .what = "the mesh has too many ranks",
           .found = AxesText(axes),
           .expected = absl::StrCat("a product of at most ", kMeshRanksMax),
           .action = "correct the sizes"});
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const std::vector<Axis>& axes, std::string_view where) {
  if (axes.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = std::string(where),
                      .what = "the mesh has no axis",
                      .found = "nothing",
                      .expected = "one axis or more, such as dp=1",
                      .action = "name the axes"});
  }
  std::array<bool, kAxisTexts.size()> seen{};
  for (const Axis& axis : axes) {
    bool& mark = seen[static_cast<std::size_t>(axis.name)];
    if (mark) {
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          {.where = std::string(where),
           .what =
               absl::StrCat("axis ", AxisText(axis.name), " is given twice"),
           .found = AxesText(axes),
           .expected = "each axis once",
           .action = "keep one of them; dp stands for dp_replicate and "
                     "dp_shard, so give either dp or those two"});
    }
    mark = true;
  }
  return absl::OkStatus();
}

}  // namespace

const char* AxisText(AxisName name) {
  return kAxisTexts[static_cast<std::size_t>(name)];
}

absl::StatusOr<Mesh> Mesh::Create(std::vector<Axis> axes,
                                  std::string_view where) {
  PENSTOCK_RETURN_IF_ERROR(CheckNames(axes, where));
  PENSTOCK_RETURN_IF_ERROR(CheckSizes(axes, where));
  Mesh mesh;
  mesh.axes_ = std::move(axes);
  mesh.strides_.resize(mesh.axes_.size());
  for (std::size_t i = mesh.axes_.size(); i-- > 0;) {
    mesh.strides_[i] = mesh.size_;
    mesh.size_ *= mesh.axes_[i].size;
  }
  return mesh;
}

std::uint32_t Mesh::SizeOf(AxisName name) const {
  for (const Axis& axis : axes_) {
    if (axis.name == name) return axis.size;
  }
  return 1;
}

std::string Mesh::Text() const { return AxesText(axes_); }

absl::Status Mesh::CheckRank(Rank rank) const {
  if (rank.value < size_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kOutOfRange,
                   {.where = absl::StrCat("mesh ", Text()),
                    .what = "no such rank",
                    .found = absl::StrCat("rank ", rank.value, " of ", size_),
                    .expected = absl::StrCat("0 to ", size_ - 1),
                    .action = "correct the rank or the mesh"});
}

std::uint32_t Mesh::Index(AxisName name, std::uint32_t rank) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return rank / strides_[i] % axes_[i].size;
  }
  return 0;
}

std::uint32_t Mesh::DataIndex(std::uint32_t rank) const {
  return Index(AxisName::kDpReplicate, rank) * SizeOf(AxisName::kDpShard) +
         Index(AxisName::kDpShard, rank);
}

absl::StatusOr<std::vector<std::uint32_t>> Mesh::CoordinatesOf(
    Rank rank) const {
  PENSTOCK_RETURN_IF_ERROR(CheckRank(rank));
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    indices.push_back(rank.value / strides_[i] % axes_[i].size);
  }
  return indices;
}

absl::StatusOr<Rank> Mesh::RankOf(
    absl::Span<const std::uint32_t> indices) const {
  if (indices.size() != axes_.size()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrCat("mesh ", Text()),
         .what = "coordinates do not fit the axes",
         .found = absl::StrCat(indices.size(), " indices"),
         .expected = absl::StrCat(axes_.size(), ", slowest axis first"),
         .action = "give one index an axis"});
  }
  Rank rank;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (indices[i] >= axes_[i].size) {
      return MakeError(absl::StatusCode::kOutOfRange,
                       {.where = absl::StrCat("mesh ", Text()),
                        .what = absl::StrCat("no such index on axis ",
                                             AxisText(axes_[i].name)),
                        .found = absl::StrCat(indices[i]),
                        .expected = absl::StrCat("0 to ", axes_[i].size - 1),
                        .action = "correct the index or the mesh"});
    }
    rank.value += indices[i] * strides_[i];
  }
  return rank;
}

absl::StatusOr<std::uint32_t> Mesh::IndexOn(AxisName name, Rank rank) const {
  PENSTOCK_RETURN_IF_ERROR(CheckRank(rank));
  return Index(name, rank.value);
}

absl::StatusOr<Rank> Mesh::DataRank(Rank rank) const {
  PENSTOCK_RETURN_IF_ERROR(CheckRank(rank));
  return Rank{DataIndex(rank.value)};
}

std::uint32_t Mesh::DataWorld() const {
  return SizeOf(AxisName::kDpReplicate) * SizeOf(AxisName::kDpShard);
}

absl::StatusOr<Rank> Mesh::AckLeader(Rank rank) const {
  PENSTOCK_RETURN_IF_ERROR(CheckRank(rank));
  Rank leader;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const AxisName name = axes_[i].name;
    if (name != AxisName::kDpReplicate && name != AxisName::kDpShard) continue;
    leader.value += rank.value / strides_[i] % axes_[i].size * strides_[i];
  }
  return leader;
}

absl::StatusOr<Amplification> DecodeAmplification(
    const Mesh& mesh, std::uint32_t ranks_per_node) {
  if (ranks_per_node == 0) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = absl::StrCat("mesh ", mesh.Text()),
                      .what = "nodes have no ranks",
                      .found = "0 ranks a node",
                      .expected = "1 or more",
                      .action = "give the ranks that one machine runs"});
  }
  // Ranks ascend, so nodes do: a share's node is new when it is not its last.
  const std::uint64_t shares = mesh.DataWorld();
  std::vector<std::optional<std::uint32_t>> last(shares);
  std::vector<std::uint32_t> nodes(shares, 0);
  Amplification out{.nodes = (mesh.size() - 1) / ranks_per_node + 1};
  std::uint64_t total = 0;
  for (std::uint32_t r = 0; r < mesh.size(); ++r) {
    PENSTOCK_ASSIGN_OR_RETURN(const Rank data, mesh.DataRank(Rank{r}));
    const std::uint32_t node = r / ranks_per_node;
    if (last[data.value] == node) continue;
    last[data.value] = node;
    out.max_nodes = std::max(out.max_nodes, ++nodes[data.value]);
    ++total;
  }
  const std::uint64_t common = std::gcd(total, shares);
  out.mean_nodes = {total / common, shares / common};
  return out;
}

absl::StatusOr<std::uint32_t> DataRanksPerNode(const Mesh& mesh,
                                               std::uint32_t ranks_per_node) {
  if (ranks_per_node == 0) return 0;
  std::vector<std::uint32_t> nodes(mesh.DataWorld());
  for (std::uint32_t r = 0; r < mesh.size(); ++r) {
    PENSTOCK_ASSIGN_OR_RETURN(const Rank leader, mesh.AckLeader({r}));
    PENSTOCK_ASSIGN_OR_RETURN(const Rank data, mesh.DataRank({r}));
    if (leader.value == r) nodes[data.value] = r / ranks_per_node;
  }
  const auto of_first = static_cast<std::uint32_t>(
      std::count(nodes.begin(), nodes.end(), nodes[0]));
  std::set<std::uint32_t> seen;
  for (std::uint32_t d = 0; d < nodes.size(); ++d) {
    // The first of a node's, or beside the one before it.
    const bool good = d % of_first == 0 ? seen.insert(nodes[d]).second
                                        : nodes[d] == nodes[d - 1];
    if (good) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "mesh " + mesh.Text(),
         .what =
             "its nodes do not have the same number of data ranks, one after "
             "the other",
         .found = absl::StrCat(ranks_per_node, " ranks a node: data rank ", d,
                               " is led on node ", nodes[d], ", node ",
                               nodes[0], " leads ", of_first),
         .expected = absl::StrCat("data rank d on node d / ", of_first),
         .action = "correct ranks_per_node or the order of the axes; only "
                   "cut: local needs it"});
  }
  return of_first;
}

}  // namespace penstock::plan
