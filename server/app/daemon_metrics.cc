#include "server/app/daemon_metrics.h"

#include <string>

namespace penstock::app {

std::vector<telemetry::MetricValue> CollectMetrics(
    const pipeline::JobManager& jobs, const io::ReadEngine& engine) {
  std::vector<telemetry::MetricValue> out;
  auto add = [&](const char* name, const char* help, bool counter, double value,
                 std::map<std::string, std::string> labels = {}) {
    out.push_back({name, help, counter, value, std::move(labels)});
  };
  const auto reads = engine.stats();
  add("penstock_reads_total", "Reads of shards", true,
      static_cast<double>(reads.reads));
  add("penstock_read_bytes_total", "Bytes read from shards", true,
      static_cast<double>(reads.bytes));
  add("penstock_read_errors_total", "Reads that failed", true,
      static_cast<double>(reads.errors));
  add("penstock_io_backend_info", "How shards are read", false, 1,
      {{"backend", engine.backend()}});
  const auto w = jobs.worker_stats();
  add("penstock_frames_decoded_total", "Pictures that came out of decoders",
      true, static_cast<double>(w.frames_decoded));
  add("penstock_frames_written_total", "Frames written into arenas", true,
      static_cast<double>(w.frames));
  add("penstock_worker_busy_seconds_total", "CPU time of decoder workers", true,
      static_cast<double>(w.busy_ns) / 1e9);
  add("penstock_decode_jobs_total", "Decode jobs done", true,
      static_cast<double>(w.jobs_done));
  add("penstock_decode_jobs_failed_total", "Decode jobs that failed", true,
      static_cast<double>(w.jobs_failed));
  add("penstock_worker_restarts_total", "Decoder workers that were replaced",
      true,
      static_cast<double>(w.worker_crashes + w.worker_kills +
                          w.worker_timeouts));
  add("penstock_decode_queue_jobs", "Decode jobs that wait for a worker", false,
      w.jobs_queued);
  add("penstock_arena_bytes", "Bytes of all arenas", false,
      static_cast<double>(jobs.arena_bytes()));
  for (const auto& job : jobs.Jobs()) {
    add("penstock_job_generation", "Open generation", false,
        static_cast<double>(job.generation), {{"job", job.job}});
    add("penstock_job_next_step", "Step that is made next", false,
        static_cast<double>(job.pipeline.next_step), {{"job", job.job}});
    add("penstock_arena_free_slots", "Slots that nobody holds", false,
        static_cast<double>(job.pipeline.free_slots), {{"job", job.job}});
    for (const auto& r : job.pipeline.ranks) {
      const std::map<std::string, std::string> labels = {
          {"job", job.job}, {"data_rank", std::to_string(r.data_rank)}};
      add("penstock_rank_position", "Step that the rank wants next", false,
          static_cast<double>(r.position), labels);
      add("penstock_rank_acked_next", "First step not acknowledged", false,
          static_cast<double>(r.acked_next), labels);
      add("penstock_rank_held_slots", "Slots that its sessions hold", false,
          r.held_slots, labels);
    }
  }
  return out;
}

}  // namespace penstock::app
