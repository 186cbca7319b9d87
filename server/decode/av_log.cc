#include "server/decode/av_log.h"

extern "C" {
#include <libavutil/log.h>
}

#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace penstock::decode {
namespace {

constexpr std::size_t kLinesMax = 16;

thread_local std::vector<std::string>* tls_lines = nullptr;

void Collect(void*, int level, const char* format, std::va_list args) {
  if (level > AV_LOG_ERROR || tls_lines == nullptr) return;
  char line[512];
  std::vsnprintf(line, sizeof(line), format, args);
  std::string text(line);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && tls_lines->size() < kLinesMax) {
    tls_lines->push_back(std::move(text));
  }
}

}  // namespace

AvLogScope::AvLogScope(std::vector<std::string>& lines) : before_(tls_lines) {
  TakeAvLog();
  tls_lines = &lines;
}

AvLogScope::~AvLogScope() { tls_lines = before_; }

void TakeAvLog() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(Collect); });
}

}  // namespace penstock::decode
