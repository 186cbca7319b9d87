#ifndef PENSTOCK_SERVER_CLI_COMMAND_H_
#define PENSTOCK_SERVER_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::cli {

// What every command shares. Commands set exit_code (DESIGN §9); stdout is the
// answer, stderr progress and errors; with `json` stdout is JSON lines.
struct CommandContext {
  int exit_code = 0;
  bool json = false;
};

// Prints the error to stderr; returns its exit code.
int PrintError(const absl::Status& status);

void AddImportCommand(CLI::App& app, CommandContext& context);
void AddVerifyCommand(CLI::App& app, CommandContext& context);
void AddInspectCommand(CLI::App& app, CommandContext& context);
void AddPlanCommand(CLI::App& app, CommandContext& context);
void AddExplainCommand(CLI::App& app, CommandContext& context);
void AddFeedCommand(CLI::App& app, CommandContext& context);

// kOutOfRange: no such data rank
absl::Status CheckRank(std::uint32_t rank, std::uint32_t world);

// For options that are unsigned: CLI11 takes "-4" as a very large number.
inline std::string WholeNumber(const std::string& text) {
  const bool good =
      !text.empty() && text.size() <= 18 &&
      text.find_first_not_of("0123456789") == std::string::npos;
  return good ? ""
              : "no such number\n  found     " + text +
                    "\n  expected  a whole number from 0 to 10^18\n"
                    "  do        correct the option\n";
}

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_COMMAND_H_
