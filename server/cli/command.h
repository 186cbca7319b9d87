#ifndef PENSTOCK_SERVER_CLI_COMMAND_H_
#define PENSTOCK_SERVER_CLI_COMMAND_H_

#include <CLI/CLI.hpp>

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
void AddFeedCommand(CLI::App& app, CommandContext& context);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_COMMAND_H_
