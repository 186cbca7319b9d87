#ifndef PENSTOCK_SERVER_IO_ENGINES_H_
#define PENSTOCK_SERVER_IO_ENGINES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/io/read_engine.h"

namespace penstock::io {

absl::StatusOr<std::unique_ptr<ReadEngine>> StartUringEngine(
    const ReadEngineOptions& options);
std::unique_ptr<ReadEngine> StartPreadEngine(const ReadEngineOptions& options);

// kInvalidArgument: offset, size or address not aligned, or nothing to read
absl::Status CheckRequest(const ReadRequest& request);

// The end of a read of `got` bytes in all: OK, or what is wrong with the file.
absl::Status FinishRead(const ReadRequest& request, std::uint64_t got);

}  // namespace penstock::io

#endif  // PENSTOCK_SERVER_IO_ENGINES_H_
