#include "common/hash/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <cstring>

namespace penstock::hash {
namespace {

constexpr std::uint32_t kCrcPolynomial = 0x82F63B78;  // reflected Castagnoli

std::array<std::array<std::uint32_t, 256>, 8> MakeCrcTables() {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) ? kCrcPolynomial : 0);
    t[0][i] = c;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (int k = 1; k < 8; ++k) {
      t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xFF];
    }
  }
  return t;
}

std::uint32_t CrcPortable(const std::uint8_t* p, std::size_t n,
                          std::uint32_t c) {
  static const auto kTables = MakeCrcTables();
  while (n >= 8) {
    std::uint64_t w;
    std::memcpy(&w, p, 8);
    w ^= c;
    c = 0;
    for (int k = 0; k < 8; ++k) c ^= kTables[7 - k][(w >> (8 * k)) & 0xFF];
    p += 8;
    n -= 8;
  }
  while (n-- > 0) c = (c >> 8) ^ kTables[0][(c ^ *p++) & 0xFF];
  return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t CrcSse42(
    const std::uint8_t* p, std::size_t n, std::uint32_t c) {
  std::uint64_t c64 = c;
  while (n >= 8) {
    std::uint64_t w;
    std::memcpy(&w, p, 8);
    c64 = __builtin_ia32_crc32di(c64, w);
    p += 8;
    n -= 8;
  }
  c = static_cast<std::uint32_t>(c64);
  while (n-- > 0) c = __builtin_ia32_crc32qi(c, *p++);
  return c;
}
#endif

Digest128 FromXxh(XXH128_hash_t h) { return {h.high64, h.low64}; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::uint32_t Crc32c(Bytes data, std::uint32_t crc) {
  crc = ~crc;
#if defined(__x86_64__)
  static const bool kFast = __builtin_cpu_supports("sse4.2");
  if (kFast) return ~CrcSse42(data.data(), data.size(), crc);
#endif
  return ~CrcPortable(data.data(), data.size(), crc);
}

std::uint64_t Xxh3_64(Bytes data) {
  return XXH3_64bits(data.data(), data.size());
}

Digest128 Xxh3_128(Bytes data) {
  return FromXxh(XXH3_128bits(data.data(), data.size()));
}

struct Xxh3Stream::State {
  XXH3_state_t* x = XXH3_createState();
  ~State() { XXH3_freeState(x); }
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) { Reset(); }
Xxh3Stream::~Xxh3Stream() = default;
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;
// One state serves both widths: XXH3's 64 and 128 bit streams differ only in
// how they are finished.
void Xxh3Stream::Reset() { XXH3_128bits_reset(state_->x); }
void Xxh3Stream::Update(Bytes data) {
  XXH3_128bits_update(state_->x, data.data(), data.size());
}
std::uint64_t Xxh3Stream::Digest64() const {
  return XXH3_64bits_digest(state_->x);
}
Digest128 Xxh3Stream::Digest() const {
  return FromXxh(XXH3_128bits_digest(state_->x));
}

struct Sha256::State {
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(ctx); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->ctx, EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
void Sha256::Update(Bytes data) {
  EVP_DigestUpdate(state_->ctx, data.data(), data.size());
}
void Sha256::Update(std::string_view text) { Update(AsBytes(text)); }
Digest256 Sha256::Finish() {
  Digest256 out{};
  unsigned size = out.size();
  EVP_DigestFinal_ex(state_->ctx, out.data(), &size);
  return out;
}

Digest256 Sha256Of(Bytes data) {
  Sha256 h;
  h.Update(data);
  return h.Finish();
}
Digest256 Sha256Of(std::string_view text) { return Sha256Of(AsBytes(text)); }

std::string Hex(Bytes data) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(data.size() * 2);
  for (std::uint8_t b : data) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

std::string Hex(const Digest256& digest) { return Hex(Bytes(digest)); }

std::string Hex(const Digest128& digest) {
  std::array<std::uint8_t, 16> b;
  for (int i = 0; i < 8; ++i) {
    b[i] = static_cast<std::uint8_t>(digest.high >> (56 - 8 * i));
    b[8 + i] = static_cast<std::uint8_t>(digest.low >> (56 - 8 * i));
  }
  return Hex(Bytes(b));
}

bool ParseHex(std::string_view text, std::span<std::uint8_t> out) {
  if (text.size() != out.size() * 2) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    int hi = HexValue(text[2 * i]), lo = HexValue(text[2 * i + 1]);
    if (hi < 0 || lo < 0) return false;
    out[i] = static_cast<std::uint8_t>(hi << 4 | lo);
  }
  return true;
}

}  // namespace penstock::hash
