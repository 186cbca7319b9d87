#ifndef PENSTOCK_COMMON_FORMAT_BYTES_H_
#define PENSTOCK_COMMON_FORMAT_BYTES_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace penstock::format {

// Appends little-endian values. Variable-size fields carry a u32 length.
class ByteWriter {
 public:
  template <typename T>
  void Put(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* p = reinterpret_cast<const std::uint8_t*>(&v);
    out_.insert(out_.end(), p, p + sizeof(T));
  }
  void PutBytes(std::span<const std::uint8_t> b) {
    out_.insert(out_.end(), b.begin(), b.end());
  }
  void PutSized(std::span<const std::uint8_t> b) {
    Put(static_cast<std::uint32_t>(b.size()));
    PutBytes(b);
  }
  void PutString(std::string_view s) {
    PutSized({reinterpret_cast<const std::uint8_t*>(s.data()), s.size()});
  }
  void PadTo(std::size_t alignment) {
    out_.resize((out_.size() + alignment - 1) / alignment * alignment, 0);
  }
  std::size_t size() const { return out_.size(); }
  std::vector<std::uint8_t> Take() { return std::move(out_); }

 private:
  std::vector<std::uint8_t> out_;
};

// Reads what ByteWriter wrote, from hostile bytes: a read past the end clears
// ok() and gives zeros or empty values; callers check ok() before use.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> in) : in_(in) {}

  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T v{};
    if (auto b = GetBytes(sizeof(T)); b.size() == sizeof(T)) {
      std::memcpy(&v, b.data(), sizeof(T));
    }
    return v;
  }
  std::span<const std::uint8_t> GetBytes(std::size_t n) {
    if (n > in_.size() - at_) {
      ok_ = false;
      return {};
    }
    auto b = in_.subspan(at_, n);
    at_ += n;
    return b;
  }
  std::span<const std::uint8_t> GetSized() {
    return GetBytes(Get<std::uint32_t>());
  }
  std::string GetString() {
    auto b = GetSized();
    return std::string(reinterpret_cast<const char*>(b.data()), b.size());
  }
  // A count of items that take at least `item_bytes` each; too many for what
  // is left is an error, so that nothing is allocated for a lie.
  std::uint32_t GetCount(std::size_t item_bytes) {
    auto n = Get<std::uint32_t>();
    if (n > (in_.size() - at_) / item_bytes) {
      ok_ = false;
      return 0;
    }
    return n;
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return in_.size() - at_; }

 private:
  std::span<const std::uint8_t> in_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace penstock::format

#endif  // PENSTOCK_COMMON_FORMAT_BYTES_H_
