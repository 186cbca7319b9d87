#ifndef PENSTOCK_TESTS_UNIT_PLAN_GOLDEN_INDEX_H_
#define PENSTOCK_TESTS_UNIT_PLAN_GOLDEN_INDEX_H_

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/plan/small_world.h"

namespace penstock::test {

// A file of tests/golden/plan.
inline nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream in(PENSTOCK_SOURCE_DIR "/tests/golden/plan/" + name);
  return nlohmann::json::parse(in);
}

// The capture index that its "index" describes.
inline format::CaptureIndexRows IndexOf(const nlohmann::json& golden) {
  std::vector<TrackShape> tracks;
  for (const auto& t : golden.at("index")) {
    TrackShape s;
    s.rate_num = t.at("rate")[0];
    s.rate_den = t.at("rate")[1];
    s.constant = t.at("constant");
    s.rows = t.at("rows");
    s.runs = t.at("runs").get<decltype(s.runs)>();
    s.gops = t.at("gops").get<decltype(s.gops)>();
    if (t.contains("size")) {
      s.width = t.at("size")[0];
      s.height = t.at("size")[1];
      s.rotation = t.at("rotation");
      s.events = t.at("events").get<decltype(s.events)>();
    }
    tracks.push_back(s);
  }
  return MakeIndex(tracks);
}

inline std::vector<plan::SelectedCapture> Selected(const nlohmann::json& captures) {
  std::vector<plan::SelectedCapture> out;
  for (const std::uint32_t c : captures) out.push_back({c, c});
  return out;
}

// One input for each list of captures, without labels.
inline std::vector<plan::SourceInput> InputsOf(const format::CaptureIndexRows& rows,
                                               const nlohmann::json& captures) {
  std::vector<plan::SourceInput> out;
  for (const auto& of_source : captures) {
    plan::SourceInput& input = out.emplace_back();
    input.index = format::ViewOf(rows);
    input.captures = Selected(of_source);
  }
  return out;
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_UNIT_PLAN_GOLDEN_INDEX_H_
