#include "common/plan/sample.h"

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"

namespace penstock::plan {

namespace {

std::uint64_t WeightOf(const Sample& s) { return s.tokens != 0 ? s.tokens : 1; }

}  // namespace

std::uint64_t WeightOf(const GlobalBatch& batch) {
  std::uint64_t sum = 0;
  for (const Sample& s : batch.samples) sum += WeightOf(s);
  return sum;
}

std::uint64_t WeightOf(const GlobalBatch& batch,
                       std::span<const std::uint64_t> units) {
  std::uint64_t sum = 0;
  for (const std::uint64_t i : units) {
    const Unit& u = batch.units[i];
    for (std::uint32_t k = 0; k < u.samples; ++k) {
      sum += WeightOf(batch.samples[u.first + k]);
    }
  }
  return sum;
}

std::string SampleId(const Sample& s, std::string_view source_name,
                     std::string_view stratum, const Digest256& capture_id) {
  return absl::StrCat(std::string(source_name), stratum.empty() ? "" : "/",
                      std::string(stratum), ":", s.epoch.value, ":",
                      s.index, "@", hash::Hex(capture_id).substr(0, 16), "[",
                      s.start_frame, "+", s.frames, "*", s.stride, "]");
}

}  // namespace penstock::plan
