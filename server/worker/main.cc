// penstock-decoder: the decoder zygote of penstockd, started by it with the
// control socket as descriptor 3. See README.md.
extern "C" {
#include <libavutil/log.h>
}

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "common/shm/worker_protocol.h"
#include "server/worker/zygote.h"

namespace {

constexpr int kExitUsage = 2;

bool HasControlSocket() {
  int type = 0;
  socklen_t length = sizeof(type);
  return getsockopt(penstock::shm::kControlFd, SOL_SOCKET, SO_TYPE, &type,
                    &length) == 0 &&
         type == SOCK_SEQPACKET;
}

}  // namespace

int main() {
  if (!HasControlSocket()) {
    std::fprintf(stderr,
                 "penstock-decoder: descriptor %d is no control socket\n"
                 "  do        nothing: penstockd starts this program itself\n",
                 penstock::shm::kControlFd);
    return kExitUsage;
  }
  // Nothing is read from or printed to where the daemon was started.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (null > STDERR_FILENO) close(null);
  }
  av_log_set_level(AV_LOG_QUIET);  // hostile streams could fill a disk with it
  return penstock::worker::Zygote().Run();
}
