#include "checkpoint/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/files.h"

namespace cohort {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "cohort-checkpoint";
constexpr int kVersion = 1;

/// Small enough to stay in a core's own cache between its reading and its checksum.
constexpr std::size_t kReadBytes = 256 << 10;

std::string hex(std::uint32_t checksum) {
  return fmt::format("{:08x}", checksum);
}

Json json_without_checksum(const Manifest& manifest) {
  Json files = Json::array();
  for (const Manifest::File& file : manifest.files) {
    files.push_back({{"name", file.name}, {"size", file.size}, {"crc32c", hex(file.crc32c)}});
  }
  return {{"format", kFormat}, {"version", kVersion}, {"step", manifest.step}, {"files", files}};
}

/// A name that leads to nowhere but the manifest's own folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

Manifest manifest_of(const Json& json) {
  Manifest manifest;
  json.at("step").get_to(manifest.step);
  for (const Json& file : json.at("files")) {
    Manifest::File& entry = manifest.files.emplace_back();
    file.at("name").get_to(entry.name);
    file.at("size").get_to(entry.size);
    entry.crc32c =
        static_cast<std::uint32_t>(std::stoul(file.at("crc32c").get<std::string>(), nullptr, 16));
  }
  return manifest;
}

UniqueFd open_to_read(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && errno == ENOENT) fail(ErrorCode::not_found, "{} is missing", path.string());
  if (!fd) fail_errno("cannot open " + path.string());
  return fd;
}

/// What a file holds now, to be compared with what was written.
Manifest::File measure(const std::filesystem::path& folder, const std::string& name,
                       std::span<char> buffer) {
  const std::filesystem::path path = folder / name;
  const UniqueFd fd = open_to_read(path);
  Manifest::File found{.name = name};
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("cannot read " + path.string());
    if (got == 0) return found;
    const auto bytes = buffer.first(static_cast<std::size_t>(got));
    found.crc32c = crc32c(std::as_bytes(bytes), found.crc32c);
    found.size += bytes.size();
  }
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  Json json = json_without_checksum(manifest);
  const std::string text = json.dump();
  json["crc32c"] = hex(crc32c(std::as_bytes(std::span(text))));
  return json.dump(1) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::filesystem::path& path) {
  Manifest manifest;
  try {
    manifest = manifest_of(Json::parse(text));
  } catch (const std::exception& wrong) {
    fail(ErrorCode::corrupt, "{} is no manifest: {}", path.string(), wrong.what());
  }
  for (const Manifest::File& file : manifest.files) {
    if (!is_plain_name(file.name)) {
      fail(ErrorCode::corrupt, "{} names a file outside its folder: \"{}\"", path.string(),
           file.name);
    }
  }
  // There is one right text for every content, so a single wrong bit shows.
  if (to_text(manifest) != text) {
    fail(ErrorCode::corrupt, "{} does not match its own checksum", path.string());
  }
  return manifest;
}

Manifest verify_files(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestName;
  const Manifest manifest = parse_manifest(read_file(path), path);
  const auto buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
  for (const Manifest::File& file : manifest.files) {
    const Manifest::File found = measure(folder, file.name, {buffer.get(), kReadBytes});
    if (found.size != file.size) {
      fail(ErrorCode::corrupt, "{} has {} bytes instead of {}", (folder / file.name).string(),
           found.size, file.size);
    }
    if (found.crc32c != file.crc32c) {
      fail(ErrorCode::corrupt, "{} has the checksum {} instead of {}",
           (folder / file.name).string(), hex(found.crc32c), hex(file.crc32c));
    }
  }
  return manifest;
}

}  // namespace cohort
