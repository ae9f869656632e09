#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/fail.h"
#include "base/files.h"

namespace cohort {
namespace {

/// Of the calls of OpenSSL, which say 1 where they did what they were asked for.
void check_digest(int done) {
  if (done != 1) fail(ErrorCode::unsupported, "OpenSSL cannot compute SHA-256 here");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  check_digest(context_ != nullptr ? 1 : 0);
  check_digest(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::add(std::span<const std::byte> bytes) {
  check_digest(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest{};
  check_digest(
      EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

Sha256Digest sha256_of_file(const std::filesystem::path& path) {
  InputFile file(path);
  Sha256 hash;
  std::array<std::byte, 1 << 16> block;
  while (const std::size_t got = file.read(block)) hash.add(std::span(block).first(got));
  return hash.finish();
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace cohort
