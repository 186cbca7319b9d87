#include "common/plan/cost.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/plan/decimal.h"
#include "common/status/status.h"

namespace penstock::plan {
namespace {

struct Name {
  std::string_view text;
  double CostInputs::*value;
};
constexpr std::array<Name, 6> kNames = {{{"decode", &CostInputs::decode},
                                         {"frames", &CostInputs::frames},
                                         {"pixels", &CostInputs::pixels},
                                         {"bytes", &CostInputs::bytes},
                                         {"events", &CostInputs::events},
                                         {"tokens", &CostInputs::tokens}}};
constexpr int kDepthMax = 32;
// Three operands wait at each depth at most.
constexpr std::size_t kStackMax = 3 * (kDepthMax + 1);
constexpr double kCostMax = 1125899906842624.0;  // 2^50

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return (c >= '0' && c <= '9') || c == '.'; }

absl::Status Bad(std::string_view text, std::size_t at, std::string found) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = absl::StrCat("character ", at + 1),
       .what = "not a cost formula",
       .found = found.empty() ? absl::StrCat("\"", std::string(text), "\"")
                              : std::move(found),
       .expected = "numbers, +, -, *, parentheses and decode, frames, pixels, "
                   "bytes, events, tokens"});
}

}  // namespace

// sum = product {(+|-) product}; product = atom {* atom}; atom = number | name |
// ( sum ).
class CostFormula::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<CostFormula> Parse() {
    PENSTOCK_RETURN_IF_ERROR(Sum(0));
    if (Peek() != '\0') return Unexpected();
    return std::move(out_);
  }

 private:
  char Peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  absl::Status Unexpected() {
    return Bad(text_, at_, at_ < text_.size()
                               ? absl::StrCat("\"", std::string(1, text_[at_]), "\"")
                               : "its end");
  }

  absl::Status Sum(int depth) {
    PENSTOCK_RETURN_IF_ERROR(Product(depth));
    for (char c = Peek(); c == '+' || c == '-'; c = Peek()) {
      ++at_;
      PENSTOCK_RETURN_IF_ERROR(Product(depth));
      out_.program_.push_back({c});
    }
    return absl::OkStatus();
  }

  absl::Status Product(int depth) {
    PENSTOCK_RETURN_IF_ERROR(Atom(depth));
    while (Peek() == '*') {
      ++at_;
      PENSTOCK_RETURN_IF_ERROR(Atom(depth));
      out_.program_.push_back({'*'});
    }
    return absl::OkStatus();
  }

  absl::Status Atom(int depth) {
    const char c = Peek();
    if (c == '(' && depth < kDepthMax) {
      ++at_;
      PENSTOCK_RETURN_IF_ERROR(Sum(depth + 1));
      if (Peek() != ')') return Unexpected();
      ++at_;
      return absl::OkStatus();
    }
    const bool letter = IsLetter(c);
    if (!letter && !IsDigit(c)) return Unexpected();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (letter ? IsLetter(text_[at_]) : IsDigit(text_[at_]))) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    return letter ? Variable(word, begin) : Number(word, begin);
  }

  absl::Status Variable(std::string_view word, std::size_t begin) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i].text != word) continue;
      out_.program_.push_back({'v', 0, static_cast<int>(i)});
      out_.uses_gops_ =
          out_.uses_gops_ || (word != "frames" && word != "pixels");
      return absl::OkStatus();
    }
    return Bad(text_, begin, absl::StrCat("\"", std::string(word), "\""));
  }

  absl::Status Number(std::string_view word, std::size_t begin) {
    const auto number = ParseDecimal(word);
    if (!number.ok()) return Bad(text_, begin, absl::StrCat("\"", std::string(word), "\""));
    out_.program_.push_back({'n', static_cast<double>(number->nanos) / 1e9});
    return absl::OkStatus();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  CostFormula out_;
};

absl::StatusOr<CostFormula> CostFormula::Parse(std::string_view text) {
  if (text.size() > kBytesMax) {
    return Bad("", kBytesMax, absl::StrCat(text.size(), " characters"));
  }
  return Parser(text).Parse();
}

std::uint64_t CostFormula::Of(const CostInputs& inputs) const {
  std::array<double, kStackMax> stack;
  std::size_t depth = 0;
  for (const Op& op : program_) {
    if (op.kind == 'n') {
      stack[depth++] = op.number;
      continue;
    }
    if (op.kind == 'v') {
      stack[depth++] = inputs.*kNames[static_cast<std::size_t>(op.name)].value;
      continue;
    }
    const double right = stack[--depth];
    double& left = stack[depth - 1];
    left = op.kind == '+' ? left + right : op.kind == '-' ? left - right : left * right;
  }
  // Products of large numbers may be infinite, their difference no number.
  const double cost = stack[0];
  if (!(cost > 0)) return 0;
  return static_cast<std::uint64_t>(std::min(cost, kCostMax));
}

std::span<const format::GopRow> GopsOf(const Sample& s,
                                       const format::CaptureIndexView& index) {
  const auto gops = index.GopsOf(index.tracks[s.track]);
  if (gops.empty()) return {};
  const std::uint64_t last = s.start_frame + std::uint64_t{s.frames - 1} * s.stride;
  const auto begins_after = [](std::uint64_t frame, const format::GopRow& g) {
    return frame < g.first_frame;
  };
  const auto begin =
      std::upper_bound(gops.begin() + 1, gops.end(), s.start_frame, begins_after) - 1;
  const auto end = std::upper_bound(begin + 1, gops.end(), last, begins_after);
  return {begin, end};
}

CostInputs FrameInputsOf(const Sample& s, const format::CaptureIndexView& index) {
  const format::TrackRow& track = index.tracks[s.track];
  CostInputs out;
  out.frames = s.frames;
  out.pixels = out.frames * static_cast<double>(track.width) * track.height;
  return out;
}

CostInputs CostInputsOf(const Sample& s, const format::CaptureIndexView& index) {
  const format::TrackRow& track = index.tracks[s.track];
  CostInputs out = FrameInputsOf(s, index);
  const auto held = GopsOf(s, index);
  if (held.empty()) return out;
  const format::GopRow &first = held.front(), &last = held.back();
  std::uint64_t bytes = 0;
  for (const format::GopRow& g : held) bytes += g.bytes;
  const auto all = index.GopsOf(track);
  if (&last != &all.back()) {
    out.decode = static_cast<double>((&last + 1)->cost_before - first.cost_before);
  } else {  // no row after the last: the formula of the import again
    const double blocks = static_cast<double>((track.width + 15ull) / 16) *
                          static_cast<double>((track.height + 15ull) / 16);
    out.decode = static_cast<double>(last.cost_before - first.cost_before) +
                 blocks * last.frame_count + last.bytes / 16;
  }
  out.bytes = static_cast<double>(bytes);
  out.events = static_cast<double>(last.events_before - first.events_before);
  out.tokens = static_cast<double>(last.tokens_before - first.tokens_before);
  return out;
}

}  // namespace penstock::plan
