#include "train/state/checkpoint_text.h"

#include <torch/version.h>

#include <limits>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/json.h"

namespace cohort::training {
namespace {

using Json = nlohmann::ordered_json;
/// What is read: to find a key among many takes no time.
using ReadJson = nlohmann::json;

/// 1: what only one worker has is saved of the chief alone. 2: of all workers.
constexpr int kFormat = 2;
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

constexpr const char* kRandomness =
    "none to keep: every random number is a function of seed, epoch, step and row";

Json to_json(const cluster::WorkLeft& work) {
  Json again = Json::array();
  for (const cluster::Claim& claim : work.again) again.push_back({claim.step, claim.part});
  return {{"next", work.next}, {"parts", work.parts}, {"again", again}};
}

/// That was handed out before, of so many parts of a step.
cluster::Claim claim_of(const ReadJson& json, const cluster::WorkLeft& work) {
  const cluster::Claim claim{
      .step = integer_of(json.at(0), "again", 0, data::kMostSteps),
      .part = static_cast<int>(integer_of(json.at(1), "again", 0, work.parts - 1))};
  if (claim.step * work.parts + claim.part >= work.next) {
    fail(ErrorCode::corrupt, "part {} of step {} shall be done again and was never begun",
         claim.part, claim.step);
  }
  return claim;
}

cluster::WorkLeft work_of(const ReadJson& json) {
  cluster::WorkLeft work;
  work.parts = integer_at(json, "parts", 1, data::kMostParts);
  work.next = integer_at(json, "next", 0, data::kMostSteps * work.parts);
  std::set<std::pair<std::int64_t, int>> seen;
  for (const ReadJson& entry : json.at("again")) {
    const cluster::Claim claim = claim_of(entry, work);
    if (!seen.emplace(claim.step, claim.part).second) {
      fail(ErrorCode::corrupt, "part {} of step {} shall be done again twice", claim.part,
           claim.step);
    }
    work.again.push_back(claim);
  }
  return work;
}

std::uint64_t seed_of(const ReadJson& json) {
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  fail(ErrorCode::corrupt, "its \"seed\" is {}, not a whole number", excerpt(json.dump()));
}

CheckpointText text_of(const ReadJson& json) {
  CheckpointText text;
  text.step = integer_at(json, "step", 0, data::kMostSteps);
  text.cursor.epoch = integer_at(json, "epoch", 0, data::kMostSteps);
  text.work = work_of(json.at("work"));
  text.updates = integer_at(json, "updates", 0, data::kMostSteps * data::kMostParts);
  text.seed = seed_of(json.at("seed"));
  text.batch = integer_at(json, "batch", 1, kLargest);
  text.samples = integer_at(json, "samples", 1, kLargest);
  text.cursor.offset = integer_at(json, "offset", 0, text.samples);
  json.at("optimizer").get_to(text.optimizer);
  json.at("slots").get_to(text.slots);
  json.at("strategy").get_to(text.strategy);
  json.at("compression").get_to(text.compression);
  text.workers = integer_at(json, "workers", 1, data::kMostParts);
  return text;
}

/// What `read` returns; where it cannot, an error that names the file.
template <class Read>
auto checked(const std::filesystem::path& path, Read&& read) {
  try {
    return read();
  } catch (const Error& wrong) {
    if (wrong.code() != ErrorCode::corrupt) throw;
    throw wrong.with_context(path.string() + " is no state of a training");
  } catch (const nlohmann::json::exception& wrong) {
    fail(ErrorCode::corrupt, "{} is no state of a training: {}", path.string(), wrong.what());
  }
}

}  // namespace

std::string to_json(const CheckpointText& text) {
  return Json{{"format", kFormat},
              {"step", text.step},
              {"epoch", text.cursor.epoch},
              {"offset", text.cursor.offset},
              {"work", to_json(text.work)},
              {"updates", text.updates},
              {"seed", text.seed},
              {"random", kRandomness},
              {"batch", text.batch},
              {"samples", text.samples},
              {"optimizer", text.optimizer},
              {"slots", text.slots},
              {"strategy", text.strategy},
              {"compression", text.compression},
              {"workers", text.workers},
              {"versions", {{"cohort", COHORT_VERSION}, {"libtorch", TORCH_VERSION}}}}
             .dump(1) +
         "\n";
}

// A checkpoint may come from anywhere, so every number is bounded before it is used in arithmetic:
// steps, parts and their product have room in 64 bits, and a piece of work that is to be done again
// must have been handed out, once. An older format lacks parts of other workers and nothing else; a
// newer one is refused, since what it has more may be what matters.
CheckpointText parse_checkpoint_text(const std::string& json, const std::filesystem::path& path) {
  const Json all = parse_json<ReadJson>(json);
  return checked(path, [&] {
    const std::int64_t format = integer_at(all, "format", 1, kLargest);
    if (format > kFormat) {
      fail(ErrorCode::unsupported, "{} is of format {}; this version reads formats up to {}",
           path.string(), format, kFormat);
    }
    return text_of(all);
  });
}

std::string to_json(const WorkerText& text) {
  return Json{{"step", text.step}, {"updates", text.updates}, {"work", to_json(text.work)}}.dump();
}

WorkerText parse_worker_text(const std::string& json, const std::filesystem::path& path) {
  const Json all = parse_json<ReadJson>(json);
  return checked(path, [&] {
    WorkerText text;
    text.step = integer_at(all, "step", 0, data::kMostSteps);
    text.updates = integer_at(all, "updates", 0, data::kMostSteps * data::kMostParts);
    text.work = work_of(all.at("work"));
    return text;
  });
}

}  // namespace cohort::training
