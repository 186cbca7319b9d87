#ifndef PENSTOCK_COMMON_PLAN_SAMPLE_H_
#define PENSTOCK_COMMON_PLAN_SAMPLE_H_

#include <cstdint>
#include <span>
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
  std::uint32_t shape = 0;    // bucket of the feed
  Epoch epoch;
  std::uint64_t index = 0;  // window of the stratum's view (of the bucket)
  std::uint32_t capture = 0, track = 0;  // rows of the source's capture index
  std::uint64_t start_frame = 0;
  std::uint32_t stride = 1, frames = 1;
  std::uint32_t piece = 0;  // of a sample that packing split
  std::uint64_t tokens = 0;  // by the feed's length formula
  bool reset =
      false;  // with lanes: it does not go on from the lane's sample before
  friend bool operator==(const Sample&, const Sample&) = default;
};

// What is counted and cut: a sample, a microbatch of a bucket, or a pack.
struct Unit {
  std::uint32_t shape = 0;   // bucket of the feed
  std::uint64_t first = 0;   // of its samples, in the batch
  std::uint32_t samples = 1;
  friend bool operator==(const Unit&, const Unit&) = default;
};

// The units of one step, of all ranks, in global order.
struct GlobalBatch {
  Step step;
  std::uint64_t data_step = 0;  // other than `step` once steps were skipped
  std::uint64_t global_batch = 0;  // units; those that are not there are masked
  std::vector<Unit> units;
  std::vector<Sample> samples;  // of the units, one after the other
};

// What a loss is averaged over: tokens when the feed has lengths, else samples.
std::uint64_t WeightOf(const GlobalBatch& batch);
std::uint64_t WeightOf(const GlobalBatch& batch,
                       std::span<const std::uint64_t> units);

// "source:epoch:index@capture[start+frames*stride]", the capture by the first
// 16 hex digits of its id: "doom:0:1734@9f86d081884c7d65[960+16*2]". With strata
// the source is "source/label".
std::string SampleId(const Sample& sample, std::string_view source_name,
                     std::string_view stratum, const Digest256& capture_id);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_SAMPLE_H_
