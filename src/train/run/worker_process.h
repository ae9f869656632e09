#pragma once

#include "launch/processes.h"
#include "meet/rendezvous.h"
#include "train/worker.h"

namespace cohort::training {

/// The whole life of a process after fork(). Returns its exit code; what went wrong is on the cards
/// of its tasks.
///
///   1. malloc keeps large blocks, planted faults are set, cores and BLAS threads are chosen
///      (beside other launchers only after 3, since workers must first find out who shares their
///      host)
///   2. its card: pid and host; a heartbeat begins
///   3. connects to the store
///   4. takes its seat (launch/seat.h): one that is told of groups by the launcher; or, beside
///      other launchers, the only one there is, once all have found that they run the same job on
///      the same data
///   5. run_worker(): trains in one group after the other (train/worker.h)
///   6. its card: result, then `done`. Beside other launchers the result also goes to the chief's,
///      through the store
///
/// A server chooses no cores and threads; it connects, fills in its card and serves one group
/// (server/door/run_server.h) until its workers have left or the launcher forms another. In
/// in-graph replication one process has all tasks, a thread each, with engines and a store in
/// memory.
///
/// A process that fails says why on its card and ends at once, without tearing anything down; its
/// peers notice by the connections that break, its launcher by the end of the process.
int run_process(const WorkerRun& run, const launch::ProcessPlan& plan,
                const meet::Rendezvous& rendezvous);

}  // namespace cohort::training
