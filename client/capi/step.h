#ifndef PENSTOCK_CLIENT_CAPI_STEP_H_
#define PENSTOCK_CLIENT_CAPI_STEP_H_

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/capi/connection.h"

namespace penstock::capi {

// What steps give back when they are released; outlives the feed with them.
struct Returns {
  std::mutex mutex;
  std::condition_variable changed;  // for the trainer that waits for a step
  bool awaited = false;             // it waits
  std::vector<psg_slot> slots;      // to be told to the daemon
  // Remote mode: memory that the next steps are copied into, pages present.
  std::vector<std::unique_ptr<std::uint8_t[]>> buffers;
  const pid_t pid = ::getpid();
};

}  // namespace penstock::capi

// The C handle of a step.
struct ps_step {
  std::shared_ptr<const penstock::capi::Attached> attached;
  std::shared_ptr<penstock::capi::ArenaMap> arena;  // local mode
  std::shared_ptr<penstock::capi::LocalLink> link;  // while it is open, the slot
                                                    // stays ours
  std::unique_ptr<std::uint8_t[]> copy;             // remote mode
  const std::uint8_t* data = nullptr;
  std::shared_ptr<penstock::capi::Returns> returns;
  psg_slot slot{};
  ps_step_info info{};
  std::string batch_digest, global_digest;
  std::vector<std::string> sample_ids, item_digests;
  // Of the units that are not masked: shape, and the first sample of each (one
  // more: how many samples there are).
  std::vector<std::uint32_t> unit_shapes;
  std::vector<std::uint64_t> first_samples;
};

namespace penstock::capi {

// Notes what the step gives back and frees it; never blocks. In a forked child
// it only frees.
void Release(std::unique_ptr<ps_step> step);

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_STEP_H_
