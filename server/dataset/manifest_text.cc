#include "server/dataset/manifest_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/hash/hash.h"

namespace penstock::dataset {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kChunkBytes = 64u << 10;

// Compares the text with what EncodeManifest writes for the values as they come,
// and hashes their compact form. The field "digest" is last and not hashed.
class Canonical {
 public:
  explicit Canonical(std::string_view text) : text_(text) {}

  // Both forms, the indented form only, the compact form only.
  void Put(std::string_view s) {
    Pretty(s);
    Compact(s);
  }
  void Pretty(std::string_view s) {
    if (stray_) return;
    if (text_.substr(at_, s.size()) == s) {
      at_ += s.size();
      return;
    }
    while (at_ < text_.size() && text_[at_] == s.front()) {
      ++at_;
      s.remove_prefix(1);
      if (s.empty()) return;
    }
    stray_ = at_;
  }
  void Compact(std::string_view s) {
    if (mute_) return;
    if (kept_ != nullptr) kept_->append(s);
    chunk_.append(s);
    if (chunk_.size() >= kChunkBytes) Flush();
  }
  void NewLine(std::size_t depth) {
    Pretty("\n");
    for (std::size_t i = 0; i < depth; ++i) Pretty(" ");
  }
  void Mute(bool mute) { mute_ = mute; }
  void Keep(std::string* out) { kept_ = out; }  // null: no more
  void Stray() {
    if (!stray_) stray_ = at_;
  }

  Digest256 Finish() {
    Flush();
    if (!stray_ && at_ != text_.size()) stray_ = at_;
    return sha_.Finish();
  }
  const std::optional<std::size_t>& stray() const { return stray_; }

 private:
  void Flush() {
    sha_.Update(chunk_);
    chunk_.clear();
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::size_t> stray_;
  std::string chunk_;
  hash::Sha256 sha_;
  std::string* kept_ = nullptr;
  bool mute_ = false;
};

// A JSON text of these characters, with its quotes; they are UTF-8.
std::string Quoted(const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      return Json(text).dump();
    }
  }
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  out += text;
  out += '"';
  return out;
}

// Takes the parser's events; fills a ManifestText.
class Reader {
 public:
  Reader(std::string_view text, ManifestText& out) : canonical_(text), out_(out) {}

  bool null() { return Value("null"); }
  bool boolean(bool v) { return Value(v ? "true" : "false"); }
  bool number_integer(std::int64_t v) { return Value(Json(v).dump()); }
  bool number_float(double v, const std::string&) { return Value(Json(v).dump()); }
  bool binary(Json::binary_t&) { return false; }  // not in JSON

  bool number_unsigned(std::uint64_t v) {
    Value(std::to_string(v));
    if (InFile() && field_ == "bytes") {
      out_.manifest.files.back().bytes = v;
      seen_ |= kBytes;
    } else if (stack_.size() == 1 && field_ == "version_major") {
      out_.major = v;
    }
    return true;
  }

  bool string(std::string& v) {
    Value(Quoted(v));
    Manifest& m = out_.manifest;
    if (InFile()) {
      if (field_ == "path") {
        m.files.back().path = v;
        seen_ |= kPath;
      } else if (field_ == "sha256") {
        m.files.back().sha256 = v;
        seen_ |= kSha;
      }
    } else if (stack_.size() == 2 && section_ == Section::kShards) {
      m.shards.push_back(v);
    } else if (stack_.size() == 1) {
      Text(v);
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (!Open("{", false)) return false;
    if (stack_.size() == 1) out_.object = true;
    if (InFile()) {
      out_.manifest.files.emplace_back();
      seen_ = 0;
    }
    return true;
  }
  bool end_object() {
    if (InFile() && seen_ != (kPath | kBytes | kSha)) {
      Miss((seen_ & kPath) == 0    ? "files.path"
           : (seen_ & kBytes) == 0 ? "files.bytes"
                                   : "files.sha256");
    }
    return Close("}");
  }
  bool start_array(std::size_t) { return Open("[", true); }
  bool end_array() { return Close("]"); }

  bool key(std::string& name) {
    Level& level = stack_.back();
    // Sorted and each once, as a map writes them; but "digest" is last of all.
    const bool digest = stack_.size() == 1 && name == "digest";
    if (level.count > 0 && !digest && !(level.key < name)) canonical_.Stray();
    if (stack_.size() == 1) {
      if (digested_) canonical_.Stray();
      digested_ = digest;
      canonical_.Mute(digest);
      BeginField(name);
    } else if (InFile()) {
      field_ = name;
    }
    Separate(level);
    if (!digest) level.key = name;
    canonical_.Put(Quoted(name));
    canonical_.Pretty(": ");
    canonical_.Compact(":");
    return true;
  }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& e) {
    out_.fault = e.what();
    return false;
  }

  void Finish() {
    canonical_.Mute(false);
    canonical_.Pretty("\n");
    out_.digest = canonical_.Finish();
    out_.stray = canonical_.stray();
    const struct {
      const char* name;
      std::uint32_t bit;
    } fields[] = {{"id", kId},           {"schema", kSchema},
                  {"contract", kContract}, {"verdict", kVerdict},
                  {"lineage", kLineage}, {"split_rule", kSplit},
                  {"files", kFiles},     {"shards", kShards}};
    for (const auto& f : fields) {
      if ((fields_ & f.bit) != 0) continue;
      out_.missing = f.name;  // before what is wrong inside one
      return;
    }
  }

 private:
  enum class Section { kOther, kFiles, kShards };
  enum : std::uint32_t {
    kPath = 1, kBytes = 2, kSha = 4,
    kId = 1, kSchema = 2, kContract = 4, kVerdict = 8,
    kLineage = 16, kSplit = 32, kFiles = 64, kShards = 128,
  };
  struct Level {
    bool array = false;
    std::size_t count = 0;
    std::string key;  // the last one
  };

  bool InFile() const {
    return section_ == Section::kFiles && stack_.size() == 3 && !stack_[2].array;
  }

  void Miss(std::string what) {
    if (out_.missing.empty()) out_.missing = std::move(what);
  }

  // A field of the manifest begins.
  void BeginField(const std::string& name) {
    canonical_.Keep(nullptr);
    embedded_ = nullptr;
    section_ = Section::kOther;
    field_ = name;
    Manifest& m = out_.manifest;
    const auto keep = [&](const char* field, std::string& json, std::uint32_t bit) {
      if (name != field) return;
      json.clear();
      embedded_ = &json;
      fields_ |= bit;
    };
    keep("schema", m.schema, kSchema);
    keep("lineage", m.lineage, kLineage);
    keep("split_rule", m.split_rule, kSplit);
  }

  void Text(const std::string& v) {
    Manifest& m = out_.manifest;
    const auto take = [&](const char* field, std::string& text, std::uint32_t bit) {
      if (field_ != field) return;
      text = v;
      fields_ |= bit;
    };
    take("id", m.id, kId);
    take("contract", m.contract, kContract);
    take("verdict", m.verdict, kVerdict);
    if (field_ == "format") out_.format = v;
    if (field_ == "digest") out_.listed = v;
  }

  // What is between two values, and before the first.
  void Separate(Level& level) {
    // The comma before "digest" is not in the compact form: it is muted.
    if (level.count++ > 0) canonical_.Put(",");
    canonical_.NewLine(stack_.size());
  }

  void BeforeValue() {
    if (!stack_.empty() && stack_.back().array) Separate(stack_.back());
    if (stack_.size() == 1 && embedded_ != nullptr) canonical_.Keep(embedded_);
  }

  bool Value(const std::string& text) {
    BeforeValue();
    if (stack_.size() == 2 && section_ == Section::kFiles) Miss("files.path");
    if (stack_.size() == 2 && section_ == Section::kShards &&
        text.front() != '"') {
      Miss("shards");
    }
    canonical_.Put(text);
    return true;
  }

  bool Open(const char* bracket, bool array) {
    if (stack_.size() > static_cast<std::size_t>(kManifestDepthMax)) {
      out_.fault = "nested too deeply";
      return false;
    }
    BeforeValue();
    if (stack_.size() == 1 && array && field_ == "files") {
      section_ = Section::kFiles;
      fields_ |= kFiles;
    } else if (stack_.size() == 1 && array && field_ == "shards") {
      section_ = Section::kShards;
      fields_ |= kShards;
    } else if (stack_.size() == 2 && section_ == Section::kShards) {
      Miss("shards");
    } else if (stack_.size() == 2 && section_ == Section::kFiles && array) {
      Miss("files.path");
    }
    canonical_.Put(bracket);
    stack_.push_back({array, 0, ""});
    return true;
  }

  bool Close(const char* bracket) {
    const bool any = stack_.back().count > 0;
    stack_.pop_back();
    if (stack_.empty()) canonical_.Mute(false);  // behind "digest"
    if (any) canonical_.NewLine(stack_.size());
    canonical_.Put(bracket);
    return true;
  }

  Canonical canonical_;
  ManifestText& out_;
  std::vector<Level> stack_;
  Section section_ = Section::kOther;
  std::string field_;                // of the manifest, or of a file
  std::string* embedded_ = nullptr;  // JSON text that is kept as it is
  std::uint32_t seen_ = 0, fields_ = 0;
  bool digested_ = false;
};

}  // namespace

ManifestText ReadManifestText(std::string_view text) {
  ManifestText out;
  Reader reader(text, out);
  const bool good = Json::sax_parse(text.begin(), text.end(), &reader);
  if (!good && out.fault.empty()) out.fault = "not JSON";
  if (good) reader.Finish();
  return out;
}

}  // namespace penstock::dataset
