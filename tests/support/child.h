#ifndef PENSTOCK_TESTS_SUPPORT_CHILD_H_
#define PENSTOCK_TESTS_SUPPORT_CHILD_H_

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

namespace penstock::test {

// A program under test with its stdout and stderr read together. It never
// outlives the test. Waiting is for lines and for its end, always with a limit.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], 1);
      ::dup2(ends[1], 2);
      std::vector<char*> argv;
      for (const auto& a : command) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ends[0];
  }
  ~Child() {
    if (pid_ > 0) {
      Kill(SIGKILL);
      Wait();
    }
    ::close(out_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void Kill(int signal) const { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }

  // True when the output holds `text` within the limit.
  bool WaitFor(const std::string& text, int limit_ms = 60'000) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(limit_ms);
    while (output_.find(text) == std::string::npos) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            deadline - std::chrono::steady_clock::now())
                            .count();
      if (left <= 0 || !ReadSome(static_cast<int>(left))) {
        return output_.find(text) != std::string::npos;
      }
    }
    return true;
  }

  // Exit code; 128 + signal when a signal ended it; -1 when it did not end
  // within the limit (then it is killed).
  int Wait(int limit_ms = 90'000) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(limit_ms);
    bool late = false;
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            deadline - std::chrono::steady_clock::now())
                            .count();
      if (left <= 0) {
        late = true;
        Kill(SIGKILL);
        break;
      }
      if (!ReadSome(static_cast<int>(left))) break;
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    if (late) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& output() const { return output_; }

 private:
  // False at the end of the output, or after the limit.
  bool ReadSome(int limit_ms) {
    pollfd p{out_, POLLIN, 0};
    if (::poll(&p, 1, limit_ms) <= 0) return false;
    char buffer[4096];
    const ssize_t n = ::read(out_, buffer, sizeof(buffer));
    if (n <= 0) return false;
    output_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  std::string output_;
};

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_SUPPORT_CHILD_H_
