#ifndef PENSTOCK_SERVER_DECODE_AV_LOG_H_
#define PENSTOCK_SERVER_DECODE_AV_LOG_H_

#include <string>
#include <vector>

namespace penstock::decode {

// While one lives on a thread, what FFmpeg reports as errors on that thread is
// collected (the first 16 lines); without one it is dropped, never printed.
class AvLogScope {
 public:
  explicit AvLogScope(std::vector<std::string>& lines);
  ~AvLogScope();
  AvLogScope(const AvLogScope&) = delete;
  AvLogScope& operator=(const AvLogScope&) = delete;

 private:
  std::vector<std::string>* before_;
};

// Takes FFmpeg's log away from stderr; once a process, any number of calls.
void TakeAvLog();

}  // namespace penstock::decode

#endif  // PENSTOCK_SERVER_DECODE_AV_LOG_H_
