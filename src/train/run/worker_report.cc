#include "train/run/worker_report.h"

#include "base/json_text.h"
#include "base/log.h"

namespace cohort {
namespace {

std::string key_of(int rank) {
  return "report/" + std::to_string(rank);
}

}  // namespace

void send_report(Store& store, int rank, const WorkerResult& result) {
  store.set(key_of(rank), nlohmann::json{{"steps", result.steps},
                                         {"samples", result.samples},
                                         {"samples_per_second", result.samples_per_second},
                                         {"own_steps", result.own_steps},
                                         {"step_seconds", result.step_seconds},
                                         {"bytes_sent", result.bytes_sent},
                                         {"bytes_received", result.bytes_received},
                                         {"phase_seconds", result.phase_seconds},
                                         {"pid", result.task.pid},
                                         {"peak_rss_bytes", result.task.peak_rss_bytes},
                                         {"host", result.task.host.data()}}
                              .dump());
}

void collect_reports(Store& store, ControlBlock& control, Deadline deadline) {
  for (int rank = 1; rank < static_cast<int>(control.slots().size()); ++rank) {
    try {
      const auto report = parse_json(store.get(key_of(rank), deadline));
      WorkerSlot& slot = control.slot(rank);
      report.at("steps").get_to(slot.result.steps);
      report.at("samples").get_to(slot.result.samples);
      report.at("samples_per_second").get_to(slot.result.samples_per_second);
      report.at("own_steps").get_to(slot.result.own_steps);
      report.at("step_seconds").get_to(slot.result.step_seconds);
      report.at("bytes_sent").get_to(slot.result.bytes_sent);
      report.at("bytes_received").get_to(slot.result.bytes_received);
      report.at("phase_seconds").get_to(slot.result.phase_seconds);
      report.at("pid").get_to(slot.result.task.pid);
      report.at("peak_rss_bytes").get_to(slot.result.task.peak_rss_bytes);
      put_text(slot.result.task.host, report.at("host").get<std::string>());
      slot.state.store(WorkerState::done);
    } catch (const std::exception& error) {
      log_warn("rank {} did not report its result: {}", rank, error.what());
    }
  }
}

}  // namespace cohort
