// penstock: the command line.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "common/status/nearest_name.h"
#include "server/cli/command.h"

namespace {

// "imprt" is probably "import".
void SuggestCommand(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_name() == argv[1]) return;
    names.push_back(sub->get_name());
  }
  const std::string near = penstock::NearestName(argv[1], names);
  std::fprintf(stderr, "penstock: no command \"%s\"%s\n", argv[1],
               near.empty() ? "" : ("; did you mean \"" + near + "\"?").c_str());
}

}  // namespace

int main(int argc, char** argv) {
  // A full quota is an error with a name, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app("Penstock: game captures as training input");
  app.require_subcommand(1);
  app.set_version_flag("--version", PENSTOCK_VERSION);
  penstock::cli::CommandContext context;
  penstock::cli::AddImportCommand(app, context);
  penstock::cli::AddVerifyCommand(app, context);
  penstock::cli::AddInspectCommand(app, context);
  penstock::cli::AddPlanCommand(app, context);
  penstock::cli::AddExplainCommand(app, context);
  penstock::cli::AddFeedCommand(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int rc = app.exit(e);
    if (rc != 0) SuggestCommand(app, argc, argv);
    return rc == 0 ? 0 : 2;
  } catch (const std::exception& e) {  // no memory, a fault of ours
    std::fprintf(stderr, "penstock: %s\n", e.what());
    return 3;
  }
  return context.exit_code;
}
