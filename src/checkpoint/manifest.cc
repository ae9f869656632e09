#include "checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <span>

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/failpoint.h"
#include "base/files.h"
#include "base/json.h"

namespace cohort::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "cohort-checkpoint";
constexpr int kVersion = 1;

/// No manifest of ours comes near it.
constexpr std::uint64_t kMostBytes = 1 << 20;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// A piece of a file: small enough to stay in a core's own cache between its checksum and its
/// reading or writing.
constexpr std::size_t kPieceBytes = 256 << 10;

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
  constexpr std::string_view kNotInNames("/\0", 2);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kNotInNames) == std::string::npos;
}

/// The other way.
std::uint32_t checksum_of(const std::string& text) {
  std::uint32_t checksum = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, wrong] = std::from_chars(text.data(), end, checksum, 16);
  if (wrong != std::errc() || stopped != end) {
    fail(ErrorCode::corrupt, "\"{}\" is no checksum", excerpt(text));
  }
  return checksum;
}

Manifest manifest_of(const Json& json) {
  Manifest manifest;
  manifest.step = integer_at(json, "step", 0, kLargest);
  for (const Json& file : json.at("files")) {
    Manifest::File& entry = manifest.files.emplace_back();
    file.at("name").get_to(entry.name);
    entry.size = static_cast<std::uint64_t>(integer_at(file, "size", 0, kLargest));
    entry.crc32c = checksum_of(file.at("crc32c").get<std::string>());
  }
  return manifest;
}

InputFile open_part(const std::filesystem::path& path) {
  try {
    return InputFile(path, Links::refuse);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found) throw;
    fail(ErrorCode::not_found, "{} is missing", path.string());
  }
}

/// Adds up by taking away, which cannot overflow whatever sizes a manifest claims.
void check_total(const Manifest& manifest, std::uint64_t most, const std::filesystem::path& path) {
  std::uint64_t left = most;
  for (const Manifest::File& file : manifest.files) {
    if (file.size > left) {
      fail(ErrorCode::corrupt, "{} names files of more than {} bytes, which this job cannot use",
           path.string(), most);
    }
    left -= file.size;
  }
}

/// Reads all of a file and compares it with what was written. Its size comes first: it costs
/// nothing, and bounds what is read.
void verify_file(const std::filesystem::path& path, const Manifest::File& written,
                 std::span<std::byte> buffer) {
  InputFile file = open_part(path);
  std::uint64_t size = file.size();
  std::uint32_t checksum = 0;
  if (size == written.size) {
    for (size = 0; size < written.size;) {
      const auto piece = buffer.first(std::min<std::size_t>(buffer.size(), written.size - size));
      const std::size_t got = file.read(piece);
      checksum = crc32c(piece.first(got), checksum);
      size += got;
      if (got < piece.size()) break;
    }
  }
  if (size != written.size) {
    fail(ErrorCode::corrupt, "{} has {} bytes instead of {}", path.string(), size, written.size);
  }
  if (checksum != written.crc32c) {
    fail(ErrorCode::corrupt, "{} has the checksum {} instead of {}", path.string(), hex(checksum),
         hex(written.crc32c));
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
    manifest = manifest_of(parse_json<Json>(text));
  } catch (const std::exception& wrong) {
    fail(ErrorCode::corrupt, "{} is no manifest: {}", path.string(), wrong.what());
  }
  std::set<std::string_view> names;
  for (const Manifest::File& file : manifest.files) {
    if (!names.insert(file.name).second) {
      fail(ErrorCode::corrupt, "{} names the file \"{}\" twice", path.string(), excerpt(file.name));
    }
    if (!is_plain_name(file.name)) {
      fail(ErrorCode::corrupt, "{} names a file outside its folder: \"{}\"", path.string(),
           excerpt(file.name));
    }
  }
  // There is one right text for every content, so a single wrong bit shows.
  if (to_text(manifest) != text) {
    fail(ErrorCode::corrupt, "{} does not match its own checksum", path.string());
  }
  return manifest;
}

Manifest verify_files(const std::filesystem::path& folder, std::uint64_t most,
                      const WantedFiles& wanted) {
  const std::filesystem::path path = folder / kManifestName;
  Manifest manifest = parse_manifest(read_file(path, Links::refuse, kMostBytes), path);
  if (wanted) {
    std::erase_if(manifest.files, [&](const Manifest::File& file) { return !wanted(file.name); });
  }
  check_total(manifest, most, path);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes);
  for (const Manifest::File& file : manifest.files) {
    verify_file(folder / file.name, file, {buffer.get(), kPieceBytes});
  }
  return manifest;
}

CheckedFile::CheckedFile(const std::filesystem::path& folder, const std::string& name)
    : path_(folder / name),
      fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) {
  if (!fd_) fail_errno("cannot create " + path_.string());
  written_.name = name;
}

void CheckedFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    written_.crc32c = crc32c(std::as_bytes(std::span(piece)), written_.crc32c);
    written_.size += piece.size();
    write_all(fd_.get(), piece, path_);
    failpoint("checkpoint.write");
  }
}

bool CheckedFile::is_gone() const {
  struct stat now {};
  return ::fstat(fd_.get(), &now) != 0 || now.st_nlink == 0;
}

void CheckedFile::sync() {
  failpoint("checkpoint.sync");
  if (::fsync(fd_.get()) != 0) fail_errno("cannot sync " + path_.string());
}

}  // namespace cohort::checkpoint
