#ifndef PENSTOCK_COMMON_SHM_FD_SOCKET_H_
#define PENSTOCK_COMMON_SHM_FD_SOCKET_H_

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/shm/unique_fd.h"

// Unix sockets (SOCK_SEQPACKET) that carry whole messages and descriptors. All
// descriptors made here are close-on-exec; nothing raises SIGPIPE.
namespace penstock::shm {

inline constexpr std::size_t kFdsPerMessageMax = 8;

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> SocketPair();

// Listens at `path`: bound under a temporary name in the same folder, then
// renamed over whatever was there, so that a client never sees half a socket
// and a stale file of a killed daemon is no obstacle (B-34). Mode 0660.
absl::StatusOr<UniqueFd> ListenAt(const std::string& path, int backlog = 128);
absl::StatusOr<UniqueFd> ConnectTo(const std::string& path);

// Sends one message. Never blocks when `wait` is false.
//
// kUnavailable: the peer is gone; kResourceExhausted: the socket is full
// (wait = false)
absl::Status SendMessage(int socket, std::span<const std::uint8_t> bytes,
                         std::span<const int> fds = {}, bool wait = true);

enum class ReceiveState { kMessage, kClosed, kNothingYet };
struct Received {
  ReceiveState state = ReceiveState::kClosed;
  std::size_t bytes = 0;
  std::vector<UniqueFd> fds;
};
// Receives one message into `out`. Descriptors arrive close-on-exec.
//
// kInvalidArgument: the message is longer than `out`, or brings more than
// `fds_max` descriptors (all of them are closed)
absl::StatusOr<Received> ReceiveMessage(int socket, std::span<std::uint8_t> out,
                                        std::size_t fds_max = 0,
                                        bool wait = true);

template <typename T>
absl::Status SendStruct(int socket, const T& message,
                        std::span<const int> fds = {}, bool wait = true) {
  static_assert(std::is_trivially_copyable_v<T>);
  return SendMessage(
      socket, {reinterpret_cast<const std::uint8_t*>(&message), sizeof(T)}, fds,
      wait);
}

// Receives exactly one T; `out` is a private copy.
//
// kInvalidArgument: another size (also shorter), or too many descriptors
template <typename T>
absl::StatusOr<Received> ReceiveStruct(int socket, T& out,
                                       std::size_t fds_max = 0,
                                       bool wait = true) {
  static_assert(std::is_trivially_copyable_v<T>);
  auto got = ReceiveMessage(
      socket, {reinterpret_cast<std::uint8_t*>(&out), sizeof(T)}, fds_max, wait);
  if (got.ok() && got->state == ReceiveState::kMessage &&
      got->bytes != sizeof(T)) {
    return absl::InvalidArgumentError(
        "a message of another size than expected; is the peer of another "
        "version?");
  }
  return got;
}

struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  UniqueFd pidfd;  // empty where the kernel has no SO_PEERPIDFD
};
// Who is at the other end (as of connect; the pid may be reused, the pidfd not).
//
// kPermissionDenied: overflow uid 65534 (an unmapped user of another namespace)
absl::StatusOr<Peer> PeerOf(int socket);

}  // namespace penstock::shm

#endif  // PENSTOCK_COMMON_SHM_FD_SOCKET_H_
