#include "kernel/main_door.h"

#include <atomic>

namespace cohort {
namespace {

constinit std::atomic<void (*)()> door = nullptr;
constinit std::atomic<bool> passed = false;

}  // namespace

void set_main_door(void (*enter)()) {
  door = enter;
}

bool main_has_door() {
  return passed;
}

void pass_main_door() {
  if (auto* enter = door.load()) enter();
  passed = true;
}

}  // namespace cohort
