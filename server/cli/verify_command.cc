#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/cli/command.h"
#include "server/dataset/verify.h"

namespace penstock::cli {
namespace {

using Json = nlohmann::json;

int RunVerify(const std::string& dir, const CommandContext& context) {
  auto report = dataset::VerifyDataset(dir);
  if (!report.ok()) return PrintError(report.status());
  for (const auto& f : report->faults) {
    if (context.json) {
      std::printf("%s\n", Json({{"schema", "penstock.verify.fault.v1"},
                                {"file", f.file},
                                {"block", f.place},
                                {"capture", f.capture},
                                {"offset", f.offset},
                                {"what", f.what}})
                              .dump(-1, ' ', false, Json::error_handler_t::replace)
                              .c_str());
      continue;
    }
    std::printf("%s, %s, byte %llu%s%s\n  %s\n", f.file.c_str(),
                f.place.c_str(), (unsigned long long)f.offset,
                f.capture.empty() ? "" : ", capture ",
                f.capture.substr(0, 16).c_str(), f.what.c_str());
  }
  if (context.json) {
    std::printf("%s\n", Json({{"schema", "penstock.verify.v1"},
                              {"dataset", dir},
                              {"id", report->id},
                              {"bytes", report->bytes},
                              {"blocks", report->blocks},
                              {"faults", report->faults.size()},
                              {"good", report->faults.empty()}})
                            .dump(-1, ' ', false, Json::error_handler_t::replace)
                            .c_str());
  } else if (report->faults.empty()) {
    std::printf("good: sha256:%s, %llu bytes, %llu blocks\n",
                report->id.c_str(), (unsigned long long)report->bytes,
                (unsigned long long)report->blocks);
  } else {
    std::fprintf(stderr,
                 "penstock: %s: %zu faults\n  do        copy the named files "
                 "again from their origin, or import again\n",
                 dir.c_str(), report->faults.size());
  }
  return report->faults.empty() ? 0 : 1;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, CommandContext& context) {
  auto* sub = app.add_subcommand("verify", "find any flipped bit of a dataset");
  auto dir = std::make_shared<std::string>();
  sub->add_option("dataset", *dir, "folder of a dataset version")->required();
  sub->add_flag("--json", context.json, "JSON lines on stdout");
  sub->callback(
      [dir, &context] { context.exit_code = RunVerify(*dir, context); });
}

}  // namespace penstock::cli
