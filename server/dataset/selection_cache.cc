#include "server/dataset/selection_cache.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "common/hash/hash.h"

namespace penstock::dataset {
namespace {

constexpr std::string_view kMagic = "PSSEL01\n";
constexpr std::size_t kAlign = 8;
constexpr std::size_t kSumBytes = sizeof(Digest128);
constexpr std::size_t kPartBytes = 4u << 20;  // mapped at a time while checking

// Values one after the other, each at a multiple of 8, zeros between.
class Writer {
 public:
  template <typename T>
  void Rows(std::span<const T> rows) {
    static_assert(std::has_unique_object_representations_v<T>, "no padding");
    Number(rows.size());
    Raw(rows.data(), rows.size_bytes());
  }
  void Number(std::uint64_t v) { Raw(&v, sizeof v); }
  void Text(std::string_view text) {
    Rows(std::span<const char>(text.data(), text.size()));
  }
  void Raw(const void* data, std::size_t bytes) {
    const auto* p = static_cast<const std::uint8_t*>(data);
    out_.insert(out_.end(), p, p + bytes);
    out_.resize((out_.size() + kAlign - 1) / kAlign * kAlign);
  }

  std::vector<std::uint8_t> Finish() {
    const Digest128 sum = hash::Xxh3_128(out_);
    Raw(&sum, sizeof sum);
    return std::move(out_);
  }

 private:
  std::vector<std::uint8_t> out_;
};

// Reads what Writer wrote; after the first length that does not fit all is
// empty and good() false.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : left_(bytes) {}

  template <typename T>
  std::span<const T> Rows() {
    const std::uint64_t count = Number();
    if (count > left_.size() / sizeof(T)) return Fail<T>();
    const auto raw = Take(count * sizeof(T));
    return {reinterpret_cast<const T*>(raw.data()),
            raw.empty() ? 0 : static_cast<std::size_t>(count)};
  }
  std::uint64_t Number() {
    std::uint64_t v = 0;
    Raw(&v, sizeof v);
    return v;
  }
  // Of things that take at least a number each.
  std::uint64_t Count() {
    const std::uint64_t count = Number();
    if (count > left_.size() / sizeof(count)) Fail<char>();
    return good_ ? count : 0;
  }
  std::string Text() {
    const auto text = Rows<char>();
    return {text.data(), text.size()};
  }
  void Raw(void* data, std::size_t bytes) {
    const auto raw = Take(bytes);
    if (!raw.empty()) std::memcpy(data, raw.data(), bytes);
  }

  bool good() const { return good_; }
  bool done() const { return good_ && left_.empty(); }

 private:
  template <typename T>
  std::span<const T> Fail() {
    good_ = false;
    left_ = {};
    return {};
  }
  std::span<const std::uint8_t> Take(std::size_t bytes) {
    const std::size_t padded = (bytes + kAlign - 1) / kAlign * kAlign;
    if (padded > left_.size()) return Fail<std::uint8_t>();
    const auto out = left_.first(bytes);
    left_ = left_.subspan(padded);
    return out;
  }

  std::span<const std::uint8_t> left_;
  bool good_ = true;
};

void Put(Writer& out, const plan::ViewRows& view) {
  out.Number(view.low);
  out.Number(view.high);
  out.Number(view.size);
  out.Rows(view.slots);
  out.Rows(view.pieces);
}

void Put(Writer& out, const plan::LineageRows& lineage) {
  out.Number(lineage.strata.size());
  for (const auto& stratum : lineage.strata) {
    out.Text(stratum.label);
    out.Number(stratum.pool.buckets.size());
    for (const auto& bucket : stratum.pool.buckets) {
      out.Number(bucket.shape);
      Put(out, bucket.view);
    }
  }
}

void Put(Writer& out, const CachedSource& source) {
  out.Text(source.name);
  out.Raw(source.selection.data(), source.selection.size());
  out.Rows(source.captures);
  out.Rows(source.tracks);
  out.Number(source.lineages.size());
  for (const auto& [view, lineage] : source.lineages) {
    out.Number(view);
    Put(out, lineage);
  }
}

plan::ViewRows GetView(Reader& in) {
  plan::ViewRows out{.low = in.Number(), .high = in.Number(), .size = in.Number()};
  out.slots = in.Rows<plan::ViewSlot>();
  out.pieces = in.Rows<plan::ViewPiece>();
  return out;
}

plan::LineageRows GetLineage(Reader& in) {
  plan::LineageRows out;
  for (std::uint64_t s = in.Count(); s > 0 && in.good(); --s) {
    auto& stratum = out.strata.emplace_back();
    stratum.label = in.Text();
    for (std::uint64_t b = in.Count(); b > 0 && in.good(); --b) {
      const auto shape = static_cast<std::uint32_t>(in.Number());
      stratum.pool.buckets.push_back({shape, GetView(in)});
    }
  }
  return out;
}

CachedSource GetSource(Reader& in) {
  CachedSource out;
  out.name = in.Text();
  in.Raw(out.selection.data(), out.selection.size());
  out.captures = in.Rows<std::uint32_t>();
  out.tracks = in.Rows<std::uint32_t>();
  for (std::uint64_t l = in.Count(); l > 0 && in.good(); --l) {
    const auto view = static_cast<std::uint32_t>(in.Number());
    out.lineages.emplace_back(view, GetLineage(in));
  }
  return out;
}

// The bytes between head and sum when both are right.
std::optional<std::span<const std::uint8_t>> BodyOf(const MappedFile& file,
                                                    const Digest256& key) {
  std::span<const std::uint8_t> bytes = file.bytes();
  const std::size_t head = kMagic.size() + key.size();
  if (bytes.size() < head + kSumBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0 ||
      std::memcmp(bytes.data() + kMagic.size(), key.data(), key.size()) != 0) {
    return std::nullopt;
  }
  Digest128 sum;
  std::memcpy(&sum, bytes.last(kSumBytes).data(), sizeof sum);
  bytes = bytes.first(bytes.size() - kSumBytes);
  hash::Xxh3Stream xxh3;
  for (std::size_t at = 0; at < bytes.size(); at += kPartBytes) {
    xxh3.Update(bytes.subspan(at, std::min(kPartBytes, bytes.size() - at)));
    file.Release();
  }
  if (xxh3.Digest() != sum) return std::nullopt;
  return bytes.subspan(head);
}

}  // namespace

std::vector<std::uint8_t> EncodeSelection(const Digest256& key,
                                          const CachedSelection& selection) {
  Writer out;
  out.Raw(kMagic.data(), kMagic.size());
  out.Raw(key.data(), key.size());
  out.Number(selection.notes.size());
  for (const std::string& note : selection.notes) out.Text(note);
  out.Number(selection.sources.size());
  for (const CachedSource& source : selection.sources) Put(out, source);
  return out.Finish();
}

std::optional<CachedSelection> ReadSelection(const std::string& path,
                                             const Digest256& key) {
  auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return std::nullopt;
  CachedSelection out;
  out.file = std::make_shared<const MappedFile>(*std::move(mapped));
  const auto body = BodyOf(*out.file, key);
  if (!body) return std::nullopt;
  Reader in(*body);
  for (std::uint64_t n = in.Count(); n > 0 && in.good(); --n) {
    out.notes.push_back(in.Text());
  }
  for (std::uint64_t s = in.Count(); s > 0 && in.good(); --s) {
    out.sources.push_back(GetSource(in));
    // Lengths lie between rows: the kernel maps what is around them as well.
    out.file->Release();
  }
  if (!in.done()) return std::nullopt;
  return out;
}

}  // namespace penstock::dataset
