#ifndef PENSTOCK_COMMON_HASH_HASH_H_
#define PENSTOCK_COMMON_HASH_HASH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/types/ids.h"

namespace penstock::hash {

using Bytes = std::span<const std::uint8_t>;

// CRC-32C (Castagnoli), as in RFC 3720. `crc` continues an earlier value.
std::uint32_t Crc32c(Bytes data, std::uint32_t crc = 0);

std::uint64_t Xxh3_64(Bytes data);
Digest128 Xxh3_128(Bytes data);

// XXH3-64 over bytes that come in pieces.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  void Update(Bytes data);
  std::uint64_t Digest64() const;
  Digest128 Digest() const;  // XXH3-128 of the same bytes
  void Reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// SHA-256 over bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void Update(Bytes data);
  void Update(std::string_view text);
  Digest256 Finish();  // ends the stream; call once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest256 Sha256Of(Bytes data);
Digest256 Sha256Of(std::string_view text);

std::string Hex(Bytes data);
std::string Hex(const Digest256& digest);
std::string Hex(const Digest128& digest);  // 32 digits, high half first
// False when `text` is not exactly 2·out.size() hex digits.
bool ParseHex(std::string_view text, std::span<std::uint8_t> out);

inline Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace penstock::hash

#endif  // PENSTOCK_COMMON_HASH_HASH_H_
