#ifndef PENSTOCK_COMMON_TELEMETRY_LOG_H_
#define PENSTOCK_COMMON_TELEMETRY_LOG_H_

#include <string>
#include <string_view>

namespace penstock::telemetry {

// Log lines on stderr: "time level text". Nothing is logged per batch.
//
// Threading: any thread after InitLog.

// `level`: debug, info, warn or error; others are info.
void InitLog(std::string_view level);
void Debug(const std::string& text);
void Info(const std::string& text);
void Warn(const std::string& text);
void Error(const std::string& text);

}  // namespace penstock::telemetry

#endif  // PENSTOCK_COMMON_TELEMETRY_LOG_H_
