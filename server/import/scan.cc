#include "server/import/scan.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::import {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVideoExtensions[] = {".mp4", ".m4v", ".mov",  ".mkv",
                                            ".webm", ".ts", ".mpeg", ".mpg"};
constexpr std::size_t kMappingBytesMax = 4 << 20;

std::string LowerExtension(const fs::path& path) {
  std::string e = path.extension().string();
  for (char& c : e) c = static_cast<char>(std::tolower(c));
  return e;
}

bool IsVideo(const fs::path& path) {
  const std::string e = LowerExtension(path);
  return std::find(std::begin(kVideoExtensions), std::end(kVideoExtensions),
                   e) != std::end(kVideoExtensions);
}

// What cannot be looked at (a loop of links, no rights) is not there; opening it
// says why.
bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}
bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}
bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::StatusOr<std::string> ReadText(const fs::path& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) {  // also for a pipe, which would be waited for
    return ErrnoError(error.value(), path.string(),
                      "check that it is a readable file");
  }
  if (bytes > kMappingBytesMax) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = path.string(),
                      .what = "too large for a mapping",
                      .found = absl::StrFormat("%d bytes", bytes),
                      .expected = "at most 4 MiB",
                      .action = "correct or remove capture.json"});
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return ErrnoError(errno, path.string(), "check that it is readable");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

absl::StatusOr<std::vector<fs::path>> ListFolder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error) {
    return ErrnoError(error.value(), folder.string(), "check path and rights");
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

absl::StatusOr<CaptureSource> FolderCapture(const fs::path& folder,
                                            const fs::path& mapping_file) {
  CaptureSource s;
  s.mapping_file = mapping_file.string();
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, ReadText(mapping_file));
  PENSTOCK_ASSIGN_OR_RETURN(s.mapping, ParseMapping(text, s.mapping_file));
  PENSTOCK_ASSIGN_OR_RETURN(const auto entries, ListFolder(folder));
  std::vector<fs::path> videos;
  for (const auto& e : entries) {
    if (IsVideo(e)) videos.push_back(e);
  }
  if (s.mapping.video.empty()) {
    if (videos.size() != 1) {
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          {.where = folder.string(),
           .what = "a capture needs one video",
           .found = absl::StrFormat("%d videos", videos.size()),
           .expected = "one, or \"video\": {\"file\": …} in capture.json",
           .action =
               "name the video in capture.json, or give each its own folder"});
    }
    s.video = videos[0].string();
  } else {
    const fs::path relative(s.mapping.video);
    if (relative.is_absolute() || s.mapping.video.find("..") != std::string::npos) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       {.where = s.mapping_file + ".video.file",
                        .what = "leaves the capture's folder",
                        .found = s.mapping.video,
                        .expected = "a file beside capture.json",
                        .action = "correct capture.json"});
    }
    s.video = (folder / relative).string();
  }
  std::set<std::string> declared = {fs::path(s.video).filename().string(),
                                    mapping_file.filename().string()};
  for (const auto& t : s.mapping.sidecars) declared.insert(t.file);
  for (const auto& e : entries) {
    if (!declared.contains(e.filename().string()) && IsFile(e)) {
      s.undeclared.push_back(e.filename().string());
    }
  }
  return s;
}

absl::StatusOr<CaptureSource> FileCapture(const fs::path& video) {
  CaptureSource s;
  s.video = video.string();
  fs::path mapping = video;
  mapping.replace_extension(".capture.json");
  if (Exists(mapping)) {
    s.mapping_file = mapping.string();
    PENSTOCK_ASSIGN_OR_RETURN(const std::string text, ReadText(mapping));
    PENSTOCK_ASSIGN_OR_RETURN(s.mapping, ParseMapping(text, s.mapping_file));
  }
  return s;
}

// A capture, or the fault of what should be one.
CaptureSource OrFault(const fs::path& path,
                      absl::StatusOr<CaptureSource> capture) {
  if (capture.ok()) return *std::move(capture);
  CaptureSource s;
  s.video = path.string();
  s.fault = capture.status();
  return s;
}

absl::Status ScanFolder(const fs::path& folder, int depth,
                        std::vector<CaptureSource>& out) {
  if (depth > 16) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = folder.string(),
                      .what = "folders too deep",
                      .found = "more than 16 levels",
                      .expected = "at most 16 below a source",
                      .action = "give a source nearer to the recordings"});
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto entries, ListFolder(folder));
  const fs::path mapping = folder / "capture.json";
  if (Exists(mapping)) {
    out.push_back(OrFault(folder, FolderCapture(folder, mapping)));
    return absl::OkStatus();
  }
  for (const auto& e : entries) {
    if (IsFolder(e)) {
      PENSTOCK_RETURN_IF_ERROR(ScanFolder(e, depth + 1, out));
    } else if (IsVideo(e)) {
      out.push_back(OrFault(e, FileCapture(e)));
    }
  }
  return absl::OkStatus();
}

absl::Status HashFile(const std::string& path, hash::Sha256& into) {
  std::error_code error;
  if (const auto status = fs::status(path, error);
      fs::exists(status) && !fs::is_regular_file(status)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = path,
                      .what = "not a regular file",
                      .found = "a device, pipe or socket",
                      .expected = "a recording",
                      // a pipe would be waited for
                      .action = "remove it from the sources"});
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return ErrnoError(errno, path, "check that it is there and readable");
  }
  hash::Sha256 one;
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())),
         in.gcount() > 0) {
    one.Update(hash::AsBytes(
        {buffer.data(), static_cast<std::size_t>(in.gcount())}));
  }
  into.Update(one.Finish());
  return absl::OkStatus();
}

}  // namespace

std::string FolderOf(const CaptureSource& source) {
  const fs::path parent = fs::path(source.video).parent_path();
  return parent.empty() ? "./" : parent.string() + "/";
}

absl::StatusOr<std::vector<CaptureSource>> ScanSources(
    const std::vector<std::string>& sources) {
  std::vector<CaptureSource> found;
  for (const std::string& source : sources) {
    const fs::path path(source);
    std::error_code error;
    const auto status = fs::status(path, error);
    if (!fs::exists(status)) {
      return MakeError(absl::StatusCode::kNotFound,
                       {.where = source,
                        .what = "no such file or folder",
                        .found = status.type() == fs::file_type::not_found
                                     ? "nothing"
                                     : "something that cannot be read",
                        .expected = "a recording, or a folder of recordings",
                        .action = "correct the path of the source"});
    }
    const std::size_t before = found.size();
    if (fs::is_directory(status)) {
      PENSTOCK_RETURN_IF_ERROR(ScanFolder(path, 0, found));
    } else {
      found.push_back(OrFault(path, FileCapture(path)));
    }
    if (found.size() == before) {
      return MakeError(
          absl::StatusCode::kInvalidArgument,
          {.where = source,
           .what = "no capture in this folder",
           .found = "no capture.json and no video file",
           .expected = "mp4, mov, mkv, webm, ts or mpeg files, or folders with "
                       "a capture.json",
           .action = "give the folder that holds the recordings"});
    }
  }
  return found;
}

absl::Status HashSource(CaptureSource& source) {
  hash::Sha256 sha;
  sha.Update("penstock capture 1\n");
  PENSTOCK_RETURN_IF_ERROR(HashFile(source.video, sha));
  if (!source.mapping_file.empty()) {
    PENSTOCK_RETURN_IF_ERROR(HashFile(source.mapping_file, sha));
  }
  for (const auto& track : source.mapping.sidecars) {
    PENSTOCK_RETURN_IF_ERROR(HashFile(FolderOf(source) + track.file, sha));
  }
  source.id = sha.Finish();
  return absl::OkStatus();
}

}  // namespace penstock::import
