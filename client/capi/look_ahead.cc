#include "client/capi/look_ahead.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <exception>

namespace penstock::capi {
namespace {

constexpr int kGrpcCancelled = 1;
constexpr int kGrpcDeadline = 4;
constexpr int kGrpcNotFound = 5;
constexpr int kGrpcUnavailable = 14;
constexpr auto kRetry = std::chrono::milliseconds(50);
constexpr int kAttachMs = 10'000;
// A call for a batch is cut so often: slots that were released meanwhile and an
// abort are told with the next one.
constexpr std::uint64_t kCallMs = 250;
// How far apart looks are while steps are taken, and at most.
constexpr Clock::duration kLookGap = std::chrono::milliseconds(1);
constexpr Clock::duration kLookGapMax = std::chrono::milliseconds(64);
// So many in hand may be taken between two looks: whether any was is seen at this
// pace, at which steps of 60 us and more leave some.
constexpr std::size_t kManyMin = 64;
constexpr Clock::duration kManyGap = std::chrono::milliseconds(4);
constexpr auto kPauseMax = std::chrono::seconds(1);

// Look-aheads of this process, which pause while it forks.
struct Forks {
  std::mutex mutex;  // held over a fork
  std::set<LookAhead*> all;
};

Forks& TheForks() {
  static Forks* forks = [] {
    auto* made = new Forks;
    ::pthread_atfork(
        [] {
          TheForks().mutex.lock();
          LookAhead::PauseAll(TheForks().all);
        },
        [] {
          for (LookAhead* ahead : TheForks().all) ahead->Resume();
          TheForks().mutex.unlock();
        },
        [] {
          TheForks().all.clear();  // the parent's
          TheForks().mutex.unlock();
        });
    return made;
  }();
  return *forks;
}

}  // namespace

LookAhead::~LookAhead() {
  {
    std::lock_guard lock(TheForks().mutex);
    TheForks().all.erase(this);
  }
  bool aborted;
  {
    std::lock_guard lock(returns_->mutex);
    stop_ = true;
    aborted = aborted_;
    if (connection_) connection_->Cancel();
  }
  Tell();
  if (thread_.joinable()) thread_.join();
  if (!connected_) return;
  GiveBackQueue();
  std::vector<psg_slot> slots;
  {
    std::lock_guard lock(returns_->mutex);
    slots.swap(returns_->slots);
  }
  psg_error error{};
  psg_session* session = connection_->session();
  if (!slots.empty() && !aborted) {
    api_.release(session, slots.data(), slots.size(), &error);
  }
  if (acked_told_ < acked_next_ && !aborted) {
    api_.ack(session, acked_next_ - 1, &error);
  }
  // Steps that outlive their feed keep the session: it ends when the last of
  // them closes the handshake socket.
  if (connection_->link() == nullptr || connection_->link().use_count() == 1) {
    api_.detach(session, &error);
  }
}

void LookAhead::Tell() {
  returns_->changed.notify_all();
  work_.notify_all();
}

void LookAhead::GiveBackQueue() {
  std::deque<std::unique_ptr<ps_step>> queue;
  {
    std::lock_guard lock(returns_->mutex);
    queue.swap(queue_);
  }
  for (auto& step : queue) Release(std::move(step));
}

Result LookAhead::Start() {
  const auto deadline =
      Clock::now() + std::chrono::milliseconds(options_.absent_deadline_ms);
  const int answer_ms = static_cast<int>(
      std::clamp<std::uint64_t>(options_.first_deadline_ms, 1, 600'000));
  for (;;) {
    auto connection = std::make_shared<Connection>(api_, remote_);
    const Result r = connection->Attach(options_, std::nullopt, answer_ms);
    if (r.ok()) {
      connection_ = std::move(connection);
      break;
    }
    if (r.code != PS_UNAVAILABLE || Clock::now() + kRetry >= deadline) return r;
    std::this_thread::sleep_for(kRetry);
  }
  connected_ = true;
  first_attached_ = connection_->attached();
  fetch_next_ = take_next_ = first_attached_->start_step;
  // Signals are the trainer's: its own threads take them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::lock_guard lock(TheForks().mutex);
  TheForks().all.insert(this);
  return {};
}

void LookAhead::PauseAll(const std::set<LookAhead*>& all) {
  const auto until = Clock::now() + kPauseMax;
  std::vector<psg_session*> sessions;
  bool still = true;
  for (LookAhead* ahead : all) {
    std::unique_lock lock(ahead->returns_->mutex);
    ahead->paused_ = true;
    while (ahead->working_ && Clock::now() < until) {
      if (ahead->connection_) ahead->connection_->Interrupt();
      ahead->returns_->changed.wait_for(lock, std::chrono::milliseconds(10));
    }
    still = still && !ahead->working_;
    if (ahead->connection_ && ahead->connection_->session() != nullptr) {
      sessions.push_back(ahead->connection_->session());
    }
  }
  if (!all.empty() && still) {
    (*all.begin())->api_.suspend(sessions.data(), sessions.size());
  }
}

void LookAhead::Resume() {
  {
    std::lock_guard lock(returns_->mutex);
    paused_ = false;
  }
  Tell();
}

Result LookAhead::Take(Clock::time_point until, std::unique_ptr<ps_step>* out) {
  std::unique_lock lock(returns_->mutex);
  if (failure_ && failure_told_ && failure_->code != PS_END) {
    failure_.reset();
    work_.notify_one();
  }
  for (;;) {
    if (aborted_) return Fail(PS_ABORTED, "aborted");
    if (!queue_.empty()) {
      *out = std::move(queue_.front());
      queue_.pop_front();
      take_next_ = (*out)->info.number + 1;
      if (!options_.explicit_ack) {
        acked_next_ = std::max(acked_next_, (*out)->info.number);
      }
      taken_ = true;
      const bool wake = queue_.empty();
      lock.unlock();
      if (wake) work_.notify_one();
      return {};
    }
    if (failure_ && failure_->code == PS_END && !options_.explicit_ack &&
        acked_next_ < take_next_ && take_next_ > first_attached_->start_step) {
      acked_next_ = take_next_;  // asking beyond the last step acknowledges it
      work_.notify_one();
    }
    if (failure_ &&
        (failure_->code != PS_END || acked_told_ >= acked_next_)) {
      failure_told_ = true;
      return *failure_;
    }
    if (in_call_ && !returns_->slots.empty()) {
      // The call that waits may wait for these.
      std::vector<psg_slot> slots;
      slots.swap(returns_->slots);
      const auto connection = connection_;
      lock.unlock();
      psg_error error{};
      api_.release(connection->session(), slots.data(), slots.size(), &error);
      lock.lock();
      continue;
    }
    if (Clock::now() >= until) return Fail(PS_AGAIN, waiting_because_);
    returns_->awaited = true;
    returns_->changed.wait_until(lock, until);
    returns_->awaited = false;
  }
}

void LookAhead::Acked(std::uint64_t next_step) {
  std::lock_guard lock(returns_->mutex);
  acked_next_ = std::max(acked_next_, next_step);
}

void LookAhead::Abort() {
  {
    std::lock_guard lock(returns_->mutex);
    aborted_ = true;
    if (connection_) connection_->Cancel();
  }
  Tell();
}

Result LookAhead::Connected(Clock::time_point until,
                            std::shared_ptr<Connection>* out) {
  std::unique_lock lock(returns_->mutex);
  for (;;) {
    if (aborted_) return Fail(PS_ABORTED, "aborted");
    if (connected_) {
      *out = connection_;
      return {};
    }
    if (failure_ && failure_->code != PS_END) return *failure_;
    if (returns_->changed.wait_until(lock, until) == std::cv_status::timeout) {
      return Fail(PS_UNAVAILABLE, waiting_because_);
    }
  }
}

void LookAhead::Broken(const std::shared_ptr<Connection>& connection) {
  {
    std::lock_guard lock(returns_->mutex);
    if (connection_ == connection) connected_ = false;
  }
  Tell();
}

std::string LookAhead::waiting_because() const {
  std::lock_guard lock(returns_->mutex);
  return waiting_because_;
}

LookAhead::Work LookAhead::NextWork() const {
  if (stop_ || aborted_) return Work::kStop;
  if (paused_) return Work::kNone;
  const bool ended = failure_ && failure_->code == PS_END;
  if (failure_ && !ended) return Work::kNone;
  if (!connected_) {
    return ended && acked_told_ >= acked_next_ ? Work::kNone : Work::kConnect;
  }
  if (!ended && queue_.empty()) return Work::kFetch;
  if (!queue_.empty() && Clock::now() < look_at_) return Work::kNone;
  if (!ended && queue_.size() < depth()) return Work::kFetch;
  return acked_told_ < acked_next_ || !returns_->slots.empty() ? Work::kTell
                                                               : Work::kNone;
}

void LookAhead::LookLater() {
  const bool many = queue_.size() >= kManyMin;
  look_gap_ = taken_ ? (many ? kManyGap : kLookGap)
                     : std::clamp(look_gap_ * 2, kLookGap, kLookGapMax);
  taken_ = false;
  look_at_ = Clock::now() + look_gap_;
}

void LookAhead::Run() {
  for (;;) {
    Work work;
    {
      std::unique_lock lock(returns_->mutex);
      working_ = false;
      returns_->changed.notify_all();
      while ((work = NextWork()) == Work::kNone) {
        if (paused_ || queue_.empty()) {
          work_.wait(lock);
        } else {
          if (Clock::now() >= look_at_) LookLater();
          const bool many = queue_.size() >= kManyMin;
          work_.wait_until(
              lock, many ? std::min(look_at_, Clock::now() + kManyGap) : look_at_);
          if (many && taken_) look_at_ = {};
        }
      }
      working_ = true;
    }
    try {
      switch (work) {
        case Work::kStop: return;
        case Work::kConnect: Connect(); break;
        case Work::kTell: TellReturns(); break;
        default: Fetch();
      }
    } catch (const std::exception& e) {  // no memory
      std::lock_guard lock(returns_->mutex);
      in_call_ = false;
      failure_ = Fail(PS_FAILED, e.what());
      failure_told_ = false;
    }
  }
}

void LookAhead::Connect() {
  auto connection = std::make_shared<Connection>(api_, remote_);
  std::optional<std::uint64_t> position;
  {
    std::lock_guard lock(returns_->mutex);
    if (stop_ || aborted_) return;
    connection_ = connection;  // in reach of Abort()
    if (fetched_any_) position = fetch_next_;
  }
  const Result r = connection->Attach(options_, position, kAttachMs);
  std::unique_lock lock(returns_->mutex);
  if (r.ok()) {
    connected_ = true;
    if (!fetched_any_) {
      fetch_next_ = take_next_ = connection->attached()->start_step;
    }
  } else if (r.code == PS_UNAVAILABLE || paused_) {
    waiting_because_ = r.message;
    work_.wait_for(lock, kRetry, [&] { return stop_ || aborted_ || paused_; });
  } else if (!stop_ && !aborted_) {
    failure_ = r;
    failure_told_ = false;
  }
}

void LookAhead::Sort(const psg_error& error) {
  if (stop_ || aborted_) return;
  if (paused_ && error.code == kGrpcCancelled) return;  // by Pause()
  waiting_because_ = error.text;
  if (error.code == kGrpcDeadline) return;  // it told who is waited for
  if (error.code == kGrpcUnavailable || error.code == kGrpcNotFound ||
      error.code == kGrpcCancelled) {
    connected_ = false;  // the daemon or our session is gone: attach again
    return;
  }
  failure_ = Fail(FromGrpc(error.code), error.text);
  failure_told_ = false;
}

void LookAhead::TellReturns() {
  std::shared_ptr<Connection> connection;
  std::vector<psg_slot> slots;
  std::uint64_t acked;
  bool ack;
  {
    std::lock_guard lock(returns_->mutex);
    connection = connection_;
    slots.swap(returns_->slots);
    acked = acked_next_;
    ack = acked_told_ < acked;
  }
  psg_error error{};
  int rc = 0;
  if (!slots.empty()) {
    rc = api_.release(connection->session(), slots.data(), slots.size(), &error);
  }
  if (rc == 0 && ack) {
    rc = api_.ack(connection->session(), acked - 1, &error);
  }
  std::lock_guard lock(returns_->mutex);
  if (rc == 0) {
    acked_told_ = std::max(acked_told_, acked);
  } else {
    Sort(error);
  }
  LookLater();
  returns_->changed.notify_all();
}

void LookAhead::Fetch() {
  std::shared_ptr<Connection> connection;
  std::vector<psg_slot> slots;
  std::uint64_t step, acked;
  std::size_t room;
  std::uint64_t wait_ms;
  {
    std::lock_guard lock(returns_->mutex);
    connection = connection_;
    slots.swap(returns_->slots);
    step = fetch_next_;
    acked = acked_next_;
    room = depth() - queue_.size();
    wait_ms = queue_.empty() ? kCallMs : 0;
    in_call_ = true;
  }
  psg_batch* batches[kDepth] = {};
  std::size_t count = 0;
  psg_error error{};
  const int rc = api_.next(connection->session(), step, acked, wait_ms,
                           slots.data(), slots.size(), batches, room, &count,
                           &error);
  {
    std::lock_guard lock(returns_->mutex);
    in_call_ = false;
    LookLater();
    const bool answered = rc >= 0 || error.code == kGrpcDeadline;
    if (answered) acked_told_ = std::max(acked_told_, acked);
    if (rc == 1) {
      failure_ = Fail(PS_END, "the data has ended");
    } else if (rc < 0) {
      // Whether they arrived is unknown; giving them back twice is once.
      returns_->slots.insert(returns_->slots.end(), slots.begin(), slots.end());
      Sort(error);
    }
    if (rc != 0) returns_->changed.notify_all();
  }
  bool good = true;
  for (std::size_t i = 0; i < count; ++i) {
    psg_batch_view v{};
    api_.view(batches[i], &v);
    std::unique_ptr<ps_step> made;
    Result r;
    if (good) r = MakeStep(*connection, v, &made);
    api_.free_batch(batches[i]);
    if (!good) continue;
    std::lock_guard lock(returns_->mutex);
    good = r.ok();
    if (good) {
      fetch_next_ = v.step + 1;
      fetched_any_ = true;
      queue_.push_back(std::move(made));
      returns_->changed.notify_all();
    } else if (r.code == PS_UNAVAILABLE) {
      waiting_because_ = r.message;
      connected_ = connected_ && paused_;  // a read that Pause() ended is no loss
    } else if (!stop_ && !aborted_) {
      failure_ = std::move(r);
      failure_told_ = false;
    }
  }
}

}  // namespace penstock::capi
