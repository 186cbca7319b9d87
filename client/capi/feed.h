#ifndef PENSTOCK_CLIENT_CAPI_FEED_H_
#define PENSTOCK_CLIENT_CAPI_FEED_H_

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/capi/grpc_library.h"
#include "client/capi/local_link.h"
#include "client/capi/result.h"

namespace penstock::capi {

// Options of ps_attach with strings of its own and defaults filled in.
struct Options {
  std::string address, job, feed_path, feed_text, feed_dir, incarnation, resume;
  std::uint32_t data_rank = 0, data_world = 1;
  bool ack_leader = true, explicit_ack = false, takeover = false;
  std::uint64_t deadline_ms = 120'000, first_deadline_ms = 600'000;
};

// Reads the options, the feed file and the environment.
//
// PS_INVALID: what is missing, unreadable or contradictory
Result ReadOptions(const ps_attach_options& in, Options* out);

// Slots that were released and wait to be told to the daemon with the next
// call; shared with steps that outlive their feed.
struct ReleaseList {
  std::mutex mutex;
  std::vector<psg_slot> slots;
};

// A tensor as the attach described it.
struct TensorSpec {
  std::string name;
  ps_dtype dtype = PS_U8;
  std::uint32_t dims = 0;
  std::uint64_t shape[PS_DIMS_MAX] = {}, strides[PS_DIMS_MAX] = {};
  std::uint64_t offset = 0;
};

// What an attach settled; shared by the steps that came under it.
struct Attached {
  std::string session, job, order_digest, content_digest, notes, cursor_head;
  std::uint64_t generation = 0, start_step = 0, total_steps = 0;
  std::uint64_t batch_bytes = 0, microbatches = 1, global_batch = 0;
  std::vector<TensorSpec> tensors;
};

// One rank's end of a job: attach, next, reconnect.
//
// Threading: one thread; Abort() from any.
// Stopping: the destructor detaches within a second.
class Feed {
 public:
  static Result Attach(const Options& options, std::unique_ptr<Feed>* out);
  ~Feed();

  // Waits at most `slice_ms` of the deadline; PS_AGAIN: call again.
  Result Next(std::int64_t slice_ms, std::unique_ptr<ps_step>* out);
  Result Ack(std::uint64_t step);
  Result Checkpoint(const std::string& name);
  std::string StateDict() const;
  void Abort();

  const Attached& attached() const { return *attached_; }
  bool remote() const { return remote_; }
  bool forked() const { return ::getpid() != pid_; }

 private:
  explicit Feed(Options options) : options_(std::move(options)) {}

  // Connects and attaches once; `deadline` is steady-clock ms.
  Result Connect(std::int64_t deadline);
  // Connect, again and again while the daemon is away.
  Result ConnectUntil(std::int64_t deadline);
  void Disconnect();
  Result NextWithin(std::int64_t slice_ms, std::unique_ptr<ps_step>* out);
  Result TakeBatch(psg_batch* batch, std::int64_t waited_ns,
                   std::unique_ptr<ps_step>* out);

  Options options_;
  const pid_t pid_ = ::getpid();
  bool remote_ = false;
  const psg_api* api_ = nullptr;
  std::mutex session_mutex_;        // session_ against Abort()
  psg_session* session_ = nullptr;  // written under session_mutex_
  // Shared with steps: the daemon takes slots back when it closes.
  std::shared_ptr<LocalLink> link_;
  std::shared_ptr<ArenaMap> arena_;
  std::uint64_t arena_id_ = 0;
  std::shared_ptr<const Attached> attached_;
  std::shared_ptr<ReleaseList> releases_ = std::make_shared<ReleaseList>();
  std::optional<std::uint64_t> position_;  // the step to ask for next
  bool delivered_any_ = false;
  std::int64_t wait_started_ns_ = 0;  // of the wait that goes on; 0: none
  std::string waiting_because_;       // why its latest try ended
  std::atomic<bool> aborted_{false};
};

}  // namespace penstock::capi

// The C handles.
struct ps_feed {
  std::unique_ptr<penstock::capi::Feed> feed;
};

struct ps_step {
  std::shared_ptr<const penstock::capi::Attached> attached;
  std::shared_ptr<penstock::capi::ArenaMap> arena;  // local mode
  std::shared_ptr<penstock::capi::LocalLink> link;  // while it is open, the slot
                                                    // stays ours
  std::unique_ptr<std::uint8_t[]> copy;             // remote mode
  const std::uint8_t* data = nullptr;
  std::shared_ptr<penstock::capi::ReleaseList> releases;
  psg_slot slot{};
  ps_step_info info{};
  std::string batch_digest, global_digest;
  std::vector<std::string> sample_ids, item_digests;
};

#endif  // PENSTOCK_CLIENT_CAPI_FEED_H_
