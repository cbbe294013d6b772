#include "core/sha256.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/error.h"

namespace tenon {

void Sha256::Free::operator()(void* context) const { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context)); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(context_.get()), EVP_sha256(), nullptr) != 1)
    throw Error("SHA-256 is not available in this machine's libcrypto", "Check the installation of OpenSSL.");
}
Sha256::~Sha256() = default;

Sha256& Sha256::update(const void* data, size_t bytes) {
  if (bytes) EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), data, bytes);
  return *this;
}

Sha256Digest Sha256::finish() {
  Sha256Digest out{};
  EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(context_.get()), out.data(), nullptr);
  return out;
}

Sha256Digest sha256(const void* data, size_t bytes) { return Sha256().update(data, bytes).finish(); }

Sha256Digest hmac_sha256(const std::string& key, const std::string& text) {
  Sha256Digest out{};
  unsigned int n = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
            text.size(), out.data(), &n))
    throw Error("SHA-256 is not available in this machine's libcrypto", "Check the installation of OpenSSL.");
  return out;
}

std::string hex(const Sha256Digest& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string s;
  for (uint8_t b : digest) {
    s += digits[b >> 4];
    s += digits[b & 15];
  }
  return s;
}

}  // namespace tenon
