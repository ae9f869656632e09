#pragma once

#include <string>

#include "launch/control/cards.h"

namespace cohort::training {

/// What a worker of another launcher tells the chief at its end, as it travels through the store
/// (reports.h): its counts and times, and who it is.
std::string to_text(const launch::WorkerResult& result);

/// The same from a text that anybody may have written. Throws Error(corrupt) for one that is no
/// report, or has a number that no worker can have: counts are so bounded that the sum over all
/// workers has room.
launch::WorkerResult worker_result_from(const std::string& text);

}  // namespace cohort::training
