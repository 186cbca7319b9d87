#include "client/capi/feed.h"

#include <algorithm>

namespace penstock::capi {
namespace {

using std::chrono::milliseconds;

constexpr int kGrpcNotFound = 5;
constexpr int kGrpcUnavailable = 14;

bool DaemonAway(const psg_error& error) {
  return error.code == kGrpcUnavailable || error.code == kGrpcNotFound;
}

}  // namespace

Result Feed::Attach(const Options& options, std::unique_ptr<Feed>* out) {
  const psg_api* api = nullptr;
  if (Result r = GrpcApi(&api); !r.ok()) return r;
  std::unique_ptr<Feed> feed(
      new Feed(options, *api, options.address.starts_with("tcp:")));
  if (Result r = feed->ahead_->Start(); !r.ok()) return r;
  feed->attached_ = feed->ahead_->first_attached();
  feed->position_ = feed->attached_->start_step;
  *out = std::move(feed);
  return {};
}

Feed::~Feed() {
  // The parent's in a fork: its thread and locks did not come along.
  if (forked()) static_cast<void>(ahead_.release());
}

Result Feed::Next(std::int64_t slice_ms, std::unique_ptr<ps_step>* out) {
  const Clock::time_point now = Clock::now();
  if (!waiting_) {
    waiting_ = true;
    wait_started_ = now;
  }
  const std::uint64_t limit_ms =
      delivered_any_ ? options_.deadline_ms : options_.first_deadline_ms;
  const Clock::time_point deadline = wait_started_ + milliseconds(limit_ms);
  Result r = ahead_->Take(std::min(deadline, now + milliseconds(slice_ms)), out);
  if (r.code == PS_AGAIN) {
    if (Clock::now() < deadline) return r;
    const std::string because = ahead_->waiting_because();
    r = Fail(PS_TIMEOUT,
             {"rank " + std::to_string(options_.data_rank) + ", step " +
                  std::to_string(position_),
              "no batch for " + std::to_string(limit_ms) + " ms",
              because.empty() ? "the daemon does not answer" : because,
              "a published batch",
              "look at the daemon's status and log; the step was not "
              "acknowledged, restarting loses nothing"});
  }
  waiting_ = false;
  if (!r.ok()) return r;
  (*out)->info.wait_ns = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(Clock::now() - wait_started_).count());
  position_ = (*out)->info.number + 1;
  attached_ = (*out)->attached;
  delivered_any_ = true;
  return {};
}

Result Feed::Ack(std::uint64_t step) {
  ahead_->Acked(step + 1);  // told again by the next call for a batch
  std::shared_ptr<Connection> connection;
  if (!ahead_->Connected(Clock::now(), &connection).ok()) return {};
  psg_error error{};
  if (api_.ack(connection->session(), step, &error) == 0) return {};
  if (!DaemonAway(error)) return Fail(FromGrpc(error.code), error.text);
  ahead_->Broken(connection);
  return {};
}

Result Feed::Checkpoint(const std::string& name) {
  const auto deadline = Clock::now() + milliseconds(options_.deadline_ms);
  for (;;) {
    std::shared_ptr<Connection> connection;
    if (Result r = ahead_->Connected(deadline, &connection); !r.ok()) return r;
    psg_error error{};
    if (api_.checkpoint(connection->session(), name.c_str(), position_,
                        &error) == 0) {
      return {};
    }
    if (!DaemonAway(error) || Clock::now() >= deadline) {
      return Fail(FromGrpc(error.code), error.text);
    }
    ahead_->Broken(connection);
  }
}

std::string Feed::StateDict() const {
  return attached_->cursor_head + std::to_string(position_) + ",\"version\":1}";
}

}  // namespace penstock::capi
