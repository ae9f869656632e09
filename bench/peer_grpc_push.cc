// A plain parameter server over gRPC's unary calls on unix sockets: workers push floats, which the
// server adds to its own, and pull them. Servers and workers are processes this program forks.
//   peer_grpc_push free|pinned WORKERS SERVERS BYTES:REPEATS...

#include <grpcpp/grpcpp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench/measured_process.h"
#include "bench/timing.h"
#include "push.grpc.pb.h"

namespace {

using cohort::bench::Floats;
using cohort::bench::PlainServer;

/// Who takes part, and where the servers' sockets are.
struct Group {
  bool pinned = false;
  int workers = 1;
  int servers = 1;
  std::string folder;
  std::vector<int> cores = cohort::bench::allowed_cores();

  std::string address(int server) const {
    return "unix:" + folder + "/server-" + std::to_string(server);
  }
};

/// A part of the parameters. One call does all: what is pushed is added, and where the caller wants
/// a reply it gets the parameters.
class Server : public PlainServer::Service {
 public:
  explicit Server(std::size_t count) : parameters_(count) {}

  grpc::Status Exchange(grpc::ServerContext*, const Floats* request, Floats* reply) override {
    const std::lock_guard lock(mutex_);
    const auto* pushed = reinterpret_cast<const float*>(request->data().data());
    const std::size_t count = request->data().size() / sizeof(float);
    if (count > parameters_.size()) return {grpc::StatusCode::INVALID_ARGUMENT, "too long"};
    for (std::size_t i = 0; i < count; ++i) parameters_[i] += pushed[i];
    if (request->want_reply()) {
      reply->set_data(parameters_.data(), parameters_.size() * sizeof(float));
    }
    return grpc::Status::OK;
  }

 private:
  std::mutex mutex_;
  std::vector<float> parameters_;
};

/// Serves until it is killed.
void serve(const Group& group, int server, std::size_t count) {
  if (group.pinned) cohort::bench::pin_to_core_of(group.workers + server, group.cores);
  Server service(count);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(group.address(server), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  builder.BuildAndStart()->Wait();
}

/// Talks to all servers, each of which has an equal part of the floats.
class Worker {
 public:
  Worker(const Group& group, std::size_t count) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    for (int server = 0; server < group.servers; ++server) {
      const auto channel = grpc::CreateCustomChannel(group.address(server),
                                                     grpc::InsecureChannelCredentials(), arguments);
      if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30))) {
        throw std::runtime_error("no connection to server " + std::to_string(server));
      }
      stubs_.push_back(PlainServer::NewStub(channel));
    }
    values_.assign(count, 1.0F);
    pulled_.resize(count);
  }

  /// All servers at the same time, each with its part of the floats.
  void exchange(bool push, bool pull) {
    struct Call {
      grpc::ClientContext context;
      Floats request, reply;
      grpc::Status status;
      std::unique_ptr<grpc::ClientAsyncResponseReader<Floats>> reader;
    };
    grpc::CompletionQueue queue;
    std::vector<Call> calls(stubs_.size());
    const std::size_t part = (values_.size() + stubs_.size() - 1) / stubs_.size();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::size_t begin = std::min(i * part, values_.size());
      const std::size_t count = std::min(part, values_.size() - begin);
      calls[i].context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      if (push) calls[i].request.set_data(values_.data() + begin, count * sizeof(float));
      calls[i].request.set_want_reply(pull);
      calls[i].reader = stubs_[i]->AsyncExchange(&calls[i].context, calls[i].request, &queue);
      calls[i].reader->Finish(&calls[i].reply, &calls[i].status, &calls[i]);
    }
    void* done = nullptr;
    bool good = false;
    for (std::size_t i = 0; i < calls.size(); ++i) queue.Next(&done, &good);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i].status.ok()) throw std::runtime_error(calls[i].status.error_message());
      const std::string& data = calls[i].reply.data();
      if (pull)
        std::memcpy(pulled_.data() + std::min(i * part, pulled_.size()), data.data(), data.size());
    }
  }

  float first() const { return pulled_[0]; }

 private:
  std::vector<std::unique_ptr<PlainServer::Stub>> stubs_;
  std::vector<float> values_;
  std::vector<float> pulled_;
};

/// The calls in the order of server_call_names(). Every worker makes them; the first one's times
/// count.
void time_calls(const Group& group, int rank, const cohort::bench::TimingPlan& plan,
                double* seconds) {
  if (group.pinned) cohort::bench::pin_to_core_of(rank, group.cores);
  Worker worker(group, plan.count);
  const bool pushes[] = {true, false, true};
  const bool pulls[] = {false, true, true};
  for (int call = 0; call < 3; ++call) {
    const double time = cohort::bench::seconds_per_call(
        plan.repeats, [&] { worker.exchange(pushes[call], pulls[call]); });
    if (rank == 0) seconds[call] = time;
  }
  if (worker.first() < 1) throw std::runtime_error("what was pushed did not come back");
}

template <class Body>
pid_t in_child(Body&& body) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  cohort::bench::die_with_parent();
  try {
    body();
    _exit(0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
}

/// One size: starts the servers, lets the workers make their calls, ends the servers. False where a
/// worker failed.
bool time_plan(const Group& group, const cohort::bench::TimingPlan& plan, double* seconds) {
  const std::size_t part = (plan.count + group.servers - 1) / group.servers;
  std::vector<pid_t> servers, workers;
  for (int server = 0; server < group.servers; ++server) {
    std::filesystem::remove(group.folder + "/server-" + std::to_string(server));
    const std::size_t begin = std::min(part * server, plan.count);
    servers.push_back(in_child([&] { serve(group, server, std::min(part, plan.count - begin)); }));
  }
  for (int worker = 0; worker < group.workers; ++worker) {
    workers.push_back(in_child([&] { time_calls(group, worker, plan, seconds); }));
  }
  bool good = true;
  for (const pid_t worker : workers) {
    int status = 0;
    waitpid(worker, &status, 0);
    good = good && status == 0;
  }
  for (const pid_t server : servers) {
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::string folder = std::filesystem::temp_directory_path() / "cohort-grpc-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  Group group;
  group.pinned = std::string(argv[1]) == "pinned";
  group.workers = std::atoi(argv[2]);
  group.servers = std::atoi(argv[3]);
  group.folder = folder;
  auto* seconds = static_cast<double*>(
      mmap(nullptr, 3 * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  cohort::bench::TimingLine line;
  bool good = true;
  for (const auto& plan : cohort::bench::parse_plans({argv + 4, argv + argc})) {
    good = good && time_plan(group, plan, seconds);
    for (std::size_t call = 0; call < 3; ++call) {
      cohort::bench::add_call(line, cohort::bench::server_call_names()[call], plan, seconds[call]);
    }
  }
  std::filesystem::remove_all(folder);
  if (good) line.print();
  return good ? 0 : 1;
}
