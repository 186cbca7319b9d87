#include "common/plan/balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace penstock::plan {
namespace {

constexpr int kSwapsARank = 8;

std::vector<std::uint32_t> LargestFirst(std::span<const std::uint64_t> costs) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return costs[a] > costs[b]; });
  return order;
}

class Balancer {
 public:
  Balancer(std::span<const std::uint64_t> costs, std::uint32_t world)
      : costs_(costs), world_(world), rank_(costs.size()), items_(world), load_(world) {}

  std::vector<std::uint32_t> Run() {
    Spread();
    for (std::uint64_t i = 0; i < std::uint64_t{kSwapsARank} * world_; ++i) {
      if (!Improve()) break;
    }
    return std::move(rank_);
  }

 private:
  std::uint64_t Room(std::uint32_t r) const {
    return costs_.size() / world_ + (r < costs_.size() % world_ ? 1 : 0);
  }

  void Spread() {
    using Entry = std::pair<std::uint64_t, std::uint32_t>;  // load, rank
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> lightest;
    for (std::uint32_t r = 0; r < world_; ++r) {
      if (Room(r) > 0) lightest.emplace(0, r);
    }
    for (const std::uint32_t item : LargestFirst(costs_)) {
      const std::uint32_t r = lightest.top().second;
      lightest.pop();
      items_[r].push_back(item);  // descending costs
      rank_[item] = r;
      load_[r] += costs_[item];
      if (items_[r].size() < Room(r)) lightest.emplace(load_[r], r);
    }
  }

  // Swaps one item of the heaviest rank for a smaller one elsewhere, so that the
  // larger of both loads falls most. False: nothing helps.
  bool Improve() {
    const auto heavy = static_cast<std::uint32_t>(
        std::max_element(load_.begin(), load_.end()) - load_.begin());
    std::uint64_t best = load_[heavy];
    std::pair<std::size_t, std::size_t> at;
    std::uint32_t other = heavy;
    for (std::uint32_t r = 0; r < world_; ++r) {
      if (r == heavy || load_[r] >= load_[heavy]) continue;
      for (std::size_t i = 0; i < items_[heavy].size(); ++i) {
        const auto [after, j] = BestSwap(heavy, i, r);
        if (after >= best) continue;
        best = after;
        at = {i, j};
        other = r;
      }
    }
    if (other == heavy) return false;
    Swap(heavy, at.first, other, at.second);
    return true;
  }

  // The larger load after the best swap of item i of `heavy` with one of r.
  std::pair<std::uint64_t, std::size_t> BestSwap(std::uint32_t heavy, std::size_t i,
                                                 std::uint32_t r) const {
    const std::uint64_t a = costs_[items_[heavy][i]];
    const std::uint64_t half = (load_[heavy] - load_[r]) / 2;
    const std::uint64_t ideal = a - std::min(a, half);  // of the other item
    const auto& items = items_[r];
    const auto below = std::lower_bound(
        items.begin(), items.end(), ideal,
        [&](std::uint32_t item, std::uint64_t c) { return costs_[item] > c; });
    std::pair<std::uint64_t, std::size_t> best{UINT64_MAX, 0};
    for (int back = 0; back <= 1; ++back) {
      const auto j = below - items.begin() - back;
      if (j < 0 || j >= static_cast<std::ptrdiff_t>(items.size())) continue;
      const std::uint64_t b = costs_[items[static_cast<std::size_t>(j)]];
      if (b >= a) continue;
      const std::uint64_t after =
          std::max(load_[heavy] - a + b, load_[r] - b + a);
      if (after < best.first) best = {after, static_cast<std::size_t>(j)};
    }
    return best;
  }

  void Swap(std::uint32_t r, std::size_t i, std::uint32_t s, std::size_t j) {
    const std::uint32_t a = items_[r][i], b = items_[s][j];
    load_[r] += costs_[b] - costs_[a];
    load_[s] += costs_[a] - costs_[b];
    items_[r][i] = b;
    items_[s][j] = a;
    rank_[a] = s;
    rank_[b] = r;
    for (auto* items : {&items_[r], &items_[s]}) {
      std::sort(items->begin(), items->end(), [&](auto x, auto y) {
        return std::pair(costs_[y], x) < std::pair(costs_[x], y);
      });
    }
  }

  std::span<const std::uint64_t> costs_;
  const std::uint32_t world_;
  std::vector<std::uint32_t> rank_;
  std::vector<std::vector<std::uint32_t>> items_;  // by rank, largest first
  std::vector<std::uint64_t> load_;
};

}  // namespace

std::vector<std::uint32_t> BalanceRanks(std::span<const std::uint64_t> costs,
                                        std::uint32_t world) {
  return Balancer(costs, world).Run();
}

BalanceReport ReportBalance(std::span<const std::uint64_t> costs,
                            std::span<const std::uint32_t> ranks,
                            std::uint32_t world) {
  std::vector<std::uint64_t> load(world), sorted(costs.begin(), costs.end());
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    load[ranks[i]] += costs[i];
    all += costs[i];
  }
  if (all == 0) return {};
  const double mean = static_cast<double>(all) / world;
  std::sort(sorted.begin(), sorted.end());
  std::uint64_t least = sorted.back();  // what the rank of the largest has at least
  const std::size_t others = std::max<std::size_t>(costs.size() / world, 1) - 1;
  for (std::size_t i = 0; i < others; ++i) least += sorted[i];
  return {static_cast<double>(*std::max_element(load.begin(), load.end())) / mean,
          std::max(1.0, static_cast<double>(least) / mean)};
}

}  // namespace penstock::plan
