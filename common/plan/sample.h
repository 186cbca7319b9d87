#ifndef PENSTOCK_COMMON_PLAN_SAMPLE_H_
#define PENSTOCK_COMMON_PLAN_SAMPLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/types/ids.h"

namespace penstock::plan {

// A planned sample: which window of which source.
struct Sample {
  std::uint32_t source = 0;   // index in the feed's sorted sources
  std::uint32_t lineage = 0;  // of the schedule: the source under one view
  std::uint32_t stratum = 0;  // of the lineage
  Epoch epoch;
  std::uint64_t index = 0;  // window of the stratum's view
  std::uint32_t capture = 0, track = 0;  // rows of the source's capture index
  std::uint64_t start_frame = 0;
  std::uint32_t stride = 1, frames = 1;
  friend bool operator==(const Sample&, const Sample&) = default;
};

// The samples of one step, of all ranks, in global order.
struct GlobalBatch {
  Step step;
  std::uint64_t data_step = 0;  // other than `step` once steps were skipped
  // Global batch of the step; the units after the samples are masked.
  std::uint64_t units = 0;
  std::vector<Sample> samples;
};

// "source:epoch:index@capture[start+frames*stride]", the capture by the first
// 16 hex digits of its id: "doom:0:1734@9f86d081884c7d65[960+16*2]". With strata
// the source is "source/label".
std::string SampleId(const Sample& sample, std::string_view source_name,
                     std::string_view stratum, const Digest256& capture_id);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_SAMPLE_H_
