#ifndef PENSTOCK_CLIENT_CAPI_LOOK_AHEAD_H_
#define PENSTOCK_CLIENT_CAPI_LOOK_AHEAD_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "client/capi/connection.h"
#include "client/capi/step.h"

namespace penstock::capi {

using Clock = std::chrono::steady_clock;

// Asks the daemon for batches ahead of the trainer, so that taking the next one
// is no call; attaches again when the daemon went away. What is acknowledged
// follows the trainer, not what was fetched.
//
// Threading: one user, Abort() from any; one thread of its own, signals blocked.
// Bounds: local, `kDepth` published batches (their slots are leased to the rank
//   anyway); remote, one batch beside the one in hand.
// With nothing in hand the thread waits at the daemon. Else it looks now and then
// what else is published and tells what was acknowledged and released: by its own
// clock, so that the trainer wakes nobody when it takes a step, but the last one.
// Stopping: the destructor ends calls, gives back what nobody took, tells what was
//   acknowledged, detaches.
class LookAhead {
 public:
  static constexpr std::size_t kDepth = 128;

  LookAhead(const Options& options, const psg_api& api, bool remote)
      : options_(options), api_(api), remote_(remote) {}
  ~LookAhead();

  // Connects, again and again while there is no daemon (`absent_deadline_ms`),
  // and starts to fetch.
  Result Start();

  // The next step. Taking it acknowledges those before it, unless the feed
  // acknowledges explicitly.
  //
  // PS_AGAIN: none until then; PS_END; others: why there will be none, told once
  // and then tried again
  Result Take(Clock::time_point until, std::unique_ptr<ps_step>* out);
  // Steps before `next_step` are trained; told later.
  void Acked(std::uint64_t next_step);
  void Abort();

  // The attachment that works now; waits for one.
  Result Connected(Clock::time_point until, std::shared_ptr<Connection>* out);
  // A call on it failed: attaches again.
  void Broken(const std::shared_ptr<Connection>& connection);
  // Why the latest wait ended without a batch; empty: it was never answered.
  std::string waiting_because() const;
  const std::shared_ptr<const Attached>& first_attached() const {
    return first_attached_;
  }

  // Around a fork: gRPC's threads do not come along, and what it polls would be
  // shared with the child. So calls are ended and connections closed before;
  // after it they are opened again, in the child anew. Waits at most a second.
  static void PauseAll(const std::set<LookAhead*>& all);
  void Resume();

 private:
  void Run();
  // What the thread does next; under the mutex of returns_.
  enum class Work { kNone, kStop, kConnect, kFetch, kTell };
  Work NextWork() const;
  void LookLater();  // under the mutex
  void Connect();
  void Fetch();
  void TellReturns();
  std::size_t depth() const { return remote_ ? 1 : kDepth; }
  // A batch of the daemon as a step; remote: copies its bytes.
  Result MakeStep(const Connection& connection, const psg_batch_view& v,
                  std::unique_ptr<ps_step>* out);
  std::unique_ptr<std::uint8_t[]> Buffer(std::uint64_t bytes);
  void Tell();  // both
  // Under the mutex: sorts an error of a call into wait, reconnect and failure.
  void Sort(const psg_error& error);
  void GiveBackQueue();

  const Options options_;
  const psg_api& api_;
  const bool remote_;
  std::shared_ptr<const Attached> first_attached_;

  // All below under returns_->mutex. returns_->changed tells the trainer of
  // batches, work_ tells the thread of room for them.
  std::shared_ptr<Returns> returns_ = std::make_shared<Returns>();
  std::condition_variable work_;
  std::shared_ptr<Connection> connection_;  // the latest, may be in the making
  bool connected_ = false;
  bool stop_ = false, aborted_ = false, paused_ = false;
  bool working_ = false;          // the thread is not waiting for work
  bool in_call_ = false;  // the thread waits at the daemon
  std::uint64_t fetch_next_ = 0;  // the step to ask for
  bool fetched_any_ = false;
  std::uint64_t take_next_ = 0;   // the step to hand out
  std::uint64_t acked_next_ = 0, acked_told_ = 0;
  std::deque<std::unique_ptr<ps_step>> queue_;
  std::optional<Result> failure_;  // no more batches, or PS_END
  bool failure_told_ = false;
  std::string waiting_because_;
  bool taken_ = false;            // a step, since the latest look
  Clock::duration look_gap_{};
  Clock::time_point look_at_{};

  std::thread thread_;
};

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_LOOK_AHEAD_H_
