// penstockd: the daemon of a node.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "common/status/status.h"
#include "common/telemetry/log.h"
#include "common/telemetry/metrics.h"
#include "server/app/daemon_config.h"
#include "server/app/daemon_metrics.h"
#include "server/app/dir_lock.h"
#include "server/pipeline/planned_feed.h"
#include "server/store/job_store.h"
#include "server/transport/grpc_server.h"
#include "server/transport/handshake_server.h"

namespace penstock::app {
namespace {

absl::Status CheckSocketPath(const std::string& path) {
  constexpr std::size_t kMax = sizeof(sockaddr_un{}.sun_path) - 5;  // ".new"
  if (path.size() <= kMax) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = "socket_dir",
                    .what = "the socket's path is too long",
                    .found = absl::StrFormat("%d bytes: %s", path.size(), path),
                    .expected = absl::StrFormat("at most %d", kMax),
                    .action = "choose a shorter socket_dir"});
}

// Waits for SIGTERM or SIGINT, which are blocked in every thread.
void WaitForSignal(const sigset_t& set) {
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  telemetry::Info(absl::StrFormat("%s: draining", strsignal(signal)));
}

absl::Status Run(const DaemonConfig& config, const sigset_t& signals) {
  const std::string handshake = config.socket_dir + "/penstock.sock";
  const std::string control = config.socket_dir + "/grpc.sock";
  PENSTOCK_RETURN_IF_ERROR(CheckSocketPath(handshake));
  PENSTOCK_ASSIGN_OR_RETURN(auto socket_lock,
                            DirLock::Take(config.socket_dir, "socket_dir"));
  std::unique_ptr<DirLock> state_lock;
  if (config.state_dir != config.socket_dir) {
    PENSTOCK_ASSIGN_OR_RETURN(state_lock,
                              DirLock::Take(config.state_dir, "state_dir"));
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      auto store, store::OpenSqliteStore(config.state_dir + "/jobs.sqlite"));
  std::string why;
  PENSTOCK_ASSIGN_OR_RETURN(
      auto engine, io::StartReadEngine({.backend = config.io}, &why));
  if (!why.empty()) {
    telemetry::Warn("io_uring is refused (" + why + "); reading with pread");
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      auto jobs, pipeline::JobManager::Create(
                     config.jobs, pipeline::LoadPlannedFeed, *store, *engine));
  auto facts = [&] {
    return transport::DaemonFacts{engine->backend(), engine->stats().bytes,
                                  config.jobs.arena_bytes,
                                  config.jobs.workers.workers};
  };
  PENSTOCK_ASSIGN_OR_RETURN(
      auto grpc, transport::GrpcServer::Start({control, config.listen}, *jobs,
                                              facts, [] {
                                                ::kill(::getpid(), SIGTERM);
                                              }));
  PENSTOCK_ASSIGN_OR_RETURN(
      auto handshakes, transport::HandshakeServer::Start(
                           handshake, "unix:" + control, *jobs));
  std::unique_ptr<telemetry::Exposer> exposer;
  if (!config.metrics.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(
        exposer, telemetry::Exposer::Start(config.metrics, [&] {
          return CollectMetrics(*jobs, *engine);
        }));
  }
  grpc->SetServing(true);
  telemetry::Info(absl::StrFormat(
      "penstockd %s serves %s%s; io %s, %d workers a job, arena at most %d MiB",
      PENSTOCK_VERSION, config.socket_dir,
      grpc->tcp_port() ? absl::StrFormat(" and TCP port %d", grpc->tcp_port())
                       : "",
      engine->backend(), config.jobs.workers.workers,
      config.jobs.arena_bytes >> 20));
  if (grpc->tcp_port() != 0) {
    std::printf("{\"tcp_port\":%d}\n", grpc->tcp_port());
    std::fflush(stdout);
  }

  WaitForSignal(signals);
  // Drain: no new attach, what is published stays readable until its rank has
  // let go of the socket; then everything ends in reverse order.
  grpc->SetServing(false);
  jobs->Drain();
  exposer.reset();
  grpc->Shutdown();
  handshakes.reset();
  grpc.reset();
  jobs.reset();
  telemetry::Info("stopped");
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::app

int main(int argc, char** argv) {
  // Large messages come and go: keep their memory instead of faulting it in
  // again each time.
  ::mallopt(M_MMAP_THRESHOLD, 512 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 20);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);  // a terminal that closes
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);

  CLI::App app("penstockd: the Penstock daemon of a node");
  std::string config_path;
  bool insecure_loopback = false;
  app.add_option("--config", config_path, "YAML file; defaults without one");
  app.add_flag("--insecure-loopback", insecure_loopback,
               "serve gRPC on plain TCP, on loopback only");
  app.set_version_flag("--version", PENSTOCK_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  auto fail = [](const absl::Status& status) {
    std::fprintf(stderr, "penstockd: %s\n",
                 std::string(status.message()).c_str());
    return penstock::ExitCodeOf(status);
  };
  auto config = penstock::app::LoadDaemonConfig(config_path);
  if (!config.ok()) return fail(config.status());
  if (insecure_loopback && config->listen.empty()) {
    config->listen = "127.0.0.1:0";
  }
  if (!config->listen.empty() && !insecure_loopback) {
    return fail(penstock::MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = "listen",
         .what = "plain TCP needs to be asked for",
         .found = config->listen,
         .expected = "--insecure-loopback beside it",
         .action = "start with --insecure-loopback, or remove listen"}));
  }
  penstock::telemetry::InitLog(config->log_level);
  try {
    const absl::Status status = penstock::app::Run(*config, signals);
    return status.ok() ? 0 : fail(status);
  } catch (const std::exception& e) {  // no memory, no threads
    return fail(absl::InternalError(e.what()));
  }
}
