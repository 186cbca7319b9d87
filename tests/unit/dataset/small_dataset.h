#ifndef PENSTOCK_TESTS_UNIT_DATASET_SMALL_DATASET_H_
#define PENSTOCK_TESTS_UNIT_DATASET_SMALL_DATASET_H_

#include <string>
#include <vector>

#include "common/hash/hash.h"
#include "server/dataset/catalog.h"
#include "server/dataset/dataset_id.h"
#include "server/dataset/manifest.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::test {

inline dataset::CaptureRecord CaptureOf(std::uint32_t i,
                                        const std::string& title) {
  dataset::CaptureRecord r;
  r.ord = i;
  r.id[0] = static_cast<std::uint8_t>(i);
  r.source = "/home/somebody/" + title + ".mp4";
  r.title = title;
  r.licence = "BSD";
  r.frames = 100 * (i + 1);
  r.duration_s = static_cast<double>(r.frames) / 60.0;
  r.fps = 60;
  r.conditions = {{"weather", i % 2 == 0 ? "rain" : "sun"},
                  {"map", "m" + std::to_string(i)}};
  return r;
}

// Writes a dataset version of `titles.size()` captures, capture i of
// 100·(i + 1) frames, with one video track "cam"; no shards. Returns its id.
inline std::string WriteDataset(const std::string& dir,
                                const std::vector<std::string>& titles) {
  std::filesystem::create_directories(dir);
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < titles.size(); ++i)
    lengths.push_back(100 * (i + 1));
  const auto index = format::EncodeCaptureIndex(MakeIndex(lengths));
  WriteAll(dir + "/captures.pidx", {index.begin(), index.end()});
  auto writer = dataset::CatalogWriter::Create(dir + "/catalog.sqlite").value();
  for (std::uint32_t i = 0; i < titles.size(); ++i) {
    (void)writer->AddCapture(CaptureOf(i, titles[i]));
    (void)writer->AddTrack({.ord = i,
                            .capture = i,
                            .name = "cam",
                            .kind = "video",
                            .rows = lengths[i]});
    (void)writer->AddSpan({.capture = i,
                           .track = i,
                           .kind = "menu",
                           .begin_ns = 5,
                           .end_ns = 9,
                           .detector = "d"});
  }
  (void)writer->Finish();
  dataset::Manifest m;
  m.id = hash::Hex(
      dataset::ComputeDatasetId(m.schema, writer->CanonicalRows(), index, {}));
  for (const char* name : {"catalog.sqlite", "captures.pidx"}) {
    const std::string bytes = ReadAll(dir + "/" + name);
    m.files.push_back({name, bytes.size(), hash::Hex(hash::Sha256Of(bytes))});
  }
  WriteAll(dir + "/manifest.json", dataset::EncodeManifest(m).value());
  return m.id;
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_UNIT_DATASET_SMALL_DATASET_H_
