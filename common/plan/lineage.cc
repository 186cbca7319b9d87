#include "common/plan/lineage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/strata.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

constexpr std::uint64_t kViewSizeMax = std::uint64_t{1} << 46;

using Groups = std::map<std::string, std::vector<SelectedCapture>>;

absl::StatusOr<Groups> GroupsOf(const SourceInput& input, const StrataSpec& strata,
                                std::string_view where) {
  Groups groups;
  if (strata.by.empty()) {
    groups[""] = input.captures;
    return groups;
  }
  if (input.labels.size() != input.captures.size()) {
    return absl::InvalidArgumentError("strata need a label of each capture");
  }
  for (std::size_t i = 0; i < input.captures.size(); ++i) {
    groups[input.labels[i]].push_back(input.captures[i]);
  }
  if (groups.size() <= kStrataMax) return groups;
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = absl::StrCat(std::string(where), ", strata"),
                    .what = "too many groups",
                    .found = absl::StrCat(groups.size()),
                    .expected = absl::StrCat("at most ", kStrataMax),
                    .action = "stratify by fewer columns"});
}

absl::Status CheckSize(std::uint64_t size, std::string_view where) {
  if (size <= kViewSizeMax) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = std::string(where),
                    .what = "too many windows",
                    .found = absl::StrCat(size),
                    .expected = "at most 2^46",
                    .action = "use a larger hop"});
}

}  // namespace

absl::StatusOr<Lineage> Lineage::Create(const ViewSpec& view,
                                        const StrataSpec& strata,
                                        std::span<const BucketSpec> buckets,
                                        const SourceInput& input,
                                        std::string_view where) {
  PENSTOCK_ASSIGN_OR_RETURN(const Groups groups, GroupsOf(input, strata, where));
  Lineage out;
  for (const auto& [label, captures] : groups) {
    const std::string at =
        label.empty() ? std::string(where)
                      : absl::StrCat(std::string(where), ", group \"", label, "\"");
    PENSTOCK_ASSIGN_OR_RETURN(
        Pool pool, Pool::Create(view, buckets, input.index, captures, at));
    PENSTOCK_RETURN_IF_ERROR(out.Add(label, std::move(pool), where));
  }
  PENSTOCK_RETURN_IF_ERROR(out.Weigh(strata, where));
  return out;
}

absl::StatusOr<Lineage> Lineage::FromRows(const ViewSpec& view,
                                          const StrataSpec& strata,
                                          std::span<const BucketSpec> buckets,
                                          const LineageRows& rows,
                                          const format::CaptureIndexView& index,
                                          const std::shared_ptr<const void>& owner,
                                          std::string_view where) {
  Lineage out;
  const std::size_t count = rows.strata.size();
  bool good = count >= 1 && count <= (strata.by.empty() ? 1 : kStrataMax);
  for (std::size_t i = 0; good && i < count; ++i) {
    const LineageRows::Stratum& s = rows.strata[i];
    good = strata.by.empty() ? s.label.empty()
                             : i == 0 || rows.strata[i - 1].label < s.label;
    if (!good) break;
    PENSTOCK_ASSIGN_OR_RETURN(
        Pool pool, Pool::FromRows(view, buckets, s.pool, index, owner, where));
    PENSTOCK_RETURN_IF_ERROR(out.Add(s.label, std::move(pool), where));
  }
  if (good) {
    PENSTOCK_RETURN_IF_ERROR(out.Weigh(strata, where));
    return out;
  }
  return MakeError(absl::StatusCode::kDataLoss,
                   {.where = std::string(where),
                    .what = "groups that the feed does not have",
                    .found = absl::StrCat(count, " groups"),
                    .expected = "rows as Lineage::Create makes them",
                    .action = "select the captures again"});
}

absl::Status Lineage::Add(std::string label, Pool pool, std::string_view where) {
  size_ += pool.samples();
  PENSTOCK_RETURN_IF_ERROR(CheckSize(size_, where));
  strata_.push_back({std::move(label), std::move(pool), kMixturePeriod});
  return absl::OkStatus();
}

absl::Status Lineage::Weigh(const StrataSpec& strata, std::string_view where) {
  if (strata.by.empty()) return absl::OkStatus();
  std::vector<StratumSize> sizes;
  for (const Stratum& s : strata_) sizes.push_back({s.label, s.pool.samples()});
  PENSTOCK_ASSIGN_OR_RETURN(const auto quotas, StrataQuotas(strata, sizes, where));
  for (std::size_t i = 0; i < quotas.size(); ++i) strata_[i].quota = quotas[i];
  inner_.emplace(quotas);
  return absl::OkStatus();
}

LineageRows Lineage::rows() const {
  LineageRows out;
  for (const Stratum& s : strata_) out.strata.push_back({s.label, s.pool.rows()});
  return out;
}

std::uint64_t Lineage::DrawsWithin(std::uint64_t passes) const {
  if (!inner_) return strata_[0].pool.UnitsBefore(passes);
  std::uint64_t out = UINT64_MAX;
  for (std::uint32_t s = 0; s < strata_.size(); ++s) {
    if (strata_[s].quota == 0) continue;
    const std::uint64_t draws = strata_[s].pool.UnitsBefore(passes);
    if (draws / strata_[s].quota >= Mixture::kPeriodsMax) continue;
    out = std::min(out, inner_->PositionOf(s, draws));
  }
  return out;
}

std::uint64_t Lineage::PassesBegun(std::uint64_t draws) const {
  std::uint64_t out = 0;
  for (std::uint32_t s = 0; s < strata_.size(); ++s) {
    out = std::max(out, strata_[s].pool.PassesBegun(CountBefore(s, draws)));
  }
  return out;
}

}  // namespace penstock::plan
