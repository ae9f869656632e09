#include "launch/run_status.h"

#include <cohort/error.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"

namespace cohort::launch {

namespace fs = std::filesystem;

void RunStatus::write_tasks(const cluster::View& view, const std::vector<Task>& tasks) {
  if (run_dir_.empty()) return;
  auto list = nlohmann::ordered_json::array();
  for (const Task& task : tasks) {
    nlohmann::ordered_json entry{{"role", task.role}, {"number", task.number}, {"pid", task.pid}};
    entry["rank"] = task.rank ? nlohmann::ordered_json(*task.rank) : nullptr;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all{{"launcher", ::getpid()},
                                   {"group", view.generation},
                                   {"workers", view.world()},
                                   {"tasks", list}};
  try {
    write_file_atomically(run_dir_ / "tasks.json", all.dump(2), Sync::no);
  } catch (const Error& error) {
    log_warn("{}", error.what());
  }
}

void RunStatus::happened(const std::string& event, nlohmann::json details) {
  if (run_dir_.empty()) return;
  nlohmann::ordered_json line{{"seconds", seconds_since(start_)}, {"event", event}};
  for (const auto& [key, value] : details.items()) line[key] = value;
  const fs::path path = run_dir_ / "history.jsonl";
  try {
    const UniqueFd file = open_to_write(path, Existing::append);
    using Json = nlohmann::ordered_json;
    write_all(file.get(), line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", path);
  } catch (const Error& error) {
    log_warn("{}", error.what());
  }
}

}  // namespace cohort::launch
