#ifndef PENSTOCK_CLIENT_CAPI_CONNECTION_H_
#define PENSTOCK_CLIENT_CAPI_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/capi/grpc_library.h"
#include "client/capi/local_link.h"
#include "client/capi/options.h"
#include "client/capi/result.h"

namespace penstock::capi {

// A tensor as the attach described it.
struct TensorSpec {
  std::string name;
  ps_dtype dtype = PS_U8;
  std::uint32_t dims = 0;
  std::uint64_t shape[PS_DIMS_MAX] = {}, strides[PS_DIMS_MAX] = {};
  std::uint64_t offset = 0;
};

// Tensors that come together; all shapes have the same names in the same order.
struct ShapeSpec {
  std::string name;  // of the bucket; empty without
  std::vector<TensorSpec> tensors;
};

// What an attach settled; shared by the steps that came under it.
struct Attached {
  std::string session, job, order_digest, content_digest, notes, cursor_head;
  std::uint64_t generation = 0, start_step = 0, total_steps = 0;
  std::uint64_t batch_bytes = 0, microbatches = 1, global_batch = 0;
  std::uint64_t unit_stride = 0;  // with buckets: bytes from unit to unit
  std::uint64_t units = 0;        // of the largest step
  std::vector<ShapeSpec> shapes;  // at least one

  // Units of a microbatch at a step of so many.
  std::uint64_t UnitsOf(std::uint64_t of_step) const {
    if (unit_stride != 0) return 1;
    return microbatches <= 1 ? of_step : units / microbatches;
  }
};

// One attachment to a daemon: session, handshake socket, arena. When the daemon
// goes away another one takes its place.
//
// Threading: any thread; Attach() once, before it is shared, but Cancel() even
// while it runs.
class Connection {
 public:
  // Not connected yet; `remote`: the address is "tcp:HOST:PORT".
  Connection(const psg_api& api, bool remote) : api_(api), remote_(remote) {}
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // `position`: the step wanted next, when batches were received before.
  //
  // PS_UNAVAILABLE: no daemon there within `timeout_ms`
  // PS_REFUSED, PS_INVALID: the daemon says no (its words)
  Result Attach(const Options& options, std::optional<std::uint64_t> position,
                int timeout_ms);
  // Ends its calls, now and later.
  void Cancel();
  // Ends the attach, fetch or read that waits now.
  void Interrupt();

  psg_session* session() const { return session_; }
  const std::shared_ptr<LocalLink>& link() const { return link_; }
  const std::shared_ptr<ArenaMap>& arena() const { return arena_; }
  std::uint64_t arena_id() const { return arena_id_; }
  const std::shared_ptr<const Attached>& attached() const { return attached_; }

 private:
  const psg_api& api_;
  const bool remote_;
  const pid_t pid_ = ::getpid();
  std::mutex mutex_;                // session_ against Cancel()
  psg_session* session_ = nullptr;  // set once
  bool cancelled_ = false;          // under mutex_
  // Shared with steps: the daemon takes slots back when it closes.
  std::shared_ptr<LocalLink> link_;
  std::shared_ptr<ArenaMap> arena_;
  std::uint64_t arena_id_ = 0;
  std::shared_ptr<const Attached> attached_;
};

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_CONNECTION_H_
