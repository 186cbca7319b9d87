#include "server/pipeline/job_manager.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/job/attach.h"
#include "common/plan/cut.h"
#include "common/status/status.h"
#include "common/telemetry/log.h"
#include "server/pipeline/side_tensors.h"

namespace penstock::pipeline {
namespace {

constexpr auto kAckFlush = std::chrono::milliseconds(500);
constexpr int kChangeTries = 8;
constexpr auto kPredecessor = std::chrono::seconds(5);

// The open generation of a job on this daemon.
struct LiveJob {
  std::string name;
  LoadedFeed feed;
  std::string feed_key;  // folder and text that it was read from
  job::GenerationRecord generation;
  std::uint64_t arena_id = 0;
  std::shared_ptr<JobPipeline> pipeline;
  std::vector<std::uint64_t> acks_written;
};

struct Session {
  shm::HolderId id = 0;
  bool remote = false;
  std::shared_ptr<LiveJob> job;  // null before attach
  std::uint32_t rank = 0, cp_rank = 0;
  bool ack_leader = true, explicit_ack = false;
  std::string peer, incarnation;
  std::uint64_t position = 0;
};

std::string RandomToken() {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  return hash::Hex(hash::Bytes(bytes));
}

std::uint64_t RandomStart() {
  std::uint64_t v = 0;
  while (::getrandom(&v, sizeof(v), 0) != sizeof(v)) {
  }
  return v >> 2 | 1;
}

absl::Status NoSession(const std::string& session) {
  return MakeError(absl::StatusCode::kNotFound,
                   {.where = "session " + session.substr(0, 8) + "…",
                    .what = "not known to this daemon",
                    .found = "a session that ended, or of a daemon before",
                    .expected = "a session of this daemon",
                    .action = "attach again"});
}

}  // namespace

class JobManager::Impl {
 public:
  Impl(JobManagerOptions options, FeedLoader loader, store::JobStore& store,
       io::ReadEngine& engine)
      : options_(std::move(options)),
        loader_(std::move(loader)),
        store_(store),
        engine_(engine) {}

  absl::Status Start() {
    PENSTOCK_RETURN_IF_ERROR(EnsurePool());
    flusher_ = std::thread([this] { FlushLoop(); });
    return absl::OkStatus();
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      sessions_.clear();
    }
    stop_.notify_all();
    if (flusher_.joinable()) flusher_.join();
    FlushAcks();
    jobs_.clear();  // pipelines before the pool they borrow
    pool_.reset();
  }

  std::string OpenSession(bool remote) {
    std::lock_guard lock(mutex_);
    const std::string token = RandomToken();
    auto session = std::make_shared<Session>();
    session->id = next_holder_++;
    session->remote = remote;
    sessions_[token] = std::move(session);
    return token;
  }

  void CloseSession(const std::string& token) {
    std::shared_ptr<Session> session;
    {
      std::lock_guard lock(mutex_);
      auto it = sessions_.find(token);
      if (it == sessions_.end()) return;
      session = it->second;
      sessions_.erase(it);
    }
    if (session->job) session->job->pipeline->Leave(session->id);
  }

  absl::StatusOr<AttachResult> Attach(const AttachArgs& args) {
    {
      std::lock_guard lock(mutex_);
      if (draining_) {
        return absl::UnavailableError("the daemon is draining: no new attaches");
      }
    }
    if (args.data_rank >= args.ranks.world) {
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          {.where = "attach",
           .what = "no such data rank",
           .found = absl::StrFormat("rank %d of %d", args.data_rank,
                                    args.ranks.world),
           .expected = absl::StrFormat("0 to %d", args.ranks.world - 1),
           .action = "correct the rank or the world"});
    }
    PENSTOCK_ASSIGN_OR_RETURN(const LoadedFeed feed, Load(args));
    // Everything that the feed and the mesh can be refused for, before
    // anything is written.
    PENSTOCK_ASSIGN_OR_RETURN(BatchLayout layout,
                              MakeBatchLayout(*feed.plan, args.ranks, args.cp));
    PENSTOCK_RETURN_IF_ERROR(
        plan::CheckCpRank(args.cp.size, args.place.cp_rank));
    PENSTOCK_RETURN_IF_ERROR(
        plan::RolesOf(args.place.pp_rank, args.place.pp_size).status());
    const auto until = std::chrono::steady_clock::now() + kPredecessor;
    for (;;) {
      std::string peer;
      {
        // One attach at a time decides: two ranks of a new run open it once, and
        // of two processes with the same coordinates one comes second.
        std::lock_guard attach_lock(attach_mutex_);
        peer = Predecessor(args, feed.name);
        if (peer.empty()) return AttachLocked(args, feed, std::move(layout));
      }
      if (std::chrono::steady_clock::now() > until) return TwoProcesses(args, peer);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  absl::StatusOr<std::optional<PublishedBatch>> Next(
      const std::string& token, std::uint64_t step, std::uint64_t timeout_ms,
      const std::vector<ArenaSlot>& release,
      std::optional<std::uint64_t> acked_next) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto session, Find(token));
    const auto job = session->job;
    ReleaseSlots(*session, release);
    if (!acked_next && !session->explicit_ack) acked_next = step;
    if (session->ack_leader && acked_next) {
      // What was not given out cannot have been trained.
      job->pipeline->Ack(session->rank, std::min(*acked_next, step));
    }
    {
      std::lock_guard lock(mutex_);
      session->position = step;
    }
    auto batch = job->pipeline->Next(session->id, session->rank, step,
                                     timeout_ms);
    if (batch.ok()) {
      if (*batch) TakeSlice(*session, **batch);
      return batch;
    }
    if (batch.status().code() == absl::StatusCode::kUnavailable) {
      // The workers are gone for good (the zygote died): the generation goes on
      // in a new arena when the ranks attach again.
      DropJob(job);
      return absl::UnavailableError(std::string(batch.status().message()) +
                                    "; attach again");
    }
    if (batch.status().code() == absl::StatusCode::kCancelled) {
      return Fenced(token, *job);
    }
    return batch.status();
  }

  std::optional<PublishedBatch> TakeReady(const std::string& token,
                                          std::uint64_t step) {
    const auto session = Find(token);
    if (!session.ok()) return std::nullopt;
    auto batch = (*session)->job->pipeline->TakeReady((*session)->id,
                                                      (*session)->rank, step);
    if (batch) {
      TakeSlice(**session, *batch);
      std::lock_guard lock(mutex_);
      (*session)->position = step + 1;
    }
    return batch;
  }

  absl::Status Release(const std::string& token,
                       const std::vector<ArenaSlot>& slots) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto session, Find(token));
    ReleaseSlots(*session, slots);
    return absl::OkStatus();
  }

  absl::Status Ack(const std::string& token, std::uint64_t step) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto session, Find(token));
    if (session->ack_leader) {
      session->job->pipeline->Ack(session->rank, step + 1);
    }
    return absl::OkStatus();
  }

  absl::Status Checkpoint(const std::string& token, const std::string& name,
                          std::uint64_t next_step) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto session, Find(token));
    for (int i = 0; i < kChangeTries; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto stored,
                                store_.Load(session->job->name));
      if (!stored) return absl::InternalError("the job's record is gone");
      auto changed = store_.Change(
          session->job->name, stored->revision,
          job::NameCheckpoint{session->job->generation.number, name, next_step});
      if (changed.ok()) return absl::OkStatus();
      if (changed.status().code() != absl::StatusCode::kAborted) {
        return changed.status();
      }
    }
    return absl::UnavailableError("job store: too much change at once");
  }

  absl::StatusOr<SlotBytes> Bytes(const std::string& token, ArenaSlot slot) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto session, Find(token));
    const auto job = session->job;
    if (slot.arena != job->arena_id ||
        !job->pipeline->Holds(session->id, slot.slot)) {
      return absl::FailedPreconditionError(
          "the session does not hold this slot");
    }
    const auto& arena = job->pipeline->arena();
    return SlotBytes{
        job->pipeline,
        std::span<const std::uint8_t>(arena.bytes())
            .subspan(slot.slot.offset, job->pipeline->layout().bytes)};
  }

  absl::StatusOr<ArenaHandle> ArenaOf(const std::string& token) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto session, Find(token));
    return HandleOf(*session->job);
  }

  void OnArena(std::function<void(const std::string&, const ArenaHandle&)> f) {
    on_arena_ = std::move(f);
  }

  void Drain() {
    std::lock_guard lock(mutex_);
    draining_ = true;
  }
  bool draining() const {
    std::lock_guard lock(mutex_);
    return draining_;
  }

  std::vector<JobView> Jobs() const {
    std::vector<JobView> out;
    std::lock_guard lock(mutex_);
    for (const auto& [name, job] : jobs_) {
      JobView v;
      v.job = name;
      v.generation = job->generation.number;
      v.data_world = job->generation.data_world;
      v.pipeline = job->pipeline->View();
      for (const auto& [token, s] : sessions_) {
        if (s->job != job) continue;
        v.sessions.push_back({s->rank, s->peer, s->position,
                              s->rank < v.pipeline.ranks.size()
                                  ? v.pipeline.ranks[s->rank].held_slots
                                  : 0,
                              s->remote});
      }
      out.push_back(std::move(v));
    }
    return out;
  }

  WorkerPoolStats worker_stats() const {
    std::lock_guard lock(mutex_);
    return pool_ ? pool_->stats() : WorkerPoolStats{};
  }

  std::uint64_t arena_bytes() const {
    std::lock_guard lock(mutex_);
    std::uint64_t n = 0;
    for (const auto& [name, job] : jobs_) n += job->pipeline->arena().size();
    return n;
  }

 private:
  absl::StatusOr<std::shared_ptr<Session>> Find(const std::string& token) {
    std::lock_guard lock(mutex_);
    auto it = sessions_.find(token);
    if (it == sessions_.end() || !it->second->job) return NoSession(token);
    return it->second;
  }

  // Why a session's pipeline was taken away under it.
  absl::Status Fenced(const std::string& token, const LiveJob& job) {
    std::lock_guard lock(mutex_);
    auto it = fenced_.find(token);
    if (it == fenced_.end()) return NoSession(token);
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = "job " + job.name,
                      .what = "this run is fenced: another one took over",
                      .found = job.generation.incarnation,
                      .expected = it->second,
                      .action = "end this process"});
  }

  static ArenaHandle HandleOf(const LiveJob& job) {
    const auto& arena = job.pipeline->arena();
    return {job.pipeline, job.arena_id, arena.size(), arena.fd()};
  }

  void ReleaseSlots(Session& session, const std::vector<ArenaSlot>& slots) {
    std::vector<shm::SlotRef> ours;
    for (const ArenaSlot& s : slots) {
      if (s.arena == session.job->arena_id) ours.push_back(s.slot);
    }
    if (!ours.empty()) session.job->pipeline->Release(session.id, ours);
  }

  // Feeds are parsed once for all ranks of a run, as long as the folders of their
  // datasets hold the same versions.
  absl::StatusOr<LoadedFeed> Load(const AttachArgs& args) {
    const std::string key = args.feed_dir + "\n" + args.feed;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, job] : jobs_) {
        if (job->feed_key == key && job->feed.current()) return job->feed;
      }
    }
    PENSTOCK_ASSIGN_OR_RETURN(
        LoadedFeed feed, loader_(args.feed, args.feed_where, args.feed_dir));
    PENSTOCK_RETURN_IF_ERROR(CheckSides(*feed.plan));
    return feed;
  }

  absl::Status EnsurePool() {
    std::lock_guard lock(mutex_);
    if (pool_ && !pool_dead_->load()) return absl::OkStatus();
    pool_.reset();
    auto dead = std::make_shared<std::atomic<bool>>(false);
    PENSTOCK_ASSIGN_OR_RETURN(
        pool_,
        WorkerPool::Start(options_.workers, [dead] {
          dead->store(true);
          telemetry::Warn("the decoder zygote ended; its jobs go on with a new "
                          "one when their ranks attach again");
        }));
    pool_dead_ = std::move(dead);
    return absl::OkStatus();
  }

  std::uint32_t LiveRanks(const std::shared_ptr<LiveJob>& job) const {
    std::uint32_t n = 0;
    std::lock_guard lock(mutex_);
    for (const auto& [token, s] : sessions_) n += s->job == job;
    return n;
  }

  // Another process that acknowledges for this rank of the run; empty: none. A rank
  // that restarts may come before the end of the one before it is seen.
  std::string Predecessor(const AttachArgs& args,
                          const std::string& feed_name) const {
    if (!args.ack_leader) return "";
    const std::string& name = args.job.empty() ? feed_name : args.job;
    std::lock_guard lock(mutex_);
    for (const auto& [token, s] : sessions_) {
      if (s->job && s->job->name == name && s->ack_leader &&
          s->rank == args.data_rank && s->incarnation == args.incarnation &&
          s->peer != args.peer) {
        return s->peer;
      }
    }
    return "";
  }

  static absl::Status TwoProcesses(const AttachArgs& args,
                                   const std::string& peer) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = "attach",
         .what = absl::StrFormat("data rank %d has a process that acknowledges",
                                 args.data_rank),
         .found = peer,
         .expected = "one for each data rank of a run",
         .action = "give each process its own rank, or ack_leader = 0 to those "
                   "that share one; a new run has a new incarnation"});
  }

  // Ends a generation here: its sessions answer kNotFound, or what fenced them.
  void DropJob(const std::shared_ptr<LiveJob>& job,
               const std::string& fenced_by = "") {
    std::shared_ptr<LiveJob> dropped;
    std::lock_guard drop_lock(drop_mutex_);
    {
      std::lock_guard lock(mutex_);
      auto it = jobs_.find(job->name);
      if (it != jobs_.end() && it->second == job) {
        dropped = it->second;
        jobs_.erase(it);
      }
      for (auto s = sessions_.begin(); s != sessions_.end();) {
        if (s->second->job == job) {
          if (!fenced_by.empty()) {
            if (fenced_.size() > 4096) fenced_.clear();
            fenced_[s->first] = fenced_by;
          }
          s = sessions_.erase(s);
        } else {
          ++s;
        }
      }
    }
    if (dropped) {
      WriteAcks(*dropped);
      dropped->pipeline->Cancel();  // wakes those who wait in it
    }
  }

  absl::StatusOr<AttachResult> AttachLocked(const AttachArgs& args,
                                            const LoadedFeed& feed,
                                            BatchLayout layout) {
    job::AttachIntent intent;
    intent.job = args.job.empty() ? feed.name : args.job;
    intent.incarnation = args.incarnation;
    intent.resume = args.resume;
    intent.data_world = args.ranks.world;
    intent.ranks_per_node = args.ranks.ranks_per_node;
    intent.speeds = plan::FormatSpeeds(args.ranks.speeds);
    intent.cp = plan::FormatCpCut(args.cp);
    intent.order_digest = feed.order_digest;
    intent.content_digest = feed.content_digest;
    intent.selection_digest = feed.selection_digest;
    intent.dataset_ids = feed.dataset_ids;
    intent.takeover = args.takeover;
    std::shared_ptr<LiveJob> live;
    {
      std::lock_guard lock(mutex_);
      if (auto it = jobs_.find(intent.job); it != jobs_.end()) live = it->second;
    }
    if (live) intent.live_ranks = LiveRanks(live);

    store::StoredJob stored;
    job::AttachDecision decision;
    PENSTOCK_RETURN_IF_ERROR(Decide(intent, &stored, &decision));
    if (live && live->generation != stored.record.generation) {
      DropJob(live, stored.record.generation.incarnation);
      live = nullptr;
    }
    if (live && live->pipeline->status().code() ==
                    absl::StatusCode::kUnavailable) {
      DropJob(live);
      live = nullptr;
    }
    if (!live) {
      PENSTOCK_ASSIGN_OR_RETURN(
          live, OpenJob(intent.job, feed, args.feed_dir + "\n" + args.feed,
                        std::move(layout), stored.record));
    }
    return JoinSession(args, live, decision);
  }

  absl::Status Decide(const job::AttachIntent& intent, store::StoredJob* stored,
                      job::AttachDecision* decision) {
    for (int i = 0; i < kChangeTries; ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto now, store_.Load(intent.job));
      PENSTOCK_ASSIGN_OR_RETURN(
          *decision, job::DecideAttach(now ? &now->record : nullptr, intent));
      if (!decision->event) {
        *stored = *now;
        return absl::OkStatus();
      }
      auto changed = store_.Change(intent.job, now ? now->revision : 0,
                                   *decision->event);
      if (changed.ok()) {
        *stored = *std::move(changed);
        return absl::OkStatus();
      }
      if (changed.status().code() != absl::StatusCode::kAborted) {
        return changed.status();
      }
    }
    return absl::UnavailableError("job store: too much change at once");
  }

  // Ends jobs that nobody is attached to until so many bytes are free for a new
  // arena: their ranks find their place in the store and the same bytes anew.
  void MakeRoom(std::uint64_t bytes) {
    for (;;) {
      std::shared_ptr<LiveJob> idle;
      {
        std::lock_guard lock(mutex_);
        std::uint64_t used = 0;
        for (const auto& [name, job] : jobs_) {
          used += job->pipeline->arena().size();
          const bool attached = std::any_of(
              sessions_.begin(), sessions_.end(),
              [&job = job](const auto& s) { return s.second->job == job; });
          if (!attached && (!idle || job->arena_id < idle->arena_id)) idle = job;
        }
        if (!idle || used + bytes <= options_.arena_bytes) return;
      }
      DropJob(idle);
    }
  }

  absl::StatusOr<std::shared_ptr<LiveJob>> OpenJob(
      const std::string& name, const LoadedFeed& feed, std::string feed_key,
      BatchLayout layout, const job::JobRecord& record) {
    PENSTOCK_RETURN_IF_ERROR(EnsurePool());
    JobPipelineOptions o;
    o.ranks.world = record.generation.data_world;
    o.ranks.ranks_per_node = record.generation.ranks_per_node;
    PENSTOCK_ASSIGN_OR_RETURN(
        o.ranks.speeds,
        plan::ParseSpeeds(record.generation.speeds, o.ranks.world));
    o.prefetch_steps = options_.prefetch_steps;
    MakeRoom(layout.bytes * o.ranks.world * (o.prefetch_steps + 2ull));
    const std::uint64_t used = arena_bytes();
    o.arena_bytes_max =
        options_.arena_bytes > used ? options_.arena_bytes - used : 0;
    o.input_bytes = options_.input_bytes;
    auto live = std::make_shared<LiveJob>();
    live->name = name;
    live->feed = feed;
    live->feed_key = std::move(feed_key);
    live->generation = record.generation;
    PENSTOCK_ASSIGN_OR_RETURN(
        live->pipeline, JobPipeline::Create(feed.plan, std::move(layout), o,
                                            engine_, pool_, shards_));
    PENSTOCK_ASSIGN_OR_RETURN(
        const auto acks, store_.LoadAcks(name, record.generation.number));
    for (const auto& a : acks) {
      if (a.data_rank < o.ranks.world) {
        live->pipeline->Ack(a.data_rank, a.next_step);
      }
    }
    std::lock_guard lock(mutex_);
    live->arena_id = next_arena_++;
    jobs_[name] = live;
    return live;
  }

  absl::StatusOr<AttachResult> JoinSession(const AttachArgs& args,
                                           const std::shared_ptr<LiveJob>& live,
                                           const job::AttachDecision& decision) {
    PENSTOCK_ASSIGN_OR_RETURN(
        auto shapes,
        ShapesFor(*live->feed.plan, live->pipeline->layout(), args.place));
    const std::string token =
        args.session.empty() ? OpenSession(/*remote=*/true) : args.session;
    const std::uint64_t acked = live->pipeline->AckedNext()[args.data_rank];
    const std::uint64_t position = args.position.value_or(
        std::max(live->generation.start_step, acked));
    shm::HolderId id = 0;
    {
      std::lock_guard lock(mutex_);
      auto it = sessions_.find(token);
      if (it == sessions_.end()) return NoSession(token);
      Session& s = *it->second;
      if (s.job) {
        return absl::FailedPreconditionError(
            "this session is attached already; open another one");
      }
      s.job = live;
      s.rank = args.data_rank;
      s.cp_rank = args.place.cp_rank;
      s.ack_leader = args.ack_leader;
      s.explicit_ack = args.explicit_ack;
      s.peer = args.peer;
      s.incarnation = args.incarnation;
      s.position = position;
      id = s.id;
    }
    live->pipeline->Join(id, args.data_rank, position);
    AttachResult r;
    r.session = token;
    r.job = live->name;
    r.generation = live->generation.number;
    r.start_step = position;
    r.total_steps = live->feed.plan->total_steps();
    r.arena_id = live->arena_id;
    r.arena_bytes = live->pipeline->arena().size();
    r.global_batch = live->feed.plan->global_batch();
    r.microbatches = live->pipeline->layout().microbatches;
    r.batch_bytes = live->pipeline->layout().bytes;
    r.unit_stride = live->pipeline->layout().unit_stride;
    r.units = live->pipeline->layout().items;
    r.shapes = std::move(shapes);
    r.order_digest = live->feed.order_digest;
    r.content_digest = live->feed.content_digest;
    r.selection_digest = live->feed.selection_digest;
    r.dataset_ids = live->feed.dataset_ids;
    r.notes = live->feed.notes;
    r.notes.insert(r.notes.end(), decision.notes.begin(), decision.notes.end());
    r.cursor_head = CursorHead(*live);
    if (on_arena_ && !args.session.empty()) on_arena_(token, HandleOf(*live));
    return r;
  }

  // Counts the tokens of a context-parallel rank's slice alone.
  static void TakeSlice(const Session& session, PublishedBatch& batch) {
    const auto slices = static_cast<std::uint32_t>(batch.slice_tokens.size());
    if (slices <= 1) return;
    batch.tokens = batch.slice_tokens[session.cp_rank];
    batch.loss_scale =
        plan::LossScale(batch.tokens, batch.global_tokens,
                        session.job->generation.data_world * slices);
  }

  static std::string CursorHead(const LiveJob& live) {
    job::Cursor c;
    c.job = live.name;
    c.feed = live.feed.order_digest.substr(0, 32);
    c.datasets =
        job::DatasetsDigest(live.feed.dataset_ids, live.feed.selection_digest)
            .substr(0, 32);
    const std::string text = job::EncodeCursor(c);
    return text.substr(0, text.find("\"next_step\":") + 12);
  }

  // Acknowledgements are soft state: written together, at most twice a second.
  void FlushLoop() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      stop_.wait_for(lock, kAckFlush, [&] { return stopping_; });
      lock.unlock();
      FlushAcks();
      lock.lock();
    }
  }

  void FlushAcks() {
    std::vector<std::shared_ptr<LiveJob>> jobs;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [name, job] : jobs_) jobs.push_back(job);
    }
    for (const auto& job : jobs) WriteAcks(*job);
  }

  void WriteAcks(LiveJob& job) {
    std::lock_guard lock(acks_mutex_);
    const auto acked = job.pipeline->AckedNext();
    std::vector<store::AckPosition> changed;
    job.acks_written.resize(acked.size(), 0);
    for (std::uint32_t r = 0; r < acked.size(); ++r) {
      if (acked[r] > job.acks_written[r]) changed.push_back({r, acked[r]});
    }
    if (changed.empty()) return;
    // A store that is away never stops delivery: tried again next time.
    if (store_.PutAcks(job.name, job.generation.number, changed).ok()) {
      job.acks_written = acked;
    }
  }

  const JobManagerOptions options_;
  const FeedLoader loader_;
  store::JobStore& store_;
  io::ReadEngine& engine_;
  ShardCache shards_;

  std::mutex attach_mutex_;  // before mutex_
  std::mutex drop_mutex_;    // before mutex_
  std::mutex acks_mutex_;
  mutable std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false, draining_ = false;
  std::uint64_t next_holder_ = 2;  // 1 is the daemon's own
  // Random start: a slot of a daemon before this one never names one of ours.
  std::uint64_t next_arena_ = RandomStart();
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::map<std::string, std::string> fenced_;  // session -> by whom
  std::shared_ptr<std::atomic<bool>> pool_dead_;
  std::shared_ptr<WorkerPool> pool_;  // of new pipelines
  std::map<std::string, std::shared_ptr<LiveJob>> jobs_;
  std::function<void(const std::string&, const ArenaHandle&)> on_arena_;
  std::thread flusher_;
};

JobManager::JobManager(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JobManager::~JobManager() = default;

absl::StatusOr<std::unique_ptr<JobManager>> JobManager::Create(
    JobManagerOptions options, FeedLoader loader, store::JobStore& store,
    io::ReadEngine& engine) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(loader),
                                     store, engine);
  PENSTOCK_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<JobManager>(new JobManager(std::move(impl)));
}

std::string JobManager::OpenSession(bool remote) {
  return impl_->OpenSession(remote);
}
void JobManager::CloseSession(const std::string& session) {
  impl_->CloseSession(session);
}
absl::StatusOr<AttachResult> JobManager::Attach(const AttachArgs& args) {
  return impl_->Attach(args);
}
absl::StatusOr<std::optional<PublishedBatch>> JobManager::Next(
    const std::string& session, std::uint64_t step, std::uint64_t timeout_ms,
    const std::vector<ArenaSlot>& release,
    std::optional<std::uint64_t> acked_next) {
  return impl_->Next(session, step, timeout_ms, release, acked_next);
}
std::optional<PublishedBatch> JobManager::TakeReady(const std::string& session,
                                                    std::uint64_t step) {
  return impl_->TakeReady(session, step);
}
absl::Status JobManager::Release(const std::string& session,
                                 const std::vector<ArenaSlot>& slots) {
  return impl_->Release(session, slots);
}
absl::Status JobManager::Ack(const std::string& session, std::uint64_t step) {
  return impl_->Ack(session, step);
}
absl::Status JobManager::Checkpoint(const std::string& session,
                                    const std::string& name,
                                    std::uint64_t next_step) {
  return impl_->Checkpoint(session, name, next_step);
}
absl::StatusOr<JobManager::SlotBytes> JobManager::Bytes(
    const std::string& session, ArenaSlot slot) {
  return impl_->Bytes(session, slot);
}
absl::StatusOr<JobManager::ArenaHandle> JobManager::ArenaOf(
    const std::string& session) {
  return impl_->ArenaOf(session);
}
void JobManager::OnArena(
    std::function<void(const std::string&, const ArenaHandle&)> callback) {
  impl_->OnArena(std::move(callback));
}
void JobManager::Drain() { impl_->Drain(); }
bool JobManager::draining() const { return impl_->draining(); }
std::vector<JobView> JobManager::Jobs() const { return impl_->Jobs(); }
WorkerPoolStats JobManager::worker_stats() const {
  return impl_->worker_stats();
}
std::uint64_t JobManager::arena_bytes() const { return impl_->arena_bytes(); }

}  // namespace penstock::pipeline
