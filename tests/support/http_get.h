#ifndef PENSTOCK_TESTS_SUPPORT_HTTP_GET_H_
#define PENSTOCK_TESTS_SUPPORT_HTTP_GET_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace penstock::test {

inline sockaddr_in Loopback(int port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  a.sin_port = htons(static_cast<std::uint16_t>(port));
  return a;
}

// A port of loopback that was free a moment ago.
inline int FreePort() {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in a = Loopback(0);
  socklen_t size = sizeof(a);
  ::bind(s, reinterpret_cast<sockaddr*>(&a), size);
  ::getsockname(s, reinterpret_cast<sockaddr*>(&a), &size);
  ::close(s);
  return ntohs(a.sin_port);
}

// The answer with its header; empty when nobody answers.
inline std::string HttpGet(int port, const std::string& path) {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in a = Loopback(port);
  std::string out;
  if (::connect(s, reinterpret_cast<const sockaddr*>(&a), sizeof(a)) == 0) {
    const std::string ask = "GET " + path +
                            " HTTP/1.1\r\nHost: localhost\r\n"
                            "Connection: close\r\n\r\n";
    ::send(s, ask.data(), ask.size(), MSG_NOSIGNAL);
    char buffer[4096];
    for (ssize_t n; (n = ::recv(s, buffer, sizeof(buffer), 0)) > 0;) {
      out.append(buffer, static_cast<std::size_t>(n));
    }
  }
  ::close(s);
  return out;
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_SUPPORT_HTTP_GET_H_
