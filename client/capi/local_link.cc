#include "client/capi/local_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/shm/handshake.h"

namespace penstock::capi {
namespace {

std::string Errno(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

bool WaitReadable(int fd, int timeout_ms) {
  pollfd p{fd, POLLIN, 0};
  int rc;
  do {
    rc = ::poll(&p, 1, timeout_ms);
  } while (rc < 0 && errno == EINTR);
  return rc > 0;
}

// One datagram of the socket, with at most one descriptor (-1: none came).
ssize_t Receive(int socket, void* into, std::size_t bytes, int* fd) {
  *fd = -1;
  iovec iov{into, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr m{};
  m.msg_iov = &iov;
  m.msg_iovlen = 1;
  m.msg_control = control;
  m.msg_controllen = sizeof(control);
  ssize_t n;
  do {
    n = ::recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return n;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int))) {
      std::memcpy(fd, CMSG_DATA(c), sizeof(int));
    }
  }
  return n;
}

bool GoodHeader(const shm::HandshakeHeader& h, shm::HandshakeKind kind) {
  return h.magic == shm::kHandshakeMagic && h.version == shm::kHandshakeVersion &&
         h.kind == kind;
}

}  // namespace

Result ArenaMap::Map(int fd, std::uint64_t bytes,
                     std::shared_ptr<ArenaMap>* out) {
  struct stat st;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  const bool good = ::fstat(fd, &st) == 0 &&
                    static_cast<std::uint64_t>(st.st_size) == bytes &&
                    bytes > 0 && seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  void* p = good ? ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0)
                 : MAP_FAILED;
  const std::string why = good ? Errno("mmap") : "size or seals differ";
  ::close(fd);
  if (p == MAP_FAILED) {
    return Fail(
        PS_UNAVAILABLE,
        {"arena of the daemon", "cannot be mapped", why,
         "sealed shared memory of the size that was said",
         "restart the daemon; it is of another version, or memory is short"});
  }
  // Ours is a view: a fork of the trainer does not need it.
  ::madvise(p, bytes, MADV_DONTFORK);
  out->reset(new ArenaMap(static_cast<const std::uint8_t*>(p), bytes));
  return {};
}

ArenaMap::ArenaMap(const std::uint8_t* data, std::uint64_t bytes)
    : data_(data), bytes_(bytes) {
#ifdef MADV_POPULATE_READ
  populate_ = std::thread([this] {
    constexpr std::uint64_t kPiece = 4 << 20;
    for (std::uint64_t at = 0; at < bytes_ && !stop_.load(); at += kPiece) {
      ::madvise(const_cast<std::uint8_t*>(data_) + at,
                std::min(kPiece, bytes_ - at), MADV_POPULATE_READ);
    }
  });
#endif
}

ArenaMap::~ArenaMap() {
  if (::getpid() != pid_) {  // a fork: neither thread nor mapping came along
    if (populate_.joinable()) populate_.detach();
    return;
  }
  stop_.store(true);
  if (populate_.joinable()) populate_.join();
  ::munmap(const_cast<std::uint8_t*>(data_), bytes_);
}

Result LocalLink::Connect(const std::string& path, int timeout_ms,
                          std::unique_ptr<LocalLink>* out) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Fail(PS_INVALID,
                {path, "the socket's path is too long",
                 std::to_string(path.size()) + " bytes",
                 "at most " + std::to_string(sizeof(address.sun_path) - 1),
                 "choose a shorter socket_dir"});
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(PS_FAILED, Errno("socket"));
  std::unique_ptr<LocalLink> link(new LocalLink(fd));
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
      0) {
    if (errno == EACCES || errno == EPERM) {  // waiting will not change it
      return Fail(
          PS_REFUSED,
          {path, "no right to connect", std::strerror(errno),
           "a user that may open the socket",
           "run as a user of the daemon's group, or correct the address"});
    }
    return Fail(PS_UNAVAILABLE,
                {path, "no daemon answers", std::strerror(errno),
                 "penstockd listening there",
                 "start penstockd, or correct the address"});
  }
  const shm::Hello hello;
  if (::send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
    return Fail(PS_UNAVAILABLE, Errno(path + ": send"));
  }
  if (!WaitReadable(fd, timeout_ms)) {
    return Fail(
        PS_UNAVAILABLE,
        {path, "the daemon does not answer",
         "nothing in " + std::to_string(timeout_ms) + " ms", "its welcome",
         "look at the daemon's log; it may be stopped or overloaded"});
  }
  union {
    shm::HandshakeHeader header;
    shm::Welcome welcome;
    shm::Refused refused;
  } reply{};
  int unexpected;
  const ssize_t n = Receive(fd, &reply, sizeof(reply), &unexpected);
  if (unexpected >= 0) ::close(unexpected);
  if (n == sizeof(shm::Refused) &&
      GoodHeader(reply.header, shm::HandshakeKind::kRefused)) {
    reply.refused.text[sizeof(reply.refused.text) - 1] = '\0';
    return Fail(PS_REFUSED, reply.refused.text);
  }
  if (n != sizeof(shm::Welcome) ||
      !GoodHeader(reply.header, shm::HandshakeKind::kWelcome)) {
    return Fail(
        n <= 0 ? PS_UNAVAILABLE : PS_FAILED,
        {path, "not a penstock daemon of this version",
         n <= 0 ? "a closed connection" : "another answer",
         "the welcome of a penstockd of this version",
         "install daemon and client of one version, or correct the address"});
  }
  reply.welcome.session[sizeof(reply.welcome.session) - 1] = '\0';
  reply.welcome.grpc_address[sizeof(reply.welcome.grpc_address) - 1] = '\0';
  link->session_ = reply.welcome.session;
  link->grpc_target_ = reply.welcome.grpc_address;
  *out = std::move(link);
  return {};
}

LocalLink::~LocalLink() { ::close(fd_); }

Result LocalLink::ReceiveArena(std::uint64_t arena, int timeout_ms,
                               std::shared_ptr<ArenaMap>* out) {
  for (;;) {
    if (!WaitReadable(fd_, timeout_ms)) {
      return Fail(PS_UNAVAILABLE,
                  {"handshake socket", "the daemon did not send its arena",
                   "nothing in " + std::to_string(timeout_ms) + " ms",
                   "the arena of the job", "look at the daemon's log"});
    }
    shm::ArenaMessage message{};
    int fd = -1;
    const ssize_t n = Receive(fd_, &message, sizeof(message), &fd);
    if (n != sizeof(message) || fd < 0 ||
        !GoodHeader(message.header, shm::HandshakeKind::kArena)) {
      if (fd >= 0) ::close(fd);
      return Fail(PS_UNAVAILABLE,
                  {"handshake socket", "the daemon closed it",
                   "the end of the connection", "the arena of the job",
                   "look at the daemon's log; the client attaches again"});
    }
    if (message.arena != arena) {  // of an attach that was given up
      ::close(fd);
      continue;
    }
    return ArenaMap::Map(fd, message.bytes, out);
  }
}

}  // namespace penstock::capi
