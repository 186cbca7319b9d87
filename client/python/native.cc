// penstock._native: the C ABI for Python; everything else is in __init__.py.
#include <penstock/client.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace {

// Carries a code and a message to Python's exception classes.
class NativeError : public std::exception {
 public:
  explicit NativeError(const ps_error& e) : code_(e.code), message_(e.message) {}
  const char* what() const noexcept override { return message_.c_str(); }
  int code() const { return code_; }

 private:
  int code_;
  std::string message_;
};

py::dtype DtypeOf(ps_dtype dtype) {
  switch (dtype) {
    case PS_I32: return py::dtype::of<std::int32_t>();
    case PS_I64: return py::dtype::of<std::int64_t>();
    case PS_F32: return py::dtype::of<float>();
    default: return py::dtype::of<std::uint8_t>();
  }
}

constexpr std::uint64_t kSliceMs = 200;  // between looks at signals

// A step's slot; arrays keep it through their base, so the slot goes back when
// the step and every array of it are gone.
class Step {
 public:
  explicit Step(ps_step* step) : step_(step, &ps_step_release) {
    info_.struct_bytes = sizeof(info_);
    ps_step_get_info(step, &info_);
  }

  const ps_step_info& info() const { return info_; }

  py::dict Tensors(int microbatch) const {
    py::dict out;
    for (std::uint32_t i = 0; i < ps_step_tensor_count(step_.get()); ++i) {
      ps_tensor t;
      const ps_code code =
          microbatch < 0
              ? ps_step_tensor(step_.get(), i, &t)
              : ps_step_microbatch(step_.get(),
                                   static_cast<std::uint32_t>(microbatch), i, &t);
      if (code != PS_OK && microbatch < 0) {
        ps_error e{};
        e.code = PS_INVALID;
        std::snprintf(
            e.message, sizeof(e.message),
            "tensors: the microbatches differ in shape\n  found     a feed "
            "with buckets\n  expected  one shape\n  do        use "
            "step.microbatches");
        throw NativeError(e);
      }
      if (code != PS_OK) throw py::index_error("no such microbatch");
      out[t.name] = Array(t);
    }
    return out;
  }

  // Bucket, first sample, samples.
  py::tuple MicrobatchInfo(std::uint32_t microbatch) const {
    ps_microbatch_info info{};
    info.struct_bytes = sizeof(info);
    if (ps_step_get_microbatch_info(step_.get(), microbatch, &info) != PS_OK) {
      throw py::index_error("no such microbatch");
    }
    return py::make_tuple(info.bucket, info.first_sample, info.samples);
  }

  std::vector<std::string> SampleIds() const {
    std::vector<std::string> out;
    for (std::uint32_t i = 0; const char* id = ps_step_sample_id(step_.get(), i);
         ++i) {
      out.emplace_back(id);
    }
    return out;
  }
  std::vector<std::string> ItemDigests() const {
    std::vector<std::string> out;
    for (std::uint32_t i = 0;
         const char* d = ps_step_item_digest(step_.get(), i); ++i) {
      out.emplace_back(d);
    }
    return out;
  }

 private:
  py::array Array(const ps_tensor& t) const {
    auto* owner = new std::shared_ptr<ps_step>(step_);
    py::capsule base(owner, [](void* p) {
      delete static_cast<std::shared_ptr<ps_step>*>(p);
    });
    std::vector<py::ssize_t> shape(t.shape, t.shape + t.dims);
    std::vector<py::ssize_t> strides(t.strides, t.strides + t.dims);
    py::array array(DtypeOf(t.dtype), shape, strides, t.data, base);
    array.attr("setflags")(py::arg("write") = false);
    return array;
  }

  std::shared_ptr<ps_step> step_;
  ps_step_info info_{};
};

class Feed {
 public:
  Feed(const std::string& address, const std::string& job,
       const std::string& feed, const std::string& incarnation,
       const std::string& resume, std::uint32_t data_rank,
       std::uint32_t data_world, std::uint32_t ranks_per_node,
       const std::string& speeds, std::pair<std::uint32_t, std::uint32_t> cp,
       const std::string& cp_cut, std::pair<std::uint32_t, std::uint32_t> pp,
       bool ack_leader, bool explicit_ack, bool takeover,
       std::uint64_t deadline_ms, std::uint64_t first_deadline_ms) {
    ps_attach_options o{};
    o.struct_bytes = sizeof(o);
    o.address = address.empty() ? nullptr : address.c_str();
    o.job = job.empty() ? nullptr : job.c_str();
    o.feed = feed.c_str();
    o.incarnation = incarnation.empty() ? nullptr : incarnation.c_str();
    o.resume = resume.c_str();
    o.data_rank = data_rank;
    o.data_world = data_world;
    o.ranks_per_node = ranks_per_node;
    o.speeds = speeds.c_str();
    std::tie(o.cp_rank, o.cp_size) = cp;
    o.cp_cut = cp_cut.c_str();
    std::tie(o.pp_rank, o.pp_size) = pp;
    o.ack_leader = ack_leader;
    o.explicit_ack = explicit_ack;
    o.takeover = takeover;
    o.deadline_ms = deadline_ms;
    o.first_deadline_ms = first_deadline_ms;
    o.absent_deadline_ms = kSliceMs;
    ps_error error{};
    ps_feed* raw = nullptr;
    ps_code code;
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::milliseconds(first_deadline_ms);
    do {
      // Ctrl-C ends the wait for a daemon.
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      py::gil_scoped_release release;
      code = ps_attach(&o, &raw, &error);
    } while (code == PS_UNAVAILABLE &&
             std::chrono::steady_clock::now() < deadline);
    if (code != PS_OK) throw NativeError(error);
    feed_.reset(raw);
  }

  // Null at the end of the data.
  std::unique_ptr<Step> Next() {
    ps_error error{};
    ps_step* step = nullptr;
    ps_feed* feed = Open();
    ps_code code;
    for (;;) {
      {
        py::gil_scoped_release release;
        code = ps_poll(feed, kSliceMs, &step, &error);
      }
      if (code != PS_AGAIN) break;
      // Ctrl-C ends a wait.
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
    if (code == PS_END) return nullptr;
    if (code != PS_OK) throw NativeError(error);
    return std::make_unique<Step>(step);
  }

  void Ack(std::uint64_t step) {
    ps_error error{};
    py::gil_scoped_release release;
    if (ps_ack(Open(), step, &error) != PS_OK) throw NativeError(error);
  }
  void Checkpoint(const std::string& name) {
    ps_error error{};
    py::gil_scoped_release release;
    if (ps_checkpoint(Open(), name.c_str(), &error) != PS_OK) {
      throw NativeError(error);
    }
  }
  std::string StateDict() {
    std::string text(ps_state_dict(Open(), nullptr, 0), '\0');
    ps_state_dict(Open(), text.data(), text.size());
    text.pop_back();
    return text;
  }
  py::dict Info() {
    ps_feed_info i{};
    i.struct_bytes = sizeof(i);
    ps_feed_get_info(Open(), &i);
    py::dict d;
    d["job"] = i.job;
    d["generation"] = i.generation;
    d["start_step"] = i.start_step;
    d["total_steps"] = i.total_steps;
    d["global_batch"] = i.global_batch;
    d["microbatches"] = i.microbatches;
    d["batch_bytes"] = i.batch_bytes;
    d["order_digest"] = i.order_digest;
    d["content_digest"] = i.content_digest;
    d["notes"] = i.notes;
    d["remote"] = i.remote != 0;
    return d;
  }
  void Abort() { ps_abort(feed_.get()); }
  void Close() {
    py::gil_scoped_release release;
    feed_.reset();
  }

 private:
  ps_feed* Open() const {
    if (!feed_) {
      ps_error e{};
      e.code = PS_INVALID;
      std::snprintf(e.message, sizeof(e.message), "the feed is closed");
      throw NativeError(e);
    }
    return feed_.get();
  }
  struct CloseFeed {
    void operator()(ps_feed* f) const { ps_close(f); }
  };
  std::unique_ptr<ps_feed, CloseFeed> feed_;
};

}  // namespace

PYBIND11_MODULE(_native, m) {
  m.doc() = "C ABI of the Penstock client; use the package penstock";
  m.attr("version") = ps_version();
  // Replaced by __init__.py with a function that raises the right class.
  static py::exception<NativeError> error_type(m, "NativeError");
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const NativeError& e) {
      py::object instance = py::reinterpret_borrow<py::object>(error_type)(
          e.code(), py::str(e.what()));
      PyErr_SetObject(error_type.ptr(), instance.ptr());
    }
  });
  py::class_<Step>(m, "Step")
      .def("tensors", &Step::Tensors)
      .def("microbatch_info", &Step::MicrobatchInfo)
      .def("sample_ids", &Step::SampleIds)
      .def("item_digests", &Step::ItemDigests)
      .def_property_readonly("number",
                             [](const Step& s) { return s.info().number; })
      .def_property_readonly("samples",
                             [](const Step& s) { return s.info().samples; })
      .def_property_readonly(
          "global_samples",
          [](const Step& s) { return s.info().global_samples; })
      .def_property_readonly("tokens",
                             [](const Step& s) { return s.info().tokens; })
      .def_property_readonly(
          "global_tokens", [](const Step& s) { return s.info().global_tokens; })
      .def_property_readonly("units",
                             [](const Step& s) { return s.info().units; })
      .def_property_readonly(
          "microbatches", [](const Step& s) { return s.info().microbatches; })
      .def_property_readonly("loss_scale",
                             [](const Step& s) { return s.info().loss_scale; })
      .def_property_readonly("wait_ns",
                             [](const Step& s) { return s.info().wait_ns; })
      .def_property_readonly(
          "batch_digest", [](const Step& s) { return s.info().batch_digest; })
      .def_property_readonly("global_digest", [](const Step& s) {
        return s.info().global_digest;
      });
  py::class_<Feed>(m, "Feed")
      .def(py::init<const std::string&, const std::string&, const std::string&,
                    const std::string&, const std::string&, std::uint32_t,
                    std::uint32_t, std::uint32_t, const std::string&,
                    std::pair<std::uint32_t, std::uint32_t>, const std::string&,
                    std::pair<std::uint32_t, std::uint32_t>, bool, bool, bool,
                    std::uint64_t, std::uint64_t>())
      .def("next", &Feed::Next)
      .def("ack", &Feed::Ack)
      .def("checkpoint", &Feed::Checkpoint)
      .def("state_dict", &Feed::StateDict)
      .def("info", &Feed::Info)
      .def("abort", &Feed::Abort)
      .def("close", &Feed::Close);
}
