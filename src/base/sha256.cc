#include "base/sha256.h"

#include <fmt/format.h>
#define OPENSSL_SUPPRESS_DEPRECATED  // Of its plain SHA-256: what took its place takes locks.
#include <openssl/sha.h>

#include "base/files.h"

namespace cohort {

void Sha256::Free::operator()(SHA256state_st* context) const {
  delete context;
}

Sha256::Sha256() : context_(new SHA256_CTX) {
  SHA256_Init(context_.get());
}

void Sha256::add(std::span<const std::byte> bytes) {
  SHA256_Update(context_.get(), bytes.data(), bytes.size());
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest{};
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), context_.get());
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
