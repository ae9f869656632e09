#include "train/worker_report.h"

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace cohort {
namespace {

std::string key_of(int rank) {
  return "report/" + std::to_string(rank);
}

}  // namespace

void send_report(Store& store, int rank, const WorkerResult& result) {
  store.set(key_of(rank), nlohmann::json{{"steps", result.steps},
                                         {"bytes_sent", result.bytes_sent},
                                         {"bytes_received", result.bytes_received},
                                         {"phase_seconds", result.phase_seconds},
                                         {"pid", result.pid},
                                         {"peak_rss_bytes", result.peak_rss_bytes},
                                         {"host", result.host.data()}}
                              .dump());
}

void collect_reports(Store& store, ControlBlock& control, Deadline deadline) {
  for (int rank = 1; rank < static_cast<int>(control.slots().size()); ++rank) {
    try {
      const auto report = nlohmann::json::parse(store.get(key_of(rank), deadline));
      WorkerSlot& slot = control.slot(rank);
      report.at("steps").get_to(slot.result.steps);
      report.at("bytes_sent").get_to(slot.result.bytes_sent);
      report.at("bytes_received").get_to(slot.result.bytes_received);
      report.at("phase_seconds").get_to(slot.result.phase_seconds);
      report.at("pid").get_to(slot.result.pid);
      report.at("peak_rss_bytes").get_to(slot.result.peak_rss_bytes);
      put_text(slot.result.host, report.at("host").get<std::string>());
      slot.state.store(WorkerState::done);
    } catch (const std::exception& error) {
      log_warn("rank {} did not report its result: {}", rank, error.what());
    }
  }
}

}  // namespace cohort
