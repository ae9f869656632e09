#pragma once

namespace cohort {

/// The first line of a program's main, use_fast_kernels(), is also where a copy of the program that
/// was started for another purpose than its main (the launcher of a run,
/// train/run/launcher_process.h) leaves the way of main. The room that starts such copies sets
/// `enter` before main begins; it returns where this process is not one of them.
void set_main_door(void (*enter)());

/// Whether main has come by the door: only then a copy of this program would, too.
bool main_has_door();

/// Called by use_fast_kernels().
void pass_main_door();

}  // namespace cohort
