#ifndef PENSTOCK_SERVER_CLI_PLAN_PICTURE_H_
#define PENSTOCK_SERVER_CLI_PLAN_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::cli {

// One step of a rank, or of the ranks of a row.
struct PlanCell {
  double of_mean = 1;        // predicted cost over the step's mean of all ranks;
                             // of several ranks the costliest
  std::uint64_t masked = 0;  // units
};

// What was drawn of a source and what was asked for, before each step and at the
// end: one more than steps, the first is 0.
struct SourceShare {
  std::string name;
  std::vector<std::uint64_t> realised;
  std::vector<double> asked;  // empty: nothing is asked for
};

// What `penstock plan --heatmap` draws.
struct PlanPicture {
  std::string feed, order_digest, cost;
  std::string units;    // that ranks share, plural
  std::string counted;  // that sources are counted in, plural
  std::uint64_t from = 0;
  std::uint32_t world = 1, ranks_of_row = 1;
  std::vector<std::vector<PlanCell>> steps;  // [step - from][row]
  std::vector<SourceShare> sources;
};

// The picture as a file: costs over steps and ranks, below them the mixture.
//
// Pure: equal pictures give equal bytes.
// Shape: at least one step, row and source. Sources after the seventh, by what was
//   drawn, become one line when there are more than eight.
std::string DrawPlan(const PlanPicture& picture);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_PLAN_PICTURE_H_
