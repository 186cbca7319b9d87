#include "loadtest/measure/consume.h"

#include <grpcpp/grpcpp.h>

#include <cstring>
#include <penstock/client.hpp>
#include <thread>

#include "common/status/status.h"
#include "penstock/v1/delivery.grpc.pb.h"

namespace penstock::loadtest {

std::uint64_t ReadThrough(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum[4] = {};
  std::size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    std::uint64_t w[4];
    std::memcpy(w, bytes.data() + i, 32);
    for (int k = 0; k < 4; ++k) sum[k] += w[k];
  }
  for (; i < bytes.size(); ++i) sum[0] += bytes[i];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

absl::Status WaitMade(const std::string& address, const std::string& job,
                      std::uint64_t steps) {
  auto channel = grpc::CreateChannel("unix:" + address + "/grpc.sock",
                                     grpc::InsecureChannelCredentials());
  auto stub = v1::Admin::NewStub(channel);
  const double deadline = NowSeconds() + 120;
  while (NowSeconds() < deadline) {
    grpc::ClientContext context;
    v1::GetStatusReply reply;
    if (stub->GetStatus(&context, {}, &reply).ok()) {
      for (const auto& j : reply.jobs()) {
        if (j.job() == job && j.published_next() >= steps) {
          return absl::OkStatus();
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return absl::DeadlineExceededError("the daemon did not make the steps");
}

absl::StatusOr<Consumed> ConsumeReady(const std::string& address,
                                      const std::string& status_address,
                                      const std::string& feed,
                                      const std::string& job, bool paced) {
  ps_attach_options o{};
  o.struct_bytes = sizeof(o);
  o.address = address.c_str();
  o.job = job.c_str();
  o.feed = feed.c_str();
  o.incarnation = "loadtest";
  o.resume = "new";
  o.data_world = 1;
  o.ack_leader = 1;
  penstock::Error error;
  auto f = penstock::Feed::Attach(o, &error);
  if (!f) return absl::InternalError(error.message);
  Consumed c;
  c.steps = f->info().total_steps;
  PENSTOCK_RETURN_IF_ERROR(WaitMade(status_address, job, c.steps));
  std::vector<double> handoffs;
  const double begin = NowSeconds();
  for (std::uint64_t i = 0; i < c.steps; ++i) {
    const double before = NowSeconds();
    auto step = f->Next();
    if (!step) return absl::InternalError(f->error().message);
    handoffs.push_back(NowSeconds() - before);
    const auto info = step->info();
    c.bytes = info.bytes;
    if (paced) {
      // Awake: a core that slept takes its time to come back.
      for (const double until = NowSeconds() + 2e-3; NowSeconds() < until;) {
      }
      continue;
    }
    c.checksum += ReadThrough(
        {static_cast<const std::uint8_t*>(step->tensors()[0].data), info.bytes});
  }
  c.seconds = NowSeconds() - begin;
  c.handoff_seconds = Median(handoffs);
  return c;
}

}  // namespace penstock::loadtest
