#ifndef PENSTOCK_SERVER_PIPELINE_SIDE_TENSORS_H_
#define PENSTOCK_SERVER_PIPELINE_SIDE_TENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/block.h"
#include "server/pipeline/feed_plan.h"

// Tensors that are not pixels: inputs, tables and times of a sample's frames.
namespace penstock::pipeline {

// Where an output finds its data in one capture: the row of the track, and the
// code or column of each name (-1: the capture never has it).
struct SideTrack {
  std::uint32_t track = 0;
  std::vector<std::int32_t> index;
  std::vector<bool> floating;  // columns: f64, else i64
  std::vector<std::string> known;  // all codes or columns of the track
  // Columns: a row says nothing later than this after its time, and none of the
  // track says anything after `known_until_ns`.
  std::int64_t hold_ns = INT64_MAX, known_until_ns = INT64_MAX;
};

// Resolves names to tracks, codes and columns, once per capture and output.
//
// Threading: any thread.
class SideTracks {
 public:
  explicit SideTracks(const FeedPlan& plan) : plan_(plan) {}

  // kNotFound: the capture has no such track; a column that it does not have
  absl::StatusOr<const SideTrack*> Find(std::uint32_t source,
                                        std::uint32_t capture,
                                        std::uint32_t output);

 private:
  absl::StatusOr<SideTrack> Resolve(const SourceRef& source,
                                    std::uint32_t capture,
                                    const OutputSpec& output) const;
  const FeedPlan& plan_;
  std::mutex mutex_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>,
           std::unique_ptr<SideTrack>>
      found_;
};

// Resolves every output of every selected capture, before a job begins.
//
// kNotFound: as SideTracks::Find; a key that no capture ever has (with the
//            nearest that one has)
absl::Status CheckSides(const FeedPlan& plan);

// The times that rule a sample's inputs. Frame i shows at starts[i]; its inputs
// are those of [begins[i], ends[i]); valid[i] is false where there is no such
// interval (before the first frame, for the interval that led to it).
struct SampleTimes {
  std::vector<std::int64_t> starts, begins, ends;
  std::vector<bool> valid;
};

// Fills the item of `output` from the blocks of its track in time order.
//
// `out` is the item's bytes; every byte is written.
void FillSide(const OutputSpec& output, const SideTrack* track,
              std::span<const format::BlockView> blocks,
              const SampleTimes& times, std::span<std::uint8_t> out);

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_SIDE_TENSORS_H_
