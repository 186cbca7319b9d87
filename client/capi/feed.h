#ifndef PENSTOCK_CLIENT_CAPI_FEED_H_
#define PENSTOCK_CLIENT_CAPI_FEED_H_

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client/capi/look_ahead.h"
#include "client/capi/options.h"
#include "client/capi/result.h"
#include "client/capi/step.h"

namespace penstock::capi {

// One rank's end of a job: the trainer's position in it, its waits with their
// deadlines. What comes from the daemon comes through LookAhead.
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
  void Abort() { ahead_->Abort(); }

  const Attached& attached() const { return *attached_; }
  bool remote() const { return remote_; }
  bool forked() const { return ::getpid() != pid_; }

 private:
  Feed(const Options& options, const psg_api& api, bool remote)
      : options_(options),
        api_(api),
        remote_(remote),
        ahead_(std::make_unique<LookAhead>(options, api, remote)) {}

  const Options options_;
  const psg_api& api_;
  const bool remote_;
  const pid_t pid_ = ::getpid();
  std::unique_ptr<LookAhead> ahead_;
  std::shared_ptr<const Attached> attached_;
  std::uint64_t position_ = 0;  // the step after the last one given
  bool delivered_any_ = false;
  bool waiting_ = false;  // since wait_started_
  Clock::time_point wait_started_{};
};

}  // namespace penstock::capi

// The C handle of a feed.
struct ps_feed {
  std::unique_ptr<penstock::capi::Feed> feed;
};

#endif  // PENSTOCK_CLIENT_CAPI_FEED_H_
