#include "common/plan/balance.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace penstock::plan {
namespace {

constexpr int kSwapsARank = 8;

__extension__ using Wide = unsigned __int128;

// How long a rank takes for a load: compared as fractions, never divided.
struct Time {
  std::uint64_t load = 0, speed = 1;
  friend bool operator<(const Time& a, const Time& b) {
    return Wide{a.load} * b.speed < Wide{b.load} * a.speed;
  }
};

std::vector<std::uint32_t> LargestFirst(std::span<const std::uint64_t> costs) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return costs[a] > costs[b]; });
  return order;
}

class Balancer {
 public:
  Balancer(std::span<const std::uint64_t> costs,
           std::span<const std::uint64_t> room, std::span<const Decimal> speeds)
      : costs_(costs),
        room_(room),
        world_(static_cast<std::uint32_t>(room.size())),
        rank_(costs.size()),
        items_(world_),
        times_(world_) {
    for (std::size_t r = 0; r < speeds.size(); ++r)
      times_[r].speed = speeds[r].nanos;
  }

  std::vector<std::uint32_t> Run() {
    Spread();
    for (std::uint64_t i = 0; i < std::uint64_t{kSwapsARank} * world_; ++i) {
      if (!Improve()) break;
    }
    return std::move(rank_);
  }

 private:
  // When the rank would end an item of the average cost.
  Time Next(std::uint32_t r) const {
    return {times_[r].load + mean_, times_[r].speed};
  }

  void Spread() {
    if (costs_.empty()) return;
    mean_ = static_cast<std::uint64_t>(
        std::accumulate(costs_.begin(), costs_.end(), Wide{0}) / costs_.size());
    const auto later = [this](std::uint32_t r, std::uint32_t s) {
      const Time a = Next(r), b = Next(s);
      return b < a || (!(a < b) && s < r);
    };
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>,
                        decltype(later)>
        first(later);
    for (std::uint32_t r = 0; r < world_; ++r) {
      if (room_[r] > 0) first.push(r);
    }
    for (const std::uint32_t item : LargestFirst(costs_)) {
      const std::uint32_t r = first.top();
      first.pop();
      items_[r].push_back(item);  // descending costs
      rank_[item] = r;
      times_[r].load += costs_[item];
      if (items_[r].size() < room_[r]) first.push(r);
    }
  }

  // Swaps one item of the last rank for a smaller one elsewhere, so that the
  // later of both ends falls most. False: nothing helps.
  bool Improve() {
    const auto last = static_cast<std::uint32_t>(
        std::max_element(times_.begin(), times_.end()) - times_.begin());
    Time best = times_[last];
    std::pair<std::size_t, std::size_t> at;
    std::uint32_t other = last;
    for (std::uint32_t r = 0; r < world_; ++r) {
      if (r == last || !(times_[r] < times_[last])) continue;
      for (std::size_t i = 0; i < items_[last].size(); ++i) {
        const auto [after, j] = BestSwap(last, i, r);
        if (!(after < best)) continue;
        best = after;
        at = {i, j};
        other = r;
      }
    }
    if (other == last) return false;
    Swap(last, at.first, other, at.second);
    return true;
  }

  // The later end after the best swap of item i of `last` with one of r.
  std::pair<Time, std::size_t> BestSwap(std::uint32_t last, std::size_t i,
                                        std::uint32_t r) const {
    const std::uint64_t a = costs_[items_[last][i]];
    const Time &t = times_[last], &u = times_[r];
    // What has to move so that both end together.
    const auto move = static_cast<std::uint64_t>(
        (Wide{t.load} * u.speed - Wide{u.load} * t.speed) /
        (Wide{t.speed} + u.speed));
    const std::uint64_t ideal = a - std::min(a, move);  // of the other item
    const auto& items = items_[r];
    const auto below = std::lower_bound(
        items.begin(), items.end(), ideal,
        [&](std::uint32_t item, std::uint64_t c) { return costs_[item] > c; });
    std::pair<Time, std::size_t> best{t, 0};
    for (int back = 0; back <= 1; ++back) {
      const auto j = below - items.begin() - back;
      if (j < 0 || j >= static_cast<std::ptrdiff_t>(items.size())) continue;
      const std::uint64_t b = costs_[items[static_cast<std::size_t>(j)]];
      if (b >= a) continue;
      const Time after = std::max(Time{t.load - a + b, t.speed},
                                  Time{u.load - b + a, u.speed});
      if (after < best.first) best = {after, static_cast<std::size_t>(j)};
    }
    return best;
  }

  void Swap(std::uint32_t r, std::size_t i, std::uint32_t s, std::size_t j) {
    const std::uint32_t a = items_[r][i], b = items_[s][j];
    times_[r].load += costs_[b] - costs_[a];
    times_[s].load += costs_[a] - costs_[b];
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
  std::span<const std::uint64_t> room_;
  const std::uint32_t world_;
  std::uint64_t mean_ = 0;
  std::vector<std::uint32_t> rank_;
  std::vector<std::vector<std::uint32_t>> items_;  // by rank, largest first
  std::vector<Time> times_;
};

}  // namespace

std::vector<std::uint32_t> BalanceRanks(std::span<const std::uint64_t> costs,
                                        std::span<const std::uint64_t> room,
                                        std::span<const Decimal> speeds) {
  return Balancer(costs, room, speeds).Run();
}

BalanceReport ReportBalance(std::span<const std::uint64_t> costs,
                            std::span<const std::uint32_t> ranks,
                            std::uint32_t world,
                            std::span<const Decimal> speeds) {
  std::vector<std::uint64_t> load(world), count(world);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    load[ranks[i]] += costs[i];
    ++count[ranks[i]];
  }
  std::vector<double> sorted(costs.begin(), costs.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> smallest(costs.size() + 1);  // so many together
  std::partial_sum(sorted.begin(), sorted.end(), smallest.begin() + 1);
  if (smallest.back() == 0) return {};
  const auto speed_of = [&](std::uint32_t r) {
    return speeds.empty() ? 1.0 : static_cast<double>(speeds[r].nanos) / 1e9;
  };
  double speed = 0;
  for (std::uint32_t r = 0; r < world; ++r) speed += speed_of(r);
  const double mean = smallest.back() / speed;
  BalanceReport out{0, 1};
  double soonest = std::numeric_limits<double>::infinity();
  for (std::uint32_t r = 0; r < world; ++r) {
    if (count[r] == 0) continue;
    const double due = mean * speed_of(r);
    out.max_over_mean =
        std::max(out.max_over_mean, static_cast<double>(load[r]) / due);
    out.lower_bound = std::max(out.lower_bound, smallest[count[r]] / due);
    soonest = std::min(soonest, (sorted.back() + smallest[count[r] - 1]) / due);
  }
  out.lower_bound = std::max(out.lower_bound, soonest);
  return out;
}

}  // namespace penstock::plan
