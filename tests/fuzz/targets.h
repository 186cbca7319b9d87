#ifndef PENSTOCK_TESTS_FUZZ_TARGETS_H_
#define PENSTOCK_TESTS_FUZZ_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <span>

// One function a parser of outside bytes: it must neither crash nor accept what
// it would not write itself (then it aborts). Where a checksum guards the bytes,
// the function also sets it right, so that what lies behind is reached.
namespace penstock::fuzz {

using Input = std::span<const std::uint8_t>;

void Block(Input in);
void ShardFooter(Input in);
void CaptureIndex(Input in);
void Cursor(Input in);
void JobRecord(Input in);
void Mapping(Input in);

struct Target {
  const char* name;  // folder in corpus/
  void (*run)(Input);
};
inline constexpr Target kTargets[] = {
    {"block", Block},   {"shard_footer", ShardFooter},
    {"cursor", Cursor}, {"capture_index", CaptureIndex},
    {"mapping", Mapping}, {"job_record", JobRecord},
};

}  // namespace penstock::fuzz

#endif  // PENSTOCK_TESTS_FUZZ_TARGETS_H_
