#ifndef PENSTOCK_SERVER_DATASET_SELECTION_CACHE_H_
#define PENSTOCK_SERVER_DATASET_SELECTION_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/lineage.h"
#include "server/dataset/dataset.h"
#include "server/dataset/mapped_file.h"

// What a feed selected of its datasets, in a file that is mapped.
namespace penstock::dataset {

// Of one source.
struct CachedSource {
  std::string name;
  Digest256 selection{};
  std::span<const std::uint32_t> captures, tracks;
  // By view: its number among the views that the feed gives the source.
  std::vector<std::pair<std::uint32_t, plan::LineageRows>> lineages;
};

struct CachedSelection {
  std::vector<std::string> notes;
  std::vector<CachedSource> sources;
  std::shared_ptr<const MappedFile> file;  // keeps the rows; null when encoded
};

// Version of the file's layout, in its keys.
inline constexpr std::uint32_t kSelectionCacheVersion = 1;

// The file's bytes. `key` says of what the selection is; README.md has the layout.
std::vector<std::uint8_t> EncodeSelection(const Digest256& key,
                                          const CachedSelection& selection);

// Maps a file and checks it: every byte by XXH3-128, every length against the
// file; the rows are checked by who makes views of them. None: no file, a damaged
// one, one of another key.
std::optional<CachedSelection> ReadSelection(const std::string& path,
                                             const Digest256& key);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_SELECTION_CACHE_H_
