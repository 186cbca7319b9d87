// The exported C functions: argument checks, nothing else.
#include <penstock/client.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "client/capi/feed.h"

using penstock::capi::Fail;
using penstock::capi::Feed;
using penstock::capi::Report;
using penstock::capi::Result;

namespace penstock::capi {

ps_code FromGrpc(int code) {
  switch (code) {
    case 0: return PS_OK;
    case 1: return PS_ABORTED;
    case 3: return PS_INVALID;          // INVALID_ARGUMENT
    case 4: return PS_TIMEOUT;          // DEADLINE_EXCEEDED
    case 5:                             // NOT_FOUND
    case 6:                             // ALREADY_EXISTS
    case 7:                             // PERMISSION_DENIED
    case 9:                             // FAILED_PRECONDITION
    case 11: return PS_REFUSED;         // OUT_OF_RANGE
    case 8: return PS_REFUSED;          // RESOURCE_EXHAUSTED
    case 12: return PS_INVALID;         // UNIMPLEMENTED: a named refusal
    case 14: return PS_UNAVAILABLE;     // UNAVAILABLE
    case 15: return PS_DATA_LOSS;       // DATA_LOSS
    default: return PS_FAILED;
  }
}

ps_code Report(const Result& result, ps_error* error) {
  if (error != nullptr) {
    error->code = result.code;
    std::snprintf(error->message, sizeof(error->message), "%s",
                  result.message.c_str());
  }
  return result.code;
}

}  // namespace penstock::capi

namespace {

// A feed of this process, or why not.
Result Usable(const ps_feed* feed) {
  if (feed == nullptr) return Fail(PS_INVALID, "no feed");
  if (feed->feed->forked()) {
    return Fail(PS_FORKED,
                "this feed was attached by the parent process\n  do        "
                "attach in each process, after fork; or start workers with "
                "spawn");
  }
  return {};
}

const penstock::capi::ShapeSpec& ShapeAt(const ps_step& step,
                                         std::uint64_t unit) {
  const auto& shapes = step.attached->shapes;
  return unit < step.unit_shapes.size() ? shapes[step.unit_shapes[unit]]
                                        : shapes[0];
}

// A tensor of part number `part` of `parts` equal ones of the step.
bool View(const ps_step& step, std::uint32_t index, std::uint64_t part,
          std::uint64_t parts, ps_tensor* out) {
  const penstock::capi::Attached& attached = *step.attached;
  if (index >= attached.shapes[0].tensors.size() || part >= parts) return false;
  const bool buckets = attached.unit_stride != 0;
  if (buckets && parts != step.info.units) return false;
  const auto& t = ShapeAt(step, buckets ? part : 0).tensors[index];
  *out = {};
  out->name = t.name.c_str();
  out->dtype = t.dtype;
  out->dims = t.dims;
  std::copy(t.shape, t.shape + t.dims, out->shape);
  std::copy(t.strides, t.strides + t.dims, out->strides);
  if (buckets) {
    out->data = step.data + part * attached.unit_stride + t.offset;
    return true;
  }
  out->shape[0] = step.info.units / parts;
  out->data = step.data + t.offset + part * out->shape[0] * t.strides[0];
  return true;
}

// Nothing may leave a C function as an exception.
template <typename Body>
ps_code Guard(ps_error* error, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Report(Fail(PS_FAILED, "no memory"), error);
  } catch (const std::exception& e) {
    return Report(Fail(PS_FAILED, e.what()), error);
  }
}

}  // namespace

const char* ps_version(void) { return PENSTOCK_VERSION; }

ps_code ps_attach(const ps_attach_options* options, ps_feed** feed,
                  ps_error* error) {
  return Guard(error, [&] {
    if (options == nullptr || feed == nullptr) {
      return Report(Fail(PS_INVALID, "ps_attach: options or feed is NULL"),
                    error);
    }
    penstock::capi::Options read;
    if (Result r = ReadOptions(*options, &read); !r.ok()) {
      return Report(r, error);
    }
    auto handle = std::make_unique<ps_feed>();
    if (Result r = Feed::Attach(read, &handle->feed); !r.ok()) {
      return Report(r, error);
    }
    *feed = handle.release();
    return PS_OK;
  });
}

ps_code ps_feed_get_info(ps_feed* feed, ps_feed_info* info) {
  if (feed == nullptr || info == nullptr ||
      info->struct_bytes != sizeof(ps_feed_info)) {
    return PS_INVALID;
  }
  const auto& a = feed->feed->attached();
  *info = {sizeof(ps_feed_info),
           a.generation,
           a.start_step,
           a.total_steps,
           a.global_batch,
           a.microbatches,
           a.batch_bytes,
           a.job.c_str(),
           a.order_digest.c_str(),
           a.content_digest.c_str(),
           a.notes.c_str(),
           feed->feed->remote()};
  return PS_OK;
}

ps_code ps_poll(ps_feed* feed, uint64_t slice_ms, ps_step** step,
                ps_error* error) {
  return Guard(error, [&] {
    if (Result r = Usable(feed); !r.ok()) return Report(r, error);
    if (step == nullptr) return Report(Fail(PS_INVALID, "no step"), error);
    std::unique_ptr<ps_step> out;
    constexpr uint64_t kSliceMax = 1'000'000'000;
    const Result r = feed->feed->Next(
        static_cast<std::int64_t>(std::min(slice_ms, kSliceMax)), &out);
    if (r.ok()) *step = out.release();
    return Report(r, error);
  });
}

ps_code ps_next(ps_feed* feed, ps_step** step, ps_error* error) {
  ps_code code;
  do {
    code = ps_poll(feed, 3'600'000, step, error);
  } while (code == PS_AGAIN);
  return code;
}

ps_code ps_step_get_info(const ps_step* step, ps_step_info* info) {
  if (step == nullptr || info == nullptr ||
      info->struct_bytes != sizeof(ps_step_info)) {
    return PS_INVALID;
  }
  *info = step->info;
  return PS_OK;
}

uint32_t ps_step_tensor_count(const ps_step* step) {
  return step == nullptr
             ? 0
             : static_cast<uint32_t>(step->attached->shapes[0].tensors.size());
}

ps_code ps_step_tensor(const ps_step* step, uint32_t index, ps_tensor* tensor) {
  if (step == nullptr || tensor == nullptr) return PS_INVALID;
  if (step->attached->unit_stride != 0) return PS_INVALID;
  return View(*step, index, 0, 1, tensor) ? PS_OK : PS_INVALID;
}

ps_code ps_step_microbatch(const ps_step* step, uint32_t microbatch,
                           uint32_t index, ps_tensor* tensor) {
  if (step == nullptr || tensor == nullptr) return PS_INVALID;
  return View(*step, index, microbatch, step->info.microbatches, tensor)
             ? PS_OK
             : PS_INVALID;
}

ps_code ps_step_get_microbatch_info(const ps_step* step, uint32_t microbatch,
                                    ps_microbatch_info* info) {
  if (step == nullptr || info == nullptr ||
      info->struct_bytes != sizeof(ps_microbatch_info) ||
      microbatch >= step->info.microbatches) {
    return PS_INVALID;
  }
  const std::uint64_t units = step->info.units / step->info.microbatches;
  const std::uint64_t there = step->first_samples.size() - 1;
  const std::uint64_t first = std::min(microbatch * units, there);
  const std::uint64_t end = std::min(first + units, there);
  *info = {sizeof(ps_microbatch_info),
           ShapeAt(*step, microbatch * units).name.c_str(), units,
           step->first_samples[first],
           step->first_samples[end] - step->first_samples[first]};
  return PS_OK;
}

const char* ps_step_sample_id(const ps_step* step, uint32_t sample) {
  if (step == nullptr || sample >= step->sample_ids.size()) return nullptr;
  return step->sample_ids[sample].c_str();
}

const char* ps_step_item_digest(const ps_step* step, uint32_t sample) {
  if (step == nullptr || sample >= step->item_digests.size()) return nullptr;
  return step->item_digests[sample].c_str();
}

void ps_step_release(ps_step* step) {
  if (step == nullptr) return;
  penstock::capi::Release(std::unique_ptr<ps_step>(step));
}

ps_code ps_ack(ps_feed* feed, uint64_t step, ps_error* error) {
  return Guard(error, [&] {
    if (Result r = Usable(feed); !r.ok()) return Report(r, error);
    return Report(feed->feed->Ack(step), error);
  });
}

size_t ps_state_dict(const ps_feed* feed, char* text, size_t size) {
  if (feed == nullptr) return 0;
  const std::string value = feed->feed->StateDict();
  if (text != nullptr && size > 0) {
    const size_t n = std::min(size - 1, value.size());
    std::memcpy(text, value.data(), n);
    text[n] = '\0';
  }
  return value.size() + 1;
}

ps_code ps_checkpoint(ps_feed* feed, const char* name, ps_error* error) {
  return Guard(error, [&] {
    if (Result r = Usable(feed); !r.ok()) return Report(r, error);
    if (name == nullptr) return Report(Fail(PS_INVALID, "no name"), error);
    return Report(feed->feed->Checkpoint(name), error);
  });
}

void ps_abort(ps_feed* feed) {
  if (feed != nullptr && !feed->feed->forked()) feed->feed->Abort();
}

void ps_close(ps_feed* feed) { delete feed; }
