// Penstock client, C++: header-only over the C ABI in penstock/client.h. Errors
// are values; no exception crosses.
#ifndef PENSTOCK_CLIENT_HPP_
#define PENSTOCK_CLIENT_HPP_

#include <penstock/client.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

struct Error {
  ps_code code = PS_OK;
  std::string message;
};

using Tensor = ps_tensor;

// A step's batch: views of the arena, given back when the last copy goes.
class StepBatch {
 public:
  explicit StepBatch(ps_step* step) : step_(step, &ps_step_release) {}

  std::uint64_t number() const { return info().number; }
  ps_step_info info() const {
    ps_step_info i{};
    i.struct_bytes = sizeof(i);
    ps_step_get_info(step_.get(), &i);
    return i;
  }
  // Empty when the feed has buckets: then microbatches differ in shape.
  std::vector<Tensor> tensors() const {
    std::vector<Tensor> out(ps_step_tensor_count(step_.get()));
    for (std::uint32_t i = 0; i < out.size(); ++i) {
      if (ps_step_tensor(step_.get(), i, &out[i]) != PS_OK) return {};
    }
    return out;
  }
  // Empty when there is no such microbatch.
  std::vector<Tensor> microbatch(std::uint32_t m) const {
    std::vector<Tensor> out;
    Tensor t;
    for (std::uint32_t i = 0; i < ps_step_tensor_count(step_.get()); ++i) {
      if (ps_step_microbatch(step_.get(), m, i, &t) != PS_OK) return {};
      out.push_back(t);
    }
    return out;
  }
  // Zeros when there is no such microbatch.
  ps_microbatch_info microbatch_info(std::uint32_t m) const {
    ps_microbatch_info i{};
    i.struct_bytes = sizeof(i);
    i.bucket = "";
    ps_step_get_microbatch_info(step_.get(), m, &i);
    return i;
  }
  std::string sample_id(std::uint32_t i) const {
    return Text(ps_step_sample_id(step_.get(), i));
  }
  std::string item_digest(std::uint32_t i) const {
    return Text(ps_step_item_digest(step_.get(), i));
  }

 private:
  static std::string Text(const char* t) { return t == nullptr ? "" : t; }
  std::shared_ptr<ps_step> step_;
};

// A rank's end of a job. One thread at a time; Abort() from any.
class Feed {
 public:
  static std::optional<Feed> Attach(const ps_attach_options& options,
                                    Error* error) {
    ps_feed* feed = nullptr;
    ps_error e{};
    if (ps_attach(&options, &feed, &e) != PS_OK) {
      if (error != nullptr) *error = {e.code, e.message};
      return std::nullopt;
    }
    return Feed(feed);
  }

  // Empty at the end of the data and on errors; error() says which.
  std::optional<StepBatch> Next() {
    ps_step* step = nullptr;
    ps_error e{};
    const ps_code code = ps_next(feed_.get(), &step, &e);
    if (code == PS_OK) return StepBatch(step);
    error_ = {code == PS_END ? PS_OK : code, e.message};
    return std::nullopt;
  }
  const Error& error() const { return error_; }

  ps_feed_info info() const {
    ps_feed_info i{};
    i.struct_bytes = sizeof(i);
    ps_feed_get_info(feed_.get(), &i);
    return i;
  }
  std::string StateDict() const {
    std::string text(ps_state_dict(feed_.get(), nullptr, 0), '\0');
    ps_state_dict(feed_.get(), text.data(), text.size());
    text.pop_back();  // the final zero
    return text;
  }
  Error Ack(std::uint64_t step) {
    ps_error e{};
    const ps_code code = ps_ack(feed_.get(), step, &e);
    return {code, e.message};
  }
  Error Checkpoint(const std::string& name) {
    ps_error e{};
    const ps_code code = ps_checkpoint(feed_.get(), name.c_str(), &e);
    return {code, e.message};
  }
  void Abort() { ps_abort(feed_.get()); }

 private:
  explicit Feed(ps_feed* feed) : feed_(feed, &ps_close) {}
  std::unique_ptr<ps_feed, void (*)(ps_feed*)> feed_;
  Error error_;
};

}  // namespace penstock

#endif  // PENSTOCK_CLIENT_HPP_
