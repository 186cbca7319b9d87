#include <filesystem>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "loadtest/measure/bench.h"
#include "server/dataset/dataset.h"
#include "server/dataset/shard_reader.h"
#include "server/decode/video_decoder.h"

namespace penstock::loadtest {
namespace {

// Frames/s of decoding one capture from its shard, GOP after GOP, one thread,
// no hash and no transform.
absl::StatusOr<double> DecodeCapture(const dataset::Dataset& dataset,
                                     std::uint32_t capture) {
  const auto& index = dataset.index();
  const auto& track = index.tracks[index.captures[capture].first_track];
  const double begin = NowSeconds();
  PENSTOCK_ASSIGN_OR_RETURN(const std::string path, dataset.ShardPath(0));
  PENSTOCK_ASSIGN_OR_RETURN(auto shard, dataset::ShardReader::Open(path));
  std::unique_ptr<decode::VideoDecoder> decoder;
  std::uint64_t frames = 0;
  for (const auto& gop : index.GopsOf(track)) {
    if (!decoder) {
      PENSTOCK_ASSIGN_OR_RETURN(
          decoder,
          decode::VideoDecoder::Create(shard->footer().codecs[gop.codec]));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const auto bytes,
                              shard->Read(gop.offset, gop.bytes));
    PENSTOCK_ASSIGN_OR_RETURN(
        const auto blocks, dataset::ParseBlocks(bytes, gop.offset, path));
    auto sink = [&](const decode::Picture&) { ++frames; };
    std::uint32_t ordinal = 0;
    for (const auto& block : blocks) {
      for (const auto& row : block.Packets()) {
        PENSTOCK_RETURN_IF_ERROR(decoder->Decode(
            ordinal++, block.payload.subspan(row.offset, row.bytes), sink));
      }
    }
    PENSTOCK_RETURN_IF_ERROR(decoder->Drain(sink));
    decoder->Reset();
  }
  return static_cast<double>(frames) / (NowSeconds() - begin);
}

absl::StatusOr<double> Ffmpeg(const std::string& video, std::uint64_t frames) {
  const double begin = NowSeconds();
  PENSTOCK_RETURN_IF_ERROR(
      Shell(absl::StrFormat("ffmpeg -nostdin -v error -threads 1 -i %s -map "
                            "0:v:0 -f null - 2>/dev/null",
                            video))
          .status());
  return static_cast<double>(frames) / (NowSeconds() - begin);
}

}  // namespace

absl::StatusOr<std::vector<Ratio>> MeasureDecode(const Bench& bench) {
  PENSTOCK_ASSIGN_OR_RETURN(auto dataset, dataset::Dataset::Open(bench.dataset));
  std::vector<Ratio> out;
  for (std::uint32_t c = 0; c < dataset->index().captures.size(); ++c) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto record, dataset->Capture(c));
    PENSTOCK_ASSIGN_OR_RETURN(
        Ratio r,
        RunPairs(absl::StrFormat("decode / ffmpeg -threads 1, %s %dx%d",
                                 record.title, record.width, record.height),
                 "frames/s", bench.pairs, 0.95, true,
                 [&] { return DecodeCapture(*dataset, c); },
                 [&] { return Ffmpeg(record.source, record.frames); }));
    out.push_back(r);
  }
  return out;
}

}  // namespace penstock::loadtest
