#ifndef PENSTOCK_LOADTEST_MEASURE_PAIRS_H_
#define PENSTOCK_LOADTEST_MEASURE_PAIRS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::loadtest {

// One line of the table: ours against theirs, as a ratio of what both did in
// the same run on the same machine.
struct Ratio {
  std::string name, unit;
  double ours = 0, theirs = 0;  // medians
  double ratio = 0;             // median of the pairs' ratios
  double spread = 0;            // (upper - lower quartile) / median of ratios
  double bound = 0;
  bool at_least = true;  // else at most
  int pairs = 0;
  std::string note;
};

// Above this spread a ratio says nothing.
inline constexpr double kSpreadMax = 0.20;

// Runs the two in turn, the order swapped from pair to pair. A figure is what
// higher is better for (`at_least`) or lower (else).
absl::StatusOr<Ratio> RunPairs(
    const std::string& name, const std::string& unit, int pairs, double bound,
    bool at_least, const std::function<absl::StatusOr<double>()>& ours,
    const std::function<absl::StatusOr<double>()>& theirs);

double Median(std::vector<double> values);

// "ok", "missed" or "not judged (spread …)".
std::string Verdict(const Ratio& ratio);

}  // namespace penstock::loadtest

#endif  // PENSTOCK_LOADTEST_MEASURE_PAIRS_H_
