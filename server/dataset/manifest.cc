#include "server/dataset/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/dataset/manifest_text.h"

namespace penstock::dataset {
namespace {

using Json = nlohmann::json;  // object keys are sorted: std::map

constexpr char kFormat[] = "penstock.dataset";

absl::Status Damaged(std::string_view where, std::string what,
                     std::string found = "", std::string expected = "") {
  return MakeError(absl::StatusCode::kDataLoss,
                   {.where = std::string(where),
                    .what = std::move(what),
                    .found = std::move(found),
                    .expected = std::move(expected),
                    .action = "copy the dataset again from its origin"});
}

absl::Status NotJson(std::string found) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = "",
                    .what = "not JSON",
                    .found = std::move(found),
                    .expected = "JSON as the import wrote it",
                    .action = "copy the dataset again from its origin"});
}

// Brackets are nested at most so deep; those in strings are not counted.
bool IsShallow(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kManifestDepthMax) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

// Looks at the depth first: nlohmann's parser is iterative, its destructor and
// dump are not; and its parser with a callback is quadratic in long arrays.
absl::StatusOr<Json> ParseJson(std::string_view text) {
  if (!IsShallow(text)) return NotJson("nested too deeply");
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const std::exception& e) {
    return NotJson(e.what());
  }
}

absl::StatusOr<std::string> Dump(const Json& json) {
  try {
    return json.dump();
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("not UTF-8: ", e.what()));
  }
}

// Indented body, then the digest of its canonical form as the last field.
absl::StatusOr<std::string> Render(const Json& body) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string canonical, Dump(body));
  std::string text = body.dump(1);
  text.resize(text.size() - 2);  // "\n}"
  return absl::StrCat(text, ",\n \"digest\": \"",
                      hash::Hex(hash::Sha256Of(canonical)), "\"\n}\n");
}

bool IsDigest(const std::string& hex) {
  Digest256 digest;
  return hash::ParseHex(hex, digest) && hash::Hex(digest) == hex;
}

absl::Status CheckFiles(const Manifest& m, std::string_view where) {
  std::set<std::string_view> seen;
  for (const ManifestFile& f : m.files) {
    PENSTOCK_RETURN_IF_ERROR(CheckRelativePath(f.path, where));
    if (!IsDigest(f.sha256)) {
      return Damaged(where, absl::StrCat("SHA-256 of ", f.path), f.sha256,
                     "64 lower-case hex digits");
    }
    if (f.path == kManifestFile || !seen.insert(f.path).second) {
      return Damaged(
          where, absl::StrCat("file ", f.path, " must not be listed (again)"));
    }
  }
  for (const std::string& shard : m.shards) {
    if (seen.contains(shard)) continue;
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = std::string(where),
         .what = absl::StrCat("shard ", shard, " is not in the file list"),
         .found = "a shard without size and digest",
         .expected = "every shard in the file list",
         .action = "copy the dataset again from its origin"});
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const Manifest& m, std::string_view where) {
  if (!IsDigest(m.id)) {
    return Damaged(where, "dataset id", m.id, "64 lower-case hex digits");
  }
  return CheckFiles(m, where);
}

absl::Status CheckVersion(const ManifestText& read, std::string_view where) {
  if (!read.major || read.format != kFormat) {
    return Damaged(where, "not a manifest of a dataset", read.format, kFormat);
  }
  if (*read.major == kManifestMajor) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      {.where = std::string(where),
       .what = "the dataset has a format version this build does not read",
       .found = absl::StrCat("major version ", *read.major),
       .expected = absl::StrCat("major version ", kManifestMajor),
       .action = "use a newer penstock, or import the dataset again"});
}

absl::Status CheckDigest(const ManifestText& read, std::string_view where) {
  if (!read.listed) {
    return Damaged(where, "no field \"digest\": the manifest is cut off");
  }
  const std::string digest = hash::Hex(read.digest);
  if (digest != *read.listed) {
    return Damaged(where, "the manifest's digest of itself differs", digest,
                   *read.listed + " (field \"digest\")");
  }
  if (!read.stray) return absl::OkStatus();
  return Damaged(where,
                 absl::StrCat("the values match the digest, byte ", *read.stray,
                              " is not as penstock writes it"));
}

}  // namespace

const ManifestFile* Manifest::Find(std::string_view path) const {
  auto it = std::lower_bound(
      files.begin(), files.end(), path,
      [](const ManifestFile& f, std::string_view p) { return f.path < p; });
  return it != files.end() && it->path == path ? &*it : nullptr;
}

absl::StatusOr<std::string> CanonicalJson(std::string_view json_text) {
  PENSTOCK_ASSIGN_OR_RETURN(Json json, ParseJson(json_text));
  return Dump(json);
}

absl::Status CheckRelativePath(std::string_view path, std::string_view where) {
  bool good = !path.empty() && path.size() <= 1024;
  for (std::size_t at = 0; good && at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    good = !part.empty() && part != "." && part != "..";
    at = end + 1;
  }
  for (unsigned char c : path)
    good = good && c >= 0x20 && c != 0x7F && c != '\\';
  if (good) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = std::string(where),
       .what = "a listed path leaves the dataset or is malformed",
       .found = std::string(path.substr(0, 200)),
       .expected = "a relative path without empty, \".\" or \"..\" "
                   "parts",
       .action = "do not use this dataset; ask where it came from"});
}

absl::StatusOr<std::string> EncodeManifest(Manifest m) {
  std::sort(m.files.begin(), m.files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  if (auto s = CheckManifest(m, "manifest to write"); !s.ok()) {
    return absl::InvalidArgumentError(s.message());
  }
  PENSTOCK_ASSIGN_OR_RETURN(Json schema, ParseJson(m.schema));
  PENSTOCK_ASSIGN_OR_RETURN(Json lineage, ParseJson(m.lineage));
  PENSTOCK_ASSIGN_OR_RETURN(Json split, ParseJson(m.split_rule));
  Json files = Json::array();
  for (const ManifestFile& f : m.files) {
    files.push_back(
        {{"path", f.path}, {"bytes", f.bytes}, {"sha256", f.sha256}});
  }
  return Render({{"format", kFormat},
                 {"version_major", kManifestMajor},
                 {"version_minor", kManifestMinor},
                 {"id", m.id},
                 {"schema", std::move(schema)},
                 {"contract", m.contract},
                 {"verdict", m.verdict},
                 {"lineage", std::move(lineage)},
                 {"split_rule", std::move(split)},
                 {"files", std::move(files)},
                 {"shards", m.shards}});
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text,
                                       std::string_view where) {
  if (text.size() > kManifestBytesMax) {
    return Damaged(where, "the manifest is too large",
                   absl::StrCat(text.size(), " bytes"),
                   absl::StrCat("at most ", kManifestBytesMax));
  }
  ManifestText read = ReadManifestText(text);
  if (!read.fault.empty()) return Damaged(where, "not JSON", read.fault);
  if (!read.object) return Damaged(where, "not a JSON object");
  PENSTOCK_RETURN_IF_ERROR(CheckVersion(read, where));
  PENSTOCK_RETURN_IF_ERROR(CheckDigest(read, where));
  if (!read.missing.empty()) {
    return Damaged(where, absl::StrCat("field ", read.missing,
                                       " is missing or of another type"));
  }
  Manifest manifest = std::move(read.manifest);
  PENSTOCK_RETURN_IF_ERROR(CheckManifest(manifest, where));
  if (!std::is_sorted(
          manifest.files.begin(), manifest.files.end(),
          [](const auto& a, const auto& b) { return a.path < b.path; })) {
    return Damaged(where, "the file list is not sorted by path");
  }
  return manifest;
}

}  // namespace penstock::dataset
