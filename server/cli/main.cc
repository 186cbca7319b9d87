// penstock: the command line.
#include <CLI/CLI.hpp>

#include "server/cli/command.h"

int main(int argc, char** argv) {
  CLI::App app("Penstock: game captures as training input");
  app.require_subcommand(1);
  app.set_version_flag("--version", PENSTOCK_VERSION);
  penstock::cli::CommandContext context;
  penstock::cli::AddImportCommand(app, context);
  penstock::cli::AddVerifyCommand(app, context);
  penstock::cli::AddInspectCommand(app, context);
  penstock::cli::AddPlanCommand(app, context);
  penstock::cli::AddFeedCommand(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int rc = app.exit(e);
    return rc == 0 ? 0 : 2;
  }
  return context.exit_code;
}
