#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cohort::os {

/// What this process was started with and what it may use: its words, its environment, its cores,
/// its descriptors, and the output that it still holds back.

/// The words this process was started with, the program's name first. Throws Error(io) where /proc
/// cannot be read.
std::vector<std::string> command_line();

/// Returns a variable of the environment, or nullptr. Functions that read the environment take one,
/// so that tests can have an environment of their own; a program gives them std::getenv.
using GetVariable = std::function<const char*(const char* name)>;

/// The environment of this process, as exec() takes it ("NAME=VALUE"), but with `changed`, entries
/// of the same form, in place of its own variables of these names. An entry without "=" takes a
/// variable out.
std::vector<std::string> environment_with(const std::vector<std::string>& changed);

/// What this process has printed leaves its buffers: before a fork, or the child would print it
/// once more, and before _exit(), which forgets it. Other streams are left alone: fflush(nullptr)
/// would wait for a thread that reads from one, perhaps for ever.
void flush_output();

/// The processor cores this process may run on. Ask before binding it to some of them.
int usable_cores();

/// Lets this process, and those it starts from now on, open as many files as the system allows
/// them. (Soft limits are low for the sake of programs that use select(), which this one does not;
/// every worker watches each of its peers by a descriptor.) Returns how many that is; 0 where the
/// system does not say.
std::size_t raise_descriptor_limit();

}  // namespace cohort::os
