#include "common/telemetry/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace penstock::telemetry {

void InitLog(std::string_view level) {
  auto logger = spdlog::stderr_color_mt("penstock");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v",
                      spdlog::pattern_time_type::utc);
  logger->set_level(level == "debug"   ? spdlog::level::debug
                    : level == "warn"  ? spdlog::level::warn
                    : level == "error" ? spdlog::level::err
                                       : spdlog::level::info);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void Debug(const std::string& text) { spdlog::debug("{}", text); }
void Info(const std::string& text) { spdlog::info("{}", text); }
void Warn(const std::string& text) { spdlog::warn("{}", text); }
void Error(const std::string& text) { spdlog::error("{}", text); }

}  // namespace penstock::telemetry
