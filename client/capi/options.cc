#include "client/capi/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace penstock::capi {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFeedBytesMax = 4 << 20;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultAddress() {
  if (std::string server = Environment("PENSTOCK_SERVER"); !server.empty()) {
    return server;
  }
  if (::geteuid() != 0) {
    if (std::string run = Environment("XDG_RUNTIME_DIR"); !run.empty()) {
      return run + "/penstock";
    }
  }
  return "/run/penstock";
}

// The launcher's id of the run with its restart count, so that a restart is a
// new incarnation and all ranks of one run have the same.
std::string LauncherIncarnation() {
  if (std::string id = Environment("PENSTOCK_INCARNATION"); !id.empty()) {
    return id;
  }
  if (std::string id = Environment("TORCHELASTIC_RUN_ID"); !id.empty()) {
    return id + "-" + Environment("TORCHELASTIC_RESTART_COUNT");
  }
  if (std::string id = Environment("SLURM_JOB_ID"); !id.empty()) {
    return "slurm-" + id + "-" + Environment("SLURM_RESTART_COUNT");
  }
  return "";
}

std::string MadeUpIncarnation() {
  std::uint64_t random = 0;
  std::ifstream in("/dev/urandom", std::ios::binary);
  in.read(reinterpret_cast<char*>(&random), sizeof(random));
  return "single-" + std::to_string(random);
}

// What Protobuf takes as a text: UTF-8 without surrogates and overlong forms.
bool IsUtf8(const std::string& text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = p + text.size();
  while (p < end) {
    const int more = *p < 0x80 ? 0 : *p < 0xC2 ? -1 : *p < 0xE0 ? 1
                   : *p < 0xF0 ? 2 : *p < 0xF5 ? 3 : -1;
    if (more < 0 || end - p <= more) return false;
    for (int i = 1; i <= more; ++i) {
      if ((p[i] & 0xC0) != 0x80) return false;
    }
    if ((*p == 0xE0 && p[1] < 0xA0) || (*p == 0xED && p[1] > 0x9F) ||
        (*p == 0xF0 && p[1] < 0x90) || (*p == 0xF4 && p[1] > 0x8F)) {
      return false;
    }
    p += more + 1;
  }
  return true;
}

Result CheckTexts(const Options& o) {
  const std::pair<const char*, const std::string*> texts[] = {
      {"job", &o.job},
      {"resume", &o.resume},
      {"feed", &o.feed_text},
      {"path of the feed", &o.feed_path},
      {"address", &o.address},
      {"folder of the feed", &o.feed_dir},
      {"incarnation", &o.incarnation},
      {"speeds", &o.speeds},
      {"cp_cut", &o.cp_cut}};
  for (const auto& [name, text] : texts) {
    if (!IsUtf8(*text)) {
      return Fail(PS_INVALID, {std::string("ps_attach: ") + name,
                               "is not UTF-8 text", "bytes that are no UTF-8",
                               "text; a feed is a YAML file", "correct it"});
    }
  }
  return {};
}

// "tcp:HOST:PORT", or a folder.
Result CheckAddress(const std::string& address) {
  if (!address.starts_with("tcp:")) return {};
  const auto colon = address.rfind(':');
  const std::string port = address.substr(colon + 1);
  const bool number = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  const int value = number ? std::stoi(port) : 0;
  if (colon > 4 && value >= 1 && value <= 65535) return {};
  return Fail(PS_INVALID,
              {"ps_attach: address", "not an address of a daemon", address,
               "tcp:HOST:PORT with a port from 1 to 65535, or the daemon's "
               "socket folder",
               "correct the address"});
}

Result ReadFeed(const std::string& path, Options* out) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const auto status = fs::status(absolute, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return Fail(
        PS_INVALID,
        {path, "the feed is not a file",
         fs::is_directory(status) ? "a folder" : "a device, pipe or socket",
         "a YAML file", "correct the path of the feed"});
  }
  std::ifstream in(absolute, std::ios::binary);
  if (!in) {
    return Fail(PS_INVALID,
                {path, "the feed cannot be read", std::strerror(errno),
                 "a readable YAML file", "correct the path of the feed"});
  }
  std::stringstream text;
  text << in.rdbuf();
  out->feed_text = text.str();
  if (out->feed_text.size() > kFeedBytesMax) {
    return Fail(PS_INVALID, {path, "the feed is too large",
                             std::to_string(out->feed_text.size()) + " bytes",
                             "at most 4 MiB", "correct the path of the feed"});
  }
  out->feed_path = path;
  out->feed_dir = absolute.parent_path().string();
  return {};
}

}  // namespace

Result ReadOptions(const ps_attach_options& in, Options* out) {
  if (in.struct_bytes != sizeof(ps_attach_options)) {
    return Fail(PS_INVALID,
                {"ps_attach", "the options are of another version",
                 "struct_bytes " + std::to_string(in.struct_bytes),
                 std::to_string(sizeof(ps_attach_options)),
                 "build the program with the client.h of this library"});
  }
  auto text = [](const char* t) { return t == nullptr ? std::string() : t; };
  if (in.feed == nullptr || in.feed[0] == '\0') {
    return Fail(PS_INVALID, {"ps_attach: feed", "the feed must be given",
                             "none", "the path of a feed file", "give it"});
  }
  if (in.resume == nullptr || in.resume[0] == '\0') {
    return Fail(PS_INVALID,
                {"ps_attach: resume", "it must be given", "none",
                 "\"new\", \"step:K\", or the value of state_dict()",
                 "give the state_dict that the trainer saved; \"new\" only for "
                 "a job that never ran"});
  }
  out->address = text(in.address).empty() ? DefaultAddress() : text(in.address);
  while (out->address.size() > 1 && out->address.back() == '/') {
    out->address.pop_back();
  }
  out->job = text(in.job);
  out->resume = text(in.resume);
  out->incarnation = text(in.incarnation);
  out->data_rank = in.data_rank;
  out->data_world = in.data_world == 0 ? 1 : in.data_world;
  if (out->data_rank >= out->data_world) {
    return Fail(PS_INVALID, {"ps_attach", "no such data rank",
                             "rank " + std::to_string(in.data_rank) + " of " +
                                 std::to_string(out->data_world),
                             "0 to " + std::to_string(out->data_world - 1),
                             "correct the rank or the world"});
  }
  out->ack_leader = in.ack_leader != 0;
  out->explicit_ack = in.explicit_ack != 0;
  out->ranks_per_node = in.ranks_per_node;
  out->speeds = text(in.speeds);
  out->cp_cut = text(in.cp_cut);
  out->cp_rank = in.cp_rank;
  out->cp_size = std::max(in.cp_size, 1u);
  out->pp_rank = in.pp_rank;
  out->pp_size = std::max(in.pp_size, 1u);
  out->takeover = in.takeover != 0;
  if (in.deadline_ms != 0) out->deadline_ms = in.deadline_ms;
  if (in.first_deadline_ms != 0) out->first_deadline_ms = in.first_deadline_ms;
  out->absent_deadline_ms = in.absent_deadline_ms != 0 ? in.absent_deadline_ms
                                                       : out->first_deadline_ms;
  if (out->incarnation.empty()) out->incarnation = LauncherIncarnation();
  if (out->incarnation.empty()) {
    if (out->data_world > 1) {
      return Fail(PS_INVALID, {"ps_attach: incarnation",
                               "it must be given when there is more than one "
                               "rank and no launcher says it",
                               "none", "an id of this run",
                               "give the same id to all ranks of a run, "
                               "another one to each restart"});
    }
    out->incarnation = MadeUpIncarnation();
  }
  if (Result r = CheckAddress(out->address); !r.ok()) return r;
  if (Result r = ReadFeed(in.feed, out); !r.ok()) return r;
  return CheckTexts(*out);
}

}  // namespace penstock::capi
