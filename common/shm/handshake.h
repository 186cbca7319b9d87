#ifndef PENSTOCK_COMMON_SHM_HANDSHAKE_H_
#define PENSTOCK_COMMON_SHM_HANDSHAKE_H_

#include <cstdint>

// The handshake socket (SOCKET_DIR/penstock.sock, SOCK_SEQPACKET): what client
// and daemon say beside gRPC. It carries descriptors and, by its end, the news
// that a process is gone. Fixed-size messages, little-endian.
//
//   client -> daemon   Hello
//   daemon -> client   Welcome {session}, or Refused {text}
//   daemon -> client   ArenaMessage + one descriptor, before the first batch of
//                      each arena and before the reply to the Attach call
//   either side closes: the session is over
namespace penstock::shm {

inline constexpr std::uint32_t kHandshakeMagic = 0x4B545350;  // "PSTK"
inline constexpr std::uint32_t kHandshakeVersion = 1;

enum class HandshakeKind : std::uint32_t {
  kHello = 1,
  kWelcome = 2,
  kRefused = 3,
  kArena = 4,
};

struct HandshakeHeader {
  std::uint32_t magic = kHandshakeMagic;
  std::uint32_t version = kHandshakeVersion;
  HandshakeKind kind = HandshakeKind::kHello;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(HandshakeHeader) == 16);

struct Hello {
  HandshakeHeader header;
  std::uint8_t token[64] = {};  // job token, zeros: none
};
static_assert(sizeof(Hello) == 80);

struct Welcome {
  HandshakeHeader header{.kind = HandshakeKind::kWelcome};
  char session[48] = {};  // hex, zero-terminated: goes into every gRPC call
  char grpc_address[128] = {};  // "unix:/…", zero-terminated
  std::uint64_t daemon_pid = 0;
};
static_assert(sizeof(Welcome) == 200);

struct Refused {
  HandshakeHeader header{.kind = HandshakeKind::kRefused};
  char text[240] = {};
};
static_assert(sizeof(Refused) == 256);

struct ArenaMessage {
  HandshakeHeader header{.kind = HandshakeKind::kArena};
  std::uint64_t arena = 0;  // as in SlotRef and AttachReply
  std::uint64_t bytes = 0;
};
static_assert(sizeof(ArenaMessage) == 32);

}  // namespace penstock::shm

#endif  // PENSTOCK_COMMON_SHM_HANDSHAKE_H_
