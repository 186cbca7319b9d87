#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/plan/mesh.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

using enum AxisName;

constexpr std::array kAxes = {kPp, kDpReplicate, kDpShard, kCp, kTp};
constexpr std::array kMegatronAxes = {kDpReplicate, kDpShard, kPp, kCp, kTp};
constexpr std::array kOrders = {MeshOrder::kTorchTitan,
                                MeshOrder::kMegatronTpPpDp, MeshOrder::kPlain};
constexpr char kAxesExpected[] = "pp, dp_replicate, dp_shard (or dp), cp, tp";
constexpr std::size_t kShownMax = 80;  // of a text in a message

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"",
                      absl::CEscape(std::string(text.substr(0, kShownMax))),
                      text.size() > kShownMax ? "…\"" : "\"");
}

absl::Status Refuse(std::string_view where, std::string what,
                    std::string_view found, std::string expected,
                    std::string action) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = std::string(where),
                    .what = std::move(what),
                    .found = Quoted(found),
                    .expected = std::move(expected),
                    .action = std::move(action)});
}

std::string_view Trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Cuts the text up to `mark` off `rest`; what follows the mark stays.
std::string_view CutAt(char mark, std::string_view& rest) {
  const std::size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view head = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return head;
}

std::optional<AxisName> FindAxis(std::string_view name) {
  for (AxisName axis : kAxes) {
    if (name == AxisText(axis)) return axis;
  }
  return std::nullopt;
}

absl::Status RefuseName(std::string_view where, std::string_view name) {
  if (name == "ep") {
    return Refuse(where, "expert parallelism (ep) is no axis of the data mesh",
                  name, kAxesExpected,
                  "leave ep out: it changes no data, its ranks are already "
                  "counted in the other axes");
  }
  if (name == "sp") {
    return Refuse(where,
                  "sequence parallelism (sp) is no axis of the data mesh", name,
                  kAxesExpected,
                  "leave sp out where it runs over the tp ranks; count ranks "
                  "that each load a sample (Ulysses) in dp_shard");
  }
  return Refuse(where, "no such axis", name, kAxesExpected, "correct the name");
}

absl::StatusOr<std::uint32_t> ParseSize(std::string_view where,
                                        std::string_view part,
                                        std::string_view digits) {
  std::uint32_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, size);
  if (error == std::errc() && at == end && size >= 1 && size <= kMeshRanksMax)
    return size;
  return Refuse(where, "an axis has an impossible size", part,
                absl::StrCat("a whole number from 1 to ", kMeshRanksMax),
                "correct the size, or leave the axis out");
}

// Appends the axis, for dp the two axes, that one "name=size" stands for.
absl::Status AppendAxes(std::string_view where, std::string_view part,
                        std::vector<Axis>& axes) {
  if (part.find('=') == std::string_view::npos) {
    return Refuse(where, "a part is not an axis and its size", part,
                  "name=size, parted by commas, such as dp=4,tp=2",
                  "correct the text");
  }
  std::string_view digits = part;
  const std::string_view name = Trim(CutAt('=', digits));
  const auto axis = name == "dp" ? kDpShard : FindAxis(name);
  if (!axis) return RefuseName(where, name);
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t size,
                            ParseSize(where, part, Trim(digits)));
  if (name == "dp") axes.push_back({kDpReplicate, 1});
  axes.push_back({*axis, size});
  return absl::OkStatus();
}

void Sort(MeshOrder order, std::vector<Axis>& axes) {
  if (order == MeshOrder::kPlain) return;
  const auto& names = order == MeshOrder::kTorchTitan ? kAxes : kMegatronAxes;
  std::stable_sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) {
    return std::find(names.begin(), names.end(), a.name) <
           std::find(names.begin(), names.end(), b.name);
  });
}

}  // namespace

const char* MeshOrderText(MeshOrder order) {
  switch (order) {
    case MeshOrder::kMegatronTpPpDp:
      return "megatron_tp_pp_dp";
    case MeshOrder::kPlain:
      return "plain";
    case MeshOrder::kTorchTitan:
      break;
  }
  return "torchtitan";
}

absl::StatusOr<MeshOrder> ParseMeshOrder(std::string_view text) {
  for (MeshOrder order : kOrders) {
    if (text == MeshOrderText(order)) return order;
  }
  return Refuse("mesh order", "no such order of axes", text,
                absl::StrJoin(kOrders, ", ",
                              [](std::string* out, MeshOrder order) {
                                out->append(MeshOrderText(order));
                              }),
                "take torchtitan unless ranks are laid out otherwise");
}

absl::StatusOr<Mesh> ParseMesh(std::string_view text, MeshOrder order) {
  const std::string where = absl::StrCat("mesh ", Quoted(text));
  std::vector<Axis> axes;
  std::string_view rest = Trim(text);
  // A comma at the end is a part without text, and refused as any other.
  const bool dangling = !rest.empty() && rest.back() == ',';
  while (!rest.empty()) {
    PENSTOCK_RETURN_IF_ERROR(AppendAxes(where, CutAt(',', rest), axes));
  }
  if (dangling) PENSTOCK_RETURN_IF_ERROR(AppendAxes(where, "", axes));
  Sort(order, axes);
  return Mesh::Create(std::move(axes), where);
}

}  // namespace penstock::plan
