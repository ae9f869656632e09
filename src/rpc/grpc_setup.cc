#include "rpc/grpc_setup.h"

#include <grpc/support/log.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "frames.grpc.pb.h"

namespace cohort::rpc {
namespace {

void hold_callback_threads() {
  // A server that listens nowhere counts as a user of the threads. It is never ended: at the end of
  // a process there is no good moment for it. Marked as used because otherwise no pointer to it
  // would be kept, and leak checkers complain.
  [[gnu::used]] static const grpc::Server* const holder = [] {
    static auto* service = new rpc::Frames::CallbackService;
    grpc::ServerBuilder builder;
    builder.RegisterService(service);
    return builder.BuildAndStart().release();
  }();
}

}  // namespace

void prepare_grpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
  hold_callback_threads();
}

}  // namespace cohort::rpc

#if defined(__SANITIZE_THREAD__)
// gRPC's libraries are not built for ThreadSanitizer, which therefore sees none of the locks by
// which they hand memory from thread to thread, and calls every such handing over a race. Races
// between threads of ours are still reported. Here and not in a test, for all programs that use
// gRPC need it.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc\n"
         "race:libgpr\n"
         "race:libabsl\n"
         "race:libupb\n"
         "race:libprotobuf\n"
         "race:libstdc++\n"
         "thread:libgpr\n";
}

// Without it every byte that was handed over costs a search among all the others.
extern "C" const char* __tsan_default_options() {
  return "suppress_equal_addresses=0";
}
#endif
