#include "common/plan/pool.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

__extension__ using Wide = unsigned __int128;

// A positive ratio whose parts are below 2^32.
struct Ratio {
  std::uint64_t num = 1, den = 1;
};

Ratio Narrow(Wide num, Wide den) {
  while (num >> 32 != 0 || den >> 32 != 0) {
    num >>= 1;
    den >>= 1;
  }
  return {std::max<std::uint64_t>(static_cast<std::uint64_t>(num), 1),
          std::max<std::uint64_t>(static_cast<std::uint64_t>(den), 1)};
}

// How many times larger one is than the other: num >= den, parts below 2^64.
Ratio Apart(const Ratio& a, const Ratio& b) {
  const std::uint64_t x = a.num * b.den, y = a.den * b.num;
  return x < y ? Ratio{y, x} : Ratio{x, y};
}

bool Less(const Ratio& a, const Ratio& b) {
  return Wide{a.num} * b.den < Wide{b.num} * a.den;
}

Ratio RateOf(const format::TrackRow& t) {
  if (t.rate_num != 0 && t.rate_den != 0) return {t.rate_num, t.rate_den};
  const std::int64_t ns = t.end_ns - t.first_ns;
  return Narrow(Wide{t.rows} * 1'000'000'000,
                static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 1)));
}

// Keeps the buckets whose ratio is nearest.
template <typename Of>
void KeepNearest(std::vector<std::uint32_t>& ids, const Ratio& wanted,
                 const Of& ratio_of) {
  Ratio best = Apart(wanted, ratio_of(ids[0]));
  for (const std::uint32_t id : ids) {
    const Ratio apart = Apart(wanted, ratio_of(id));
    if (Less(apart, best)) best = apart;
  }
  std::erase_if(ids, [&](std::uint32_t id) {
    return Less(best, Apart(wanted, ratio_of(id)));
  });
}

absl::Status TooLongForAll(const BucketSpec& largest, const ViewSpec& view,
                           std::string_view where) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = std::string(where),
       .what = "a window is longer than every bucket of its size",
       .found = absl::StrCat("windows of ", view.frames, " frames"),
       .expected = absl::StrCat("at most ", largest.frames, " frames (",
                                largest.width, "x", largest.height, ")"),
       .action = absl::StrCat("add a bucket of ", view.frames, " frames and ",
                              largest.width, "x", largest.height,
                              ", or use frames: ", largest.frames)});
}

}  // namespace

std::vector<std::uint32_t> BucketsOf(std::span<const BucketSpec> buckets,
                                     const format::TrackRow& track) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < buckets.size(); ++i) ids.push_back(i);
  if (ids.empty()) return ids;
  if (buckets[0].fps.num != 0) {
    KeepNearest(ids, RateOf(track), [&](std::uint32_t i) {
      return Narrow(buckets[i].fps.num, buckets[i].fps.den);
    });
  }
  const bool turned = track.rotation % 180 == 90;
  const std::uint32_t width = turned ? track.height : track.width;
  const std::uint32_t height = turned ? track.width : track.height;
  KeepNearest(ids, Narrow(width, height), [&](std::uint32_t i) {
    return Ratio{buckets[i].width, buckets[i].height};
  });
  KeepNearest(ids, Narrow(Wide{width} * height, 1), [&](std::uint32_t i) {
    return Narrow(Wide{buckets[i].width} * buckets[i].height, 1);
  });
  // What is left may differ in shape by equal distances: the first one's shape.
  const BucketSpec& first = buckets[ids[0]];
  std::erase_if(ids, [&](std::uint32_t i) {
    return buckets[i].width != first.width || buckets[i].height != first.height ||
           buckets[i].fps != first.fps;
  });
  std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) {
    return buckets[a].frames < buckets[b].frames;
  });
  return ids;
}

absl::StatusOr<Pool> Pool::Create(const ViewSpec& view,
                                  std::span<const BucketSpec> buckets,
                                  const format::CaptureIndexView& index,
                                  std::span<const SelectedCapture> captures,
                                  std::string_view where) {
  Pool out;
  // Also says what is wrong with the captures before they are looked at.
  PENSTOCK_ASSIGN_OR_RETURN(View all, View::Create(view, index, captures, where));
  out.samples_ = all.size();
  if (buckets.empty()) {
    out.buckets_.push_back({0, 1, std::move(all)});
    return out;
  }
  out.plain_ = false;
  std::map<std::vector<std::uint32_t>, std::vector<SelectedCapture>> groups;
  for (const SelectedCapture& c : captures) {
    groups[BucketsOf(buckets, index.tracks[c.track])].push_back(c);
  }
  for (const auto& [ids, members] : groups) {
    std::uint64_t low = view.shortest();
    for (const std::uint32_t id : ids) {
      const BucketSpec& b = buckets[id];
      if (b.frames < low) continue;
      const std::uint64_t high = std::min(b.frames, view.frames);
      if (high < low) break;
      PENSTOCK_ASSIGN_OR_RETURN(
          View part, View::CreateOf(view, low, high, index, members, where));
      low = high + 1;
      if (part.size() > 0) out.buckets_.push_back({id, b.samples, std::move(part)});
    }
    if (low > view.frames) continue;
    PENSTOCK_ASSIGN_OR_RETURN(
        const View rest,
        View::CreateOf(view, low, view.frames, index, members, where));
    if (rest.size() > 0) return TooLongForAll(buckets[ids.back()], view, where);
  }
  std::sort(out.buckets_.begin(), out.buckets_.end(),
            [](const Bucket& a, const Bucket& b) { return a.shape < b.shape; });
  return out;
}

absl::StatusOr<Pool> Pool::FromRows(const ViewSpec& view,
                                    std::span<const BucketSpec> buckets,
                                    const PoolRows& rows,
                                    const format::CaptureIndexView& index,
                                    const std::shared_ptr<const void>& owner,
                                    std::string_view where) {
  Pool out;
  out.plain_ = buckets.empty();
  bool good = out.plain_ ? rows.buckets.size() == 1 : !rows.buckets.empty();
  for (std::size_t i = 0; good && i < rows.buckets.size(); ++i) {
    const PoolRows::Bucket& b = rows.buckets[i];
    good = b.view.size > 0 && (out.plain_ ? b.shape == 0 : b.shape < buckets.size()) &&
           (i == 0 || rows.buckets[i - 1].shape <= b.shape);
    if (!good) break;
    PENSTOCK_ASSIGN_OR_RETURN(View made,
                              View::FromRows(view, b.view, index, owner, where));
    out.samples_ += made.size();
    out.buckets_.push_back(
        {b.shape, out.plain_ ? 1 : buckets[b.shape].samples, std::move(made)});
  }
  if (good) return out;
  return MakeError(absl::StatusCode::kDataLoss,
                   {.where = std::string(where),
                    .what = "buckets that the feed does not have",
                    .found = absl::StrCat(rows.buckets.size(), " buckets"),
                    .expected = "rows as Pool::Create makes them",
                    .action = "select the captures again"});
}

PoolRows Pool::rows() const {
  PoolRows out;
  for (const Bucket& b : buckets_) out.buckets.push_back({b.shape, b.view.rows()});
  return out;
}

std::uint64_t Pool::UnitsBefore(std::uint64_t passes) const {
  Wide units = 0;
  for (const Bucket& b : buckets_) units += Wide{passes} * b.view.size() / b.samples;
  return units > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(units);
}

std::uint64_t Pool::PassesBegun(std::uint64_t units) const {
  if (units == 0) return 0;
  if (plain_) return (units - 1) / samples_ + 1;
  // The bucket with the most units a pass has all of them after so many passes.
  Wide most = UINT64_MAX;
  for (const Bucket& b : buckets_) {
    most = std::min(most, (Wide{units} * b.samples + b.view.size() - 1) / b.view.size());
  }
  std::uint64_t low = 1, high = static_cast<std::uint64_t>(most);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (UnitsBefore(middle) >= units) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Pool::Unit Pool::Merged(std::uint64_t unit) const {
  const std::uint64_t epoch = PassesBegun(unit + 1) - 1;
  const std::uint64_t place = unit - UnitsBefore(epoch);
  struct Share {
    std::uint64_t before, count, given;
  };
  std::vector<Share> shares;
  std::uint64_t total = 0, given = 0;
  for (const Bucket& b : buckets_) {
    const auto until = [&](std::uint64_t passes) {
      return static_cast<std::uint64_t>(Wide{passes} * b.view.size() / b.samples);
    };
    const std::uint64_t before = until(epoch);
    shares.push_back({before, until(epoch + 1) - before, 0});
    total += shares.back().count;
  }
  // Those that come by place/total of the epoch, as many as there are; then one by
  // one to `place` in all.
  for (Share& s : shares) {
    s.given = static_cast<std::uint64_t>((2 * Wide{s.count} * place + total) /
                                         (2 * Wide{total}));
    given += s.given;
  }
  // Whether a's number i comes before b's number j.
  const auto before = [&](std::size_t a, std::uint64_t i, std::size_t b,
                          std::uint64_t j) {
    const Wide x = Wide{2 * i + 1} * shares[b].count;
    const Wide y = Wide{2 * j + 1} * shares[a].count;
    return x != y ? x < y : a < b;
  };
  const auto next = [&] {
    std::size_t best = shares.size();
    for (std::size_t b = 0; b < shares.size(); ++b) {
      if (shares[b].given == shares[b].count) continue;
      if (best == shares.size() ||
          before(b, shares[b].given, best, shares[best].given)) {
        best = b;
      }
    }
    return best;
  };
  const auto last = [&] {
    std::size_t best = shares.size();
    for (std::size_t b = 0; b < shares.size(); ++b) {
      if (shares[b].given == 0) continue;
      if (best == shares.size() ||
          before(best, shares[best].given - 1, b, shares[b].given - 1)) {
        best = b;
      }
    }
    return best;
  };
  for (; given < place; ++given) ++shares[next()].given;
  for (; given > place; --given) --shares[last()].given;
  const std::size_t b = next();
  return {static_cast<std::uint32_t>(b),
          (shares[b].before + shares[b].given) * buckets_[b].samples};
}

}  // namespace penstock::plan
