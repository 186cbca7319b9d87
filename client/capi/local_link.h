#ifndef PENSTOCK_CLIENT_CAPI_LOCAL_LINK_H_
#define PENSTOCK_CLIENT_CAPI_LOCAL_LINK_H_

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "client/capi/result.h"

namespace penstock::capi {

// A read-only mapping of a daemon's arena; slots of steps keep it alive after
// the daemon is gone.
class ArenaMap {
 public:
  // Takes `fd`. Refuses a descriptor whose size differs or that could shrink
  // under the reader: it must be sealed.
  static Result Map(int fd, std::uint64_t bytes, std::shared_ptr<ArenaMap>* out);
  ~ArenaMap();
  ArenaMap(const ArenaMap&) = delete;
  ArenaMap& operator=(const ArenaMap&) = delete;
  const std::uint8_t* data() const { return data_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  ArenaMap(const std::uint8_t* data, std::uint64_t bytes);
  const std::uint8_t* data_;
  std::uint64_t bytes_;
  // Makes the pages present while the first batches are made, so that no read
  // of the trainer faults page by page; ends with the map.
  std::atomic<bool> stop_{false};
  std::thread populate_;
  const pid_t pid_ = ::getpid();
};

// The handshake socket of the node's daemon (common/shm/handshake.h). While it
// is open the daemon knows that this process lives.
class LocalLink {
 public:
  // kHello and the daemon's answer; `timeout_ms` for all of it.
  //
  // PS_UNAVAILABLE: no daemon there, or it does not answer
  // PS_REFUSED:     the daemon says no (its words)
  static Result Connect(const std::string& socket_path, int timeout_ms,
                        std::unique_ptr<LocalLink>* out);
  ~LocalLink();
  LocalLink(const LocalLink&) = delete;
  LocalLink& operator=(const LocalLink&) = delete;

  const std::string& session() const { return session_; }
  const std::string& grpc_target() const { return grpc_target_; }

  // The arena that the daemon sends around an attach.
  Result ReceiveArena(std::uint64_t arena, int timeout_ms,
                      std::shared_ptr<ArenaMap>* out);

 private:
  explicit LocalLink(int fd) : fd_(fd) {}
  int fd_;
  std::string session_, grpc_target_;
};

}  // namespace penstock::capi

#endif  // PENSTOCK_CLIENT_CAPI_LOCAL_LINK_H_
