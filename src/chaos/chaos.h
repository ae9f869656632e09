#pragma once

#include "chaos/chaos_options.h"

namespace cohort::chaos {

/// Trainings under faults, and the proof that nothing is lost by them.
///
/// The words. A *session* is what one `cohort chaos` does. It consists of *rounds*: one round is
/// one training of the job with one strategy, during which up to three *events* happen. An event is
/// one fault done to one task, the *victim* (to two tasks, where the fault says so). Strategies
/// take turns, and which event comes when follows from the seed alone.
///
///   choose_strategies()                      which ways of training are tested
///     run_quietly()       once per strategy  a training without faults, to compare with
///     FaultSchedule       once per round     who suffers what, and when
///     run_round()         once per round     trains, does it, watches, checks
///     report_text(), report_json()           what happened, and all violations
///
/// Every training is a process of its own (`cohort train`), so that nothing here can help it to
/// survive, and it is judged only by what a user can see as well: files of its folder, its exit
/// code, and what is left of it on the machine. Whatever does not hold is a *violation*, a
/// sentence:
///
///   when              what must hold                                                   where
///   after an event    a later step is made or the run ends well; nothing hangs; the    round.cc
///                     history names the victim and the true cause, and a task that
///                     was only slow is not taken for dead; what a checkpoint has
///                     saved is not done again, and no checkpoint vanishes
///   at the end        exit code 0; no loss that no event explains; every planted        round.cc
///                     fault has happened; no process, port, socket or memory is left
///   beside the quiet  the same status and steps; samples, step lines, servers' counts,  checks.h
///   run               movement, parameters and accuracy as the strategy promises them

/// Runs a session. Prints what happens and a report, which is also in chaos.json of the folder;
/// that file is written anew after every round, so it also tells of a session that was interrupted.
/// Returns the exit code: 1 where there was a violation. Throws Error for options that make no
/// sense and where the job does not even train when it is left alone. Call it from a program
/// without other children: it adopts and ends all processes that its trainings leave behind.
int run_chaos(const ChaosOptions& options);

/// What kills cost: one SIGKILL of a random worker per minute, for `minutes`, with each strategy,
/// and how many steps per second are made, compared with a run that is left alone. The two take
/// turns of a second, so that both have the same share of a machine whose speed varies. Prints it,
/// and writes goodput.json into the folder. Returns the exit code: 1 where a run did not survive.
int run_goodput(const ChaosOptions& options);

}  // namespace cohort::chaos
