#pragma once

#include <vector>

#include "kernel/fast_settings.h"

namespace cohort::kernel {

/// The first line of a program's main: use_fast_kernels() (cohort/kernels.h). In this order it
///
///   1. looks which variables the process lacks (fast_settings.h), and if there are any that were
///      not set for it before, starts the program anew with them, in the same process: main begins
///      again from its first line, and finds by the mark in the environment that this was done;
///   2. passes the main door, where a copy of the program that was started to do something else
///      than its main leaves the way of main (the launcher of a run, train/run/launcher_process.h).
///
/// Because of 1 what a program has in memory before that line is lost; because of 2 a program
/// without that line cannot be copied for another purpose, which main_has_door() tells.

/// Starts this program anew in the same process, with `settings` and their mark in its environment:
/// the same words, the same file, folder, standard input and output, and process id. Returns only
/// where that is not possible; then nothing has changed.
///
/// Call before anything is read from standard input and before there is work in threads, which end.
void run_again(const std::vector<Setting>& settings);

/// The room that starts copies of this program sets `enter` before main begins; it returns where
/// this process is not one of them. There is one door.
void set_main_door(void (*enter)());

/// Whether main has come by the door: only then a copy of this program would, too.
bool main_has_door();

/// Called by use_fast_kernels().
void pass_main_door();

}  // namespace cohort::kernel
