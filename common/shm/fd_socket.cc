#include "common/shm/fd_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace penstock::shm {
namespace {

constexpr uid_t kOverflowUid = 65534;

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = path,
         .what = "no path for a Unix socket",
         .found = absl::StrFormat("%d characters", path.size()),
         .expected = absl::StrFormat("1 to %d", sizeof(address.sun_path) - 1),
         .action = "use a shorter socket directory"});
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Takes every descriptor out of a received message, so that none can leak.
std::vector<UniqueFd> TakeFds(msghdr& message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
       c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> SocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return ErrnoError(errno, "socketpair");
  }
  return std::pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

absl::StatusOr<UniqueFd> ListenAt(const std::string& path, int backlog) {
  const std::string temporary = absl::StrFormat("%s.%d", path, getpid());
  PENSTOCK_RETURN_IF_ERROR(AddressOf(path).status());
  PENSTOCK_ASSIGN_OR_RETURN(auto address, AddressOf(temporary));
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError(errno, "socket(AF_UNIX)");
  unlink(temporary.c_str());  // of an earlier process with this pid
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
      0) {
    return ErrnoError(errno, "bind " + temporary,
                      "make the socket directory, writable by this user");
  }
  int rc = chmod(temporary.c_str(), 0660);
  if (rc == 0) rc = listen(fd.get(), backlog);
  if (rc == 0) rc = std::rename(temporary.c_str(), path.c_str());
  if (rc != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return ErrnoError(error, "listen at " + path);
  }
  return fd;
}

absl::StatusOr<UniqueFd> ConnectTo(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(auto address, AddressOf(path));
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoError(errno, "socket(AF_UNIX)");
  while (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                 sizeof(address)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ECONNREFUSED || errno == ENOENT) {
      return MakeError(absl::StatusCode::kUnavailable,
                       {.where = path,
                        .what = "nobody listens at this socket",
                        .found = "no daemon",
                        .expected = "penstockd listening there",
                        .action = "start penstockd, or give its socket"});
    }
    return ErrnoError(errno, "connect " + path);
  }
  return fd;
}

absl::Status SendMessage(int socket, std::span<const std::uint8_t> bytes,
                         std::span<const int> fds, bool wait) {
  if (fds.size() > kFdsPerMessageMax) {
    return absl::InvalidArgumentError("send: too many descriptors");
  }
  iovec io = {const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerMessageMax * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  const int flags = MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT);
  while (sendmsg(socket, &message, flags) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) {
      return absl::ResourceExhaustedError("send: the socket is full");
    }
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
      return absl::UnavailableError("send: the peer is gone");
    }
    return ErrnoError(errno, "sendmsg");
  }
  return absl::OkStatus();
}

absl::StatusOr<Received> ReceiveMessage(int socket, std::span<std::uint8_t> out,
                                        std::size_t fds_max, bool wait) {
  iovec io = {out.data(), out.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kFdsPerMessageMax * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const int flags = MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT);
  ssize_t n;
  while ((n = recvmsg(socket, &message, flags)) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Received{.state = ReceiveState::kNothingYet};
    }
    if (errno == ECONNRESET) return Received{.state = ReceiveState::kClosed};
    return ErrnoError(errno, "recvmsg");
  }
  Received got{.state = ReceiveState::kMessage,
               .bytes = static_cast<std::size_t>(n),
               .fds = TakeFds(message)};
  // MSG_CTRUNC: there were more than fit; the kernel closed the rest.
  if (got.fds.size() > fds_max || (message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("receive: more descriptors than the %d expected; all "
                        "of them were closed", fds_max));
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "receive: a message longer than the %d bytes expected", out.size()));
  }
  // No message of ours is empty: this is end-of-file.
  if (n == 0) got.state = ReceiveState::kClosed;
  return got;
}

absl::StatusOr<Peer> PeerOf(int socket) {
  ucred c = {};
  socklen_t length = sizeof(c);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &c, &length) != 0) {
    return ErrnoError(errno, "SO_PEERCRED");
  }
  if (c.uid == kOverflowUid) {
    return MakeError(
        absl::StatusCode::kPermissionDenied,
        {.where = absl::StrFormat("peer with pid %d", c.pid),
         .what = "its user is not mapped into this user namespace (65534)",
         .found = "user 65534",
         .expected = "a user of this namespace",
         .action = "run daemon and ranks in one user namespace"});
  }
  Peer peer{.pid = c.pid, .uid = c.uid, .gid = c.gid};
  int pidfd = -1;
  length = sizeof(pidfd);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0) {
    peer.pidfd.Reset(pidfd);
  }
  return peer;
}

}  // namespace penstock::shm
