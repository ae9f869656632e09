#pragma once

namespace cohort::os {

/// The place of a process among those of its host that share the cores.
struct LocalPlace {
  int local_rank = 0;
  int local_workers = 1;
};

/// Binds this process, and the threads it starts from now on, to its part of the cores it may use;
/// where there are more processes than cores, to none of them. Cores that do not divide evenly go to
/// the later ones.
void bind_to_share(const LocalPlace& place);

/// Whether somebody has bound this process already: it may use fewer cores than the machine has. (In
/// a container, too, which then has to be cut by who starts the processes.)
bool is_bound();

}  // namespace cohort::os
