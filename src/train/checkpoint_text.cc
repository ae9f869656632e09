#include "train/checkpoint_text.h"

#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "base/fail.h"

namespace cohort {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

constexpr const char* kRandomness =
    "none to keep: every random number is a function of seed, epoch, step and row";

Json to_json(const WorkLeft& work) {
  Json again = Json::array();
  for (const Claim& claim : work.again) again.push_back({claim.step, claim.part});
  return {{"next", work.next}, {"parts", work.parts}, {"again", again}};
}

WorkLeft work_of(const Json& json) {
  WorkLeft work;
  json.at("next").get_to(work.next);
  json.at("parts").get_to(work.parts);
  for (const Json& claim : json.at("again")) {
    work.again.push_back({claim.at(0).get<std::int64_t>(), claim.at(1).get<int>()});
  }
  return work;
}

CheckpointText text_of(const Json& json) {
  CheckpointText text;
  json.at("step").get_to(text.step);
  json.at("epoch").get_to(text.cursor.epoch);
  json.at("offset").get_to(text.cursor.offset);
  text.work = work_of(json.at("work"));
  json.at("updates").get_to(text.updates);
  json.at("seed").get_to(text.seed);
  json.at("batch").get_to(text.batch);
  json.at("samples").get_to(text.samples);
  json.at("optimizer").get_to(text.optimizer);
  json.at("slots").get_to(text.slots);
  json.at("strategy").get_to(text.strategy);
  json.at("compression").get_to(text.compression);
  json.at("workers").get_to(text.workers);
  return text;
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

CheckpointText parse_checkpoint_text(const std::string& json, const std::filesystem::path& path) {
  const Json all = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const int format = all.is_object() ? all.value("format", 0) : 0;
  if (format > kFormat) {
    fail(ErrorCode::unsupported, "{} is of format {}; this version reads formats up to {}",
         path.string(), format, kFormat);
  }
  try {
    return text_of(all);
  } catch (const nlohmann::json::exception& wrong) {
    fail(ErrorCode::corrupt, "{} is no state of a training: {}", path.string(), wrong.what());
  }
}

}  // namespace cohort
