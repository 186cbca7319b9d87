#ifndef PENSTOCK_TESTS_UNIT_PLAN_SMALL_MESHES_H_
#define PENSTOCK_TESTS_UNIT_PLAN_SMALL_MESHES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/mesh.h"

namespace penstock::test {

// Whether a refusal says where, what, found, expected and what to do.
inline bool HasFiveParts(const absl::Status& status) {
  const std::string text(status.message());
  const auto has = [&](const char* part) {
    const auto at = text.find(part);
    return at != std::string::npos && at + 13 < text.size() &&
           text[at + 13] != '\n';
  };
  return text.find(": ") < text.find('\n') && has("\n  found     ") &&
         has("\n  expected  ") && has("\n  do        ");
}

inline std::string TextOf(const std::vector<plan::Axis>& axes) {
  std::string text;
  for (const plan::Axis& axis : axes) {
    text += (text.empty() ? "" : ",") + std::string(plan::AxisText(axis.name)) +
            "=" + std::to_string(axis.size);
  }
  return text;
}

// Sizes of the five axes whose product is at most `ranks_max`.
inline void AppendSizes(std::uint32_t ranks_max, std::vector<plan::Axis> axes,
                        std::vector<std::vector<plan::Axis>>& out) {
  if (axes.size() == 5) {
    out.push_back(axes);
    return;
  }
  const auto name = static_cast<plan::AxisName>(axes.size());
  for (std::uint32_t size = 1; size <= ranks_max; ++size) {
    axes.push_back({name, size});
    AppendSizes(ranks_max / size, axes, out);
    axes.pop_back();
  }
}

// Every list of axes with at most `ranks_max` ranks, in every order of writing:
// with all five axes, and with those above size 1 alone.
inline std::vector<std::vector<plan::Axis>> AllAxes(std::uint32_t ranks_max) {
  std::vector<std::vector<plan::Axis>> sizes, out;
  AppendSizes(ranks_max, {}, sizes);
  const auto before = [](const plan::Axis& a, const plan::Axis& b) {
    return a.name < b.name;
  };
  for (auto axes : sizes) {
    for (bool all : {true, false}) {
      if (!all) {
        std::erase_if(axes, [](const plan::Axis& a) { return a.size == 1; });
        if (axes.empty()) continue;
      }
      std::sort(axes.begin(), axes.end(), before);
      do {
        out.push_back(axes);
      } while (std::next_permutation(axes.begin(), axes.end(), before));
    }
  }
  return out;
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_UNIT_PLAN_SMALL_MESHES_H_
