#include "server/pipeline/job_pipeline.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/hash/hash.h"
#include "common/layout/item_digest.h"
#include "common/status/status.h"
#include "server/dataset/shard_reader.h"
#include "server/pipeline/input_area.h"
#include "server/pipeline/rank_window.h"
#include "server/pipeline/unit_tensors.h"

namespace penstock::pipeline {
namespace {

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::uint64_t PageDown(std::uint64_t v) {
  return v / io::kReadAlignment * io::kReadAlignment;
}
std::uint64_t PageUp(std::uint64_t v) { return PageDown(v + io::kReadAlignment - 1); }

}  // namespace

class JobPipeline::Impl {
 public:
  Impl(std::shared_ptr<const FeedPlan> plan, BatchLayout layout,
       const JobPipelineOptions& options, io::ReadEngine& engine,
       std::shared_ptr<WorkerPool> pool, ShardCache& shards,
       shm::SlotTable slots, std::uint32_t window)
      : plan_(std::move(plan)),
        layout_(std::move(layout)),
        options_(options),
        engine_(engine),
        pool_(std::move(pool)),
        shards_(shards),
        sides_(*plan_),
        window_(std::move(slots), options.ranks.world, window),
        area_(options.input_bytes) {}

  absl::Status Start(std::uint64_t arena_bytes) {
    PENSTOCK_ASSIGN_OR_RETURN(arena_, shm::Arena::Create(arena_bytes));
    PENSTOCK_ASSIGN_OR_RETURN(input_, shm::Arena::Create(options_.input_bytes));
    PENSTOCK_ASSIGN_OR_RETURN(arena_id_, pool_->AddArena(*arena_, *input_));
    PENSTOCK_RETURN_IF_ERROR(arena_->Seal());
    arena_->PopulateInBackground();
    input_->PopulateInBackground();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  void Cancel() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    Post([] {});
  }

  ~Impl() {
    Cancel();
    // Nothing of the workers or the kernel points into our memory afterwards.
    if (arena_id_ != 0) pool_->DropArena(arena_id_).IgnoreError();
    {
      std::unique_lock lock(events_mutex_);
      events_changed_.wait(lock, [&] { return outstanding_ == 0; });
    }
    if (thread_.joinable()) thread_.join();
  }

  // ---- called from sessions -------------------------------------------------

  void Join(shm::HolderId session, std::uint32_t rank, std::uint64_t position) {
    {
      std::lock_guard lock(mutex_);
      window_.Join(session, rank, position);
      if (!started_ && window_.Unknown().empty()) {
        started_ = true;
        next_step_ = window_.LowestWanted();
      } else if (started_) {
        Rewind(rank, position);
      }
    }
    Post([] {});
  }

  void Leave(shm::HolderId session) {
    {
      std::lock_guard lock(mutex_);
      window_.Leave(session);
    }
    Post([] {});
  }

  absl::StatusOr<std::optional<PublishedBatch>> Next(shm::HolderId session,
                                                     std::uint32_t rank,
                                                     std::uint64_t step,
                                                     std::uint64_t timeout_ms) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(timeout_ms);
    std::unique_lock lock(mutex_);
    window_.Want(rank, step);
    Rewind(rank, step);
    Post([] {});
    for (;;) {
      if (stopping_) return absl::CancelledError("the job's pipeline stopped");
      if (auto batch = TakeLocked(session, rank, step)) return batch;
      const std::uint64_t total = plan_->total_steps();
      if (total != 0 && step >= total) {
        return std::optional<PublishedBatch>();
      }
      PENSTOCK_RETURN_IF_ERROR(failed_);
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
        return absl::DeadlineExceededError(absl::StrFormat(
            "step %d of data rank %d is not ready; waiting for %s", step, rank,
            waiting_for_.empty() ? Stage(step) : waiting_for_));
      }
    }
  }

  std::optional<PublishedBatch> TakeReady(shm::HolderId session,
                                          std::uint32_t rank,
                                          std::uint64_t step) {
    std::lock_guard lock(mutex_);
    if (stopping_) return std::nullopt;
    auto batch = TakeLocked(session, rank, step);
    if (batch) window_.Want(rank, step + 1);
    return batch;
  }

  void Release(shm::HolderId session, const std::vector<shm::SlotRef>& slots) {
    {
      std::lock_guard lock(mutex_);
      for (const auto& slot : slots) window_.Release(session, slot);
    }
    Post([] {});
  }

  bool Holds(shm::HolderId session, shm::SlotRef slot) const {
    std::lock_guard lock(mutex_);
    return window_.slots().Holds(slot, session);
  }

  void Ack(std::uint32_t rank, std::uint64_t next_step) {
    {
      std::lock_guard lock(mutex_);
      window_.Ack(rank, next_step);
    }
    Post([] {});
  }

  absl::Status status() const {
    std::lock_guard lock(mutex_);
    return failed_;
  }

  JobPipelineView View() const {
    std::lock_guard lock(mutex_);
    JobPipelineView v;
    v.next_step = next_step_;
    v.published_next = published_next_;
    v.free_slots = window_.slots().free_count();
    v.arena_bytes = arena_->size();
    v.waiting_for = waiting_for_;
    for (std::uint32_t r = 0; r < window_.ranks().size(); ++r) {
      const auto& rank = window_.ranks()[r];
      v.ranks.push_back({r, rank.position, rank.acked_next,
                         static_cast<std::uint32_t>(rank.sessions.size()),
                         window_.HeldBy(r), rank.known});
    }
    return v;
  }

  std::vector<std::uint64_t> AckedNext() const {
    std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> out;
    for (const auto& rank : window_.ranks()) out.push_back(rank.acked_next);
    return out;
  }

  const BatchLayout& layout() const { return layout_; }
  const shm::Arena& arena() const { return *arena_; }
  std::uint32_t window() const { return window_.window(); }

 private:
  // Under mutex_.
  std::optional<PublishedBatch> TakeLocked(shm::HolderId session,
                                           std::uint32_t rank,
                                           std::uint64_t step) {
    const auto slot = window_.Take(session, rank, step);
    if (!slot) return std::nullopt;
    auto it = batches_.find({slot->offset, slot->generation});
    if (it == batches_.end()) return std::nullopt;
    return it->second;
  }

  // A rank wants a step that was passed already: go back to it. Ranks that have
  // the steps in between are skipped there.
  void Rewind(std::uint32_t rank, std::uint64_t step) {
    if (started_ && step < next_step_ && !window_.Coming(rank, step)) {
      next_step_ = step;
    }
  }

  std::string Stage(std::uint64_t step) const {
    return step < next_step_ ? "its reads and decoding on this node"
                             : "the steps before it";
  }

  void Post(std::function<void()> event) {
    {
      std::lock_guard lock(events_mutex_);
      events_.push_back(std::move(event));
    }
    events_changed_.notify_all();
  }

  // Completions of reads and jobs: counted, so that the destructor can wait.
  void Begin() {
    std::lock_guard lock(events_mutex_);
    ++outstanding_;
  }
  void End(std::function<void()> event) {
    {
      std::lock_guard lock(events_mutex_);
      --outstanding_;
      events_.push_back(std::move(event));
    }
    events_changed_.notify_all();
  }

  void Run() {
    for (;;) {
      std::deque<std::function<void()>> events;
      {
        std::unique_lock lock(events_mutex_);
        events_changed_.wait(lock, [&] { return !events_.empty(); });
        events.swap(events_);
      }
      for (auto& event : events) event();
      {
        std::lock_guard lock(mutex_);
        if (stopping_) return;
        if (!failed_.ok()) continue;
      }
      StartSteps();
      PumpUnits();
      PumpJobs();
      PublishReady();
    }
  }

  void Fail(absl::Status status) {
    {
      std::lock_guard lock(mutex_);
      if (failed_.ok()) failed_ = std::move(status);
    }
    changed_.notify_all();
  }

  // ---- plan -----------------------------------------------------------------

  void StartSteps() {
    while (making_.size() < options_.prefetch_steps) {
      auto work = std::make_shared<StepWork>();
      const auto reached = Reach();
      if (!reached.ok()) return Fail(reached.status());
      {
        std::lock_guard lock(mutex_);
        waiting_for_.clear();
        if (!started_) {
          waiting_for_ = "data ranks to attach: " +
                         absl::StrJoin(window_.Unknown(), ", ");
          return;
        }
        const std::uint64_t total = plan_->total_steps();
        std::vector<std::uint32_t> ranks;
        while (ranks.empty()) {
          next_step_ = std::max(next_step_, window_.LowestWanted());
          if (total != 0 && next_step_ >= total) {
            changed_.notify_all();  // it may be known only now
            return;
          }
          if (next_step_ > *reached) break;
          ranks = window_.RanksFor(next_step_);
          if (ranks.empty()) ++next_step_;
        }
        if (ranks.empty()) continue;  // further on than was reached
        if (std::string who = window_.Blocked(ranks); !who.empty()) {
          waiting_for_ = who;
          return;
        }
        work->step = next_step_++;
        work->ranks = ranks;
        for (std::uint32_t r : ranks) {
          auto slot = window_.Lease(r, work->step);
          if (!slot.ok()) {  // the window's sum is the table's size
            failed_ = slot.status();
            return;
          }
          work->slots[r] = *slot;
        }
      }
      if (absl::Status s = Plan(*work); !s.ok()) {
        Fail(Annotate(s, absl::StrFormat("step %d", work->step)));
        return;
      }
      making_.push_back(work);
      for (auto& unit : work->units) waiting_units_.push_back({work, unit.get()});
      SubmitSides(work);
    }
  }

  // Makes known whether the step that comes next is before the end of the data;
  // returns that step.
  absl::StatusOr<std::uint64_t> Reach() {
    std::uint64_t step = 0;
    {
      std::lock_guard lock(mutex_);
      if (!started_) return step;
      step = std::max(next_step_, window_.LowestWanted());
    }
    PENSTOCK_RETURN_IF_ERROR(plan_->Reach(step));
    return step;
  }

  absl::Status Plan(StepWork& work) {
    work.started_ns = NowNs();
    PENSTOCK_ASSIGN_OR_RETURN(PlannedStep planned,
                              plan_->Step(work.step, options_.ranks));
    work.whole = work.ranks.size() == options_.ranks.world;
    TakeItems(planned, work);
    PENSTOCK_RETURN_IF_ERROR(
        BuildStep(*plan_, layout_, shards_, sides_, work));
    work.times.plan_ns = static_cast<std::uint64_t>(NowNs() - work.started_ns);
    return absl::OkStatus();
  }

  // ---- fetch ----------------------------------------------------------------

  struct QueuedUnit {
    std::shared_ptr<StepWork> work;
    GopUnit* unit;
  };

  // Gives units their place in the input area and starts their reads, in step
  // order: the first that does not fit waits for room.
  void PumpUnits() {
    while (!waiting_units_.empty()) {
      const QueuedUnit q = waiting_units_.front();
      GopUnit& u = *q.unit;
      const auto& index =
          plan_->sources()[u.source].dataset->index();
      std::uint64_t bytes = 0;
      for (std::uint32_t gop : u.gops) {
        const auto& g = index.gops[gop];
        bytes += PageUp(g.offset + g.bytes) - PageDown(g.offset);
      }
      const auto place = area_.Allocate(bytes);
      if (!place) {
        if (bytes > area_.bytes()) {
          Fail(MakeError(
              absl::StatusCode::kResourceExhausted,
              {.where = u.shard->file->path(),
               .what = "a GOP with what it needs is larger than the input area",
               .found = absl::StrFormat("%d bytes", bytes),
               .expected = absl::StrFormat("at most input_bytes %d",
                                           area_.bytes()),
               .action = "raise input_bytes of the daemon"}));
        }
        return;
      }
      waiting_units_.pop_front();
      u.area_offset = *place;
      u.area_bytes = bytes;
      ReadUnit(q);
    }
  }

  // Reads the GOPs of a unit into its place, one read each.
  void ReadUnit(const QueuedUnit& q) {
    GopUnit& u = *q.unit;
    const auto& index = plan_->sources()[u.source].dataset->index();
    u.reads_left = static_cast<std::uint32_t>(u.gops.size());
    u.read_offset.clear();
    std::uint64_t at = u.area_offset;
    for (std::size_t i = 0; i < u.gops.size(); ++i) {
      const auto& g = index.gops[u.gops[i]];
      const std::uint64_t begin = PageDown(g.offset);
      const std::uint64_t size = PageUp(g.offset + g.bytes) - begin;
      u.read_offset.push_back(at);
      SubmitRead(u.shards[i]->file, begin, input_->bytes().subspan(at, size),
                 g.offset + g.bytes - begin,
                 [this, q](absl::Status s) { OnUnitRead(q, std::move(s)); });
      at += size;
    }
  }

  void SubmitSides(const std::shared_ptr<StepWork>& work) {
    for (auto& [key, side] : work->sides) ReadSide(work, side);
  }

  void ReadSide(const std::shared_ptr<StepWork>& work, SideRead& side) {
    const auto& seg = plan_->sources()[side.source]
                          .dataset->index()
                          .segments[side.segment];
    SideRead* read = &side;
    SubmitRead(side.shard->file, PageDown(seg.offset),
               {side.memory.get(), side.bytes},
               seg.offset + seg.bytes - PageDown(seg.offset),
               [this, work, read](absl::Status s) {
                 OnSideRead(work, *read, std::move(s));
               });
  }

  void SubmitRead(const std::shared_ptr<io::ReadFile>& file,
                  std::uint64_t offset, std::span<std::uint8_t> into,
                  std::uint64_t need, std::function<void(absl::Status)> then) {
    Begin();
    io::ReadRequest request;
    request.file = file;
    request.offset = offset;
    request.into = into;
    request.need = need;
    request.done = [this, then](absl::Status s) {
      End([then, s = std::move(s)] { then(s); });
    };
    if (absl::Status s = engine_.Submit(std::move(request)); !s.ok()) {
      End([then, s] { then(s); });
    }
  }

  void OnSideRead(const std::shared_ptr<StepWork>& work, SideRead& side,
                  absl::Status status) {
    if (!status.ok()) return Fail(std::move(status));
    const SourceRef& source = plan_->sources()[side.source];
    const auto& index = source.dataset->index();
    const auto& seg = index.segments[side.segment];
    auto block = format::ParseBlock(
        {side.memory.get() + (seg.offset - PageDown(seg.offset)), seg.bytes});
    if (!block.ok() && !side.read_again) {
      side.read_again = true;  // as for GOPs
      return ReadSide(work, side);
    }
    if (!block.ok()) {
      const auto& track = index.tracks[seg.track];
      return Fail(Annotate(
          block.status(),
          absl::StrFormat(
              "step %d, source \"%s\", capture %s, block of track %d at byte %d "
              "of %s (`penstock verify` finds what is damaged)",
              work->step, source.name,
              hash::Hex(index.captures[track.capture].id).substr(0, 16),
              track.ordinal, seg.offset, side.shard->file->path())));
    }
    side.block = *block;
    --work->sides_left;
    NoteFetched(*work);
  }

  static void NoteFetched(StepWork& work) {
    work.times.fetch_ns = static_cast<std::uint64_t>(NowNs() - work.started_ns) -
                          work.times.plan_ns;
  }

  void OnUnitRead(const QueuedUnit& q, absl::Status status) {
    if (!status.ok()) return Fail(std::move(status));
    if (--q.unit->reads_left > 0) return;
    NoteFetched(*q.work);
    absl::Status s = PrepareJobs(q);
    if (s.code() == absl::StatusCode::kDataLoss && !q.unit->read_again) {
      // Damaged is what is damaged in a second read of the origin as well.
      q.unit->read_again = true;
      return ReadUnit(q);
    }
    if (!s.ok()) Fail(Annotate(s, Where(q)));
  }

  // Names a unit for a person.
  std::string Where(const QueuedUnit& q) const {
    const GopUnit& u = *q.unit;
    const SourceRef& source = plan_->sources()[u.source];
    const auto& index = source.dataset->index();
    return absl::StrFormat(
        "step %d, source \"%s\", capture %s, GOP at byte %d of %s "
        "(`penstock verify` finds what is damaged)",
        q.work->step, source.name,
        hash::Hex(index.captures[u.capture].id).substr(0, 16),
        index.gops[u.gops.back()].offset, u.shard->file->path());
  }

  // ---- decode ---------------------------------------------------------------

  struct QueuedJob {
    QueuedUnit unit;
    shm::DecodeJob job;
    std::size_t first_target = 0;
  };

  // Parses the blocks of a unit, notes frame times, cuts it into decode jobs.
  absl::Status PrepareJobs(const QueuedUnit& q) {
    GopUnit& u = *q.unit;
    const auto& index = plan_->sources()[u.source].dataset->index();
    std::vector<shm::BlockRange> ranges;
    for (std::size_t i = 0; i < u.gops.size(); ++i) {
      const auto& g = index.gops[u.gops[i]];
      const std::uint64_t at =
          u.read_offset[i] + (g.offset - PageDown(g.offset));
      PENSTOCK_ASSIGN_OR_RETURN(
          const auto blocks,
          dataset::ParseBlocks(input_->bytes().subspan(at, g.bytes), g.offset,
                               u.shards[i]->file->path()));
      std::uint64_t block_at = at;
      for (const auto& b : blocks) {
        ranges.push_back({block_at, b.bytes});
        block_at += b.bytes;
      }
      TakeFrameTimes(*plan_, u, blocks, *q.work);
    }
    u.jobs_left = 0;
    for (std::size_t first = 0; first < u.targets.size();
         first += shm::kJobTargetsMax) {
      const std::size_t last =
          std::min(first + shm::kJobTargetsMax, u.targets.size());
      QueuedJob job{q, {}, first};
      job.job.codec = u.shard->codecs[u.codec];
      job.job.blocks = ranges;
      job.job.transforms = u.transforms;
      job.job.targets.assign(u.targets.begin() + first,
                             u.targets.begin() + last);
      ready_jobs_.push_back(std::move(job));
      ++u.jobs_left;
    }
    if (u.jobs_left == 0) FinishUnit(q);  // only its times were wanted
    return absl::OkStatus();
  }

  void PumpJobs() {
    while (!ready_jobs_.empty()) {
      QueuedJob& job = ready_jobs_.front();
      const QueuedUnit unit = job.unit;
      const std::size_t first = job.first_target;
      Begin();
      absl::Status s = pool_->Submit(
          arena_id_, job.job, [this, unit, first](JobResult result) {
            End([this, unit, first, result = std::move(result)] {
              OnJob(unit, first, result);
            });
          });
      if (!s.ok()) {
        End([] {});
        if (s.code() == absl::StatusCode::kResourceExhausted) return;  // later
        return Fail(std::move(s));
      }
      ready_jobs_.pop_front();
    }
  }

  void OnJob(const QueuedUnit& q, std::size_t first, const JobResult& result) {
    GopUnit& u = *q.unit;
    if (!result.status.ok()) return Fail(Annotate(result.status, Where(q)));
    for (std::size_t i = 0; i < result.digests.size(); ++i) {
      const FramePlace& p = u.places[first + i];
      q.work->items[p.item].chunks[p.tensor][p.frame] = result.digests[i];
    }
    q.work->times.decode_ns += result.cpu_ns;
    if (--u.jobs_left == 0) FinishUnit(q);
  }

  void FinishUnit(const QueuedUnit& q) {
    area_.Free(q.unit->area_offset, q.unit->area_bytes);
    --q.work->units_left;
  }

  // ---- assemble and publish -------------------------------------------------

  void PublishReady() {
    while (!making_.empty() && making_.front()->Done()) {
      const auto work = making_.front();
      making_.pop_front();
      const std::int64_t begin = NowNs();
      ClearPadding(*plan_, layout_, arena_->bytes(), *work);
      FillPlanTensors(*plan_, layout_, arena_->bytes(), *work);
      if (absl::Status s = FillSides(*plan_, layout_, sides_, arena_->bytes(),
                                     *work);
          !s.ok()) {
        return Fail(std::move(s));
      }
      Publish(*work, begin);
    }
  }

  void Publish(StepWork& work, std::int64_t begin_ns) {
    std::map<std::uint32_t, PublishedBatch> batches;
    for (const std::uint32_t rank : work.ranks) batches[rank];  // may be empty
    std::vector<Digest128> all;
    for (const StepItem& item : work.items) {
      std::vector<Digest128> chunks;
      for (const auto& tensor : item.chunks) {
        chunks.insert(chunks.end(), tensor.begin(), tensor.end());
      }
      const Digest128 digest = layout::DigestOfDigests(chunks);
      auto& batch = batches[item.rank];
      batch.sample_ids.push_back(item.sample.id);
      batch.item_digests.push_back(digest);
      all.push_back(digest);
    }
    work.times.assemble_ns = static_cast<std::uint64_t>(NowNs() - begin_ns);
    work.times.total_ns = static_cast<std::uint64_t>(NowNs() - work.started_ns);
    {
      std::lock_guard lock(mutex_);
      for (auto& [rank, batch] : batches) {
        batch.step = work.step;
        batch.units = work.rank_units;
        batch.global_samples = work.global_samples;
        batch.global_tokens = work.global_tokens;
        RankWork& of_rank = work.of_ranks[rank];
        batch.loss_scale = of_rank.loss_scale;
        batch.tokens = of_rank.tokens;
        batch.slice_tokens = std::move(of_rank.slice_tokens);
        batch.unit_shapes = std::move(of_rank.shapes);
        batch.unit_samples = std::move(of_rank.samples);
        batch.slot = work.slots[rank];
        batch.batch_digest = layout::DigestOfDigests(batch.item_digests);
        if (work.whole) batch.global_digest = layout::DigestOfDigests(all);
        batch.times = work.times;
        // The slot's earlier lease is over: its batch is forgotten with it.
        batches_.erase(batches_.lower_bound({batch.slot.offset, 0}),
                       batches_.lower_bound(
                           {batch.slot.offset, batch.slot.generation}));
        batches_[{batch.slot.offset, batch.slot.generation}] = batch;
        window_.Publish(rank, work.step, batch.slot);
      }
      published_next_ = work.step + 1;
    }
    changed_.notify_all();
    Post([] {});  // a place in the making is free
  }

  const std::shared_ptr<const FeedPlan> plan_;
  const BatchLayout layout_;
  const JobPipelineOptions options_;
  io::ReadEngine& engine_;
  const std::shared_ptr<WorkerPool> pool_;
  ShardCache& shards_;
  SideTracks sides_;
  std::unique_ptr<shm::Arena> arena_, input_;
  ArenaId arena_id_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RankWindow window_;              // under mutex_
  std::uint64_t next_step_ = 0;       // under mutex_
  std::uint64_t published_next_ = 0;  // under mutex_
  bool started_ = false;           // under mutex_
  bool stopping_ = false;          // under mutex_
  absl::Status failed_;            // under mutex_
  std::string waiting_for_;        // under mutex_
  std::map<std::pair<std::uint64_t, std::uint64_t>, PublishedBatch>
      batches_;  // by slot; under mutex_

  std::mutex events_mutex_;
  std::condition_variable events_changed_;
  std::deque<std::function<void()>> events_;  // under events_mutex_
  std::uint64_t outstanding_ = 0;             // under events_mutex_

  // Of the thread.
  InputArea area_;
  std::deque<std::shared_ptr<StepWork>> making_;
  std::deque<QueuedUnit> waiting_units_;
  std::deque<QueuedJob> ready_jobs_;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<JobPipeline>> JobPipeline::Create(
    std::shared_ptr<const FeedPlan> plan, BatchLayout layout,
    const JobPipelineOptions& options, io::ReadEngine& engine,
    std::shared_ptr<WorkerPool> pool,
    ShardCache& shards) {
  const std::uint64_t slot = PageUp(layout.bytes);
  const std::uint64_t step = slot * options.ranks.world;
  const std::uint64_t fits = step == 0 ? 0 : options.arena_bytes_max / step;
  constexpr std::uint64_t kStepsMin = 2;  // one in hand, one in the making
  if (fits < kStepsMin) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = "arena",
         .what = "two steps of this feed do not fit",
         .found = absl::StrFormat("%d bytes free for arenas",
                                  options.arena_bytes_max),
         .expected =
             absl::StrFormat("at least %d: 2 steps x %d data ranks x %d "
                             "bytes",
                             kStepsMin * step, options.ranks.world, slot),
         .action = "raise arena_bytes of the daemon, or make global_batch, "
                   "frames or the output sizes smaller"});
  }
  const auto window = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(fits, options.prefetch_steps + 2ull));
  PENSTOCK_ASSIGN_OR_RETURN(
      auto slots, shm::SlotTable::Create(step * window, layout.bytes));
  auto impl = std::make_unique<Impl>(std::move(plan), std::move(layout), options,
                                     engine, std::move(pool), shards, std::move(slots),
                                     window);
  PENSTOCK_RETURN_IF_ERROR(impl->Start(step * window));
  return std::unique_ptr<JobPipeline>(new JobPipeline(std::move(impl)));
}

JobPipeline::JobPipeline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JobPipeline::~JobPipeline() = default;
const BatchLayout& JobPipeline::layout() const { return impl_->layout(); }
const shm::Arena& JobPipeline::arena() const { return impl_->arena(); }
std::uint32_t JobPipeline::window() const { return impl_->window(); }
void JobPipeline::Join(shm::HolderId session, std::uint32_t rank,
                       std::uint64_t position) {
  impl_->Join(session, rank, position);
}
void JobPipeline::Leave(shm::HolderId session) { impl_->Leave(session); }
absl::StatusOr<std::optional<PublishedBatch>> JobPipeline::Next(
    shm::HolderId session, std::uint32_t rank, std::uint64_t step,
    std::uint64_t timeout_ms) {
  return impl_->Next(session, rank, step, timeout_ms);
}
std::optional<PublishedBatch> JobPipeline::TakeReady(shm::HolderId session,
                                                     std::uint32_t rank,
                                                     std::uint64_t step) {
  return impl_->TakeReady(session, rank, step);
}
void JobPipeline::Release(shm::HolderId session,
                          const std::vector<shm::SlotRef>& slots) {
  impl_->Release(session, slots);
}
bool JobPipeline::Holds(shm::HolderId session, shm::SlotRef slot) const {
  return impl_->Holds(session, slot);
}
void JobPipeline::Ack(std::uint32_t rank, std::uint64_t next_step) {
  impl_->Ack(rank, next_step);
}
void JobPipeline::Cancel() { impl_->Cancel(); }
absl::Status JobPipeline::status() const { return impl_->status(); }
JobPipelineView JobPipeline::View() const { return impl_->View(); }
std::vector<std::uint64_t> JobPipeline::AckedNext() const {
  return impl_->AckedNext();
}

}  // namespace penstock::pipeline
