#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tenon {

using Sha256Digest = std::array<uint8_t, 32>;

/// SHA-256 of data given in pieces. finish() may be called once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256& update(const void* data, size_t bytes);
  Sha256& update(const std::string& text) { return update(text.data(), text.size()); }
  Sha256Digest finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

Sha256Digest sha256(const void* data, size_t bytes);
/// RFC 2104: nobody without the key makes it.
Sha256Digest hmac_sha256(const std::string& key, const std::string& text);
/// 64 lower-case hexadecimal digits.
std::string hex(const Sha256Digest& digest);

}  // namespace tenon
