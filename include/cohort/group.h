#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort {

namespace group {
class Pending;
}
namespace parallel {
struct GroupAccess;
}

/// How the elements of all ranks become one. Sums and products of whole numbers wrap around; of bool,
/// sum and max are "or", product and min are "and". Only floating types have a mean.
enum class Reduce { sum, mean, min, max, product };

/// Asks a call of Group to return at once: `group.all_reduce(tensor, cohort::async)`.
struct Async {};
inline constexpr Async async{};

/// A call that goes on while the program does something else. Its tensors are not to be touched
/// before wait() has returned; it keeps them alive, and the group. A copy is the same call. A Work that
/// is dropped without wait() goes on: a collective lets go of its tensors when it is done, a message
/// when its group ends, and what is not done by then is broken off.
class [[nodiscard]] Work {
 public:
  /// Returns when the call is done. Throws Error like the call itself.
  void wait();
  /// The same, but throws Error(timeout) where it is not done by then. A collective goes on all the
  /// same, and may be waited for again; of a message nobody knows how much has moved: it has failed,
  /// and its group is over.
  void wait(std::chrono::milliseconds at_most);

 private:
  friend class Group;
  struct State;
  explicit Work(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// The processes that train together, as one of them sees it, and what they can do together with
/// tensors. Ranks count from 0. A copy is the same group; it ends with the last copy.
///
///   cohort::Group group = cohort::join();
///   group.all_reduce(loss, cohort::Reduce::mean);
///
/// All ranks make the same calls in the same order. Every call is compared, a collective before
/// anything moves: where ranks call different things, or with other types or shapes, all of them get
/// the same Error(invalid), which names ranks and calls; a rank that has died or left is an
/// Error(peer_lost) that names it. Nobody waits for ever (JoinOptions::timeout_seconds). After such an
/// Error the group is over, and every later call throws the same. A call that is wrong by itself (a tensor on another
/// device, a rank that is none) throws Error(invalid) on its rank before anybody hears of it.
///
/// Tensors are on the CPU, of float32, float64, bfloat16, int32, int64, uint8 or bool. Those that a
/// call changes must be contiguous; those that it only reads are copied where they are not. Results
/// are the same bits on all ranks and in every run: what is combined is combined in a fixed order, in
/// shared memory that of the ranks. Autograd does not see any of it. One thread at a time may use a
/// group and those split from it.
class Group {
 public:
  int rank() const;
  int world() const;  ///< How many ranks there are.
  /// This rank's place among those of its host, and how many these are.
  int local_rank() const;
  int local_world() const;
  int hosts() const;            ///< On how many hosts the ranks are.
  int host_of(int rank) const;  ///< Which of them, counted in the order of their first ranks.
  /// How its ranks reach each other: "shm", "gloo", … ; "alone" for one rank.
  const std::string& engine() const;

  void barrier() const;

  /// Replaces the tensors by their reduction over the ranks. A list is one call.
  void all_reduce(const torch::Tensor& tensor, Reduce how = Reduce::sum) const;
  void all_reduce(const std::vector<torch::Tensor>& tensors, Reduce how = Reduce::sum) const;
  Work all_reduce(const torch::Tensor& tensor, Reduce how, Async) const;
  Work all_reduce(const torch::Tensor& tensor, Async) const;
  Work all_reduce(const std::vector<torch::Tensor>& tensors, Reduce how, Async) const;
  Work all_reduce(const std::vector<torch::Tensor>& tensors, Async) const;

  /// Replaces the tensors of all ranks by those of `root`.
  void broadcast(const torch::Tensor& tensor, int root = 0) const;
  void broadcast(const std::vector<torch::Tensor>& tensors, int root = 0) const;
  Work broadcast(const torch::Tensor& tensor, int root, Async) const;
  Work broadcast(const std::vector<torch::Tensor>& tensors, int root, Async) const;

  /// What every rank gives, by rank. The first dimensions may differ.
  std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) const;

  /// The first dimension is cut into world() equal parts; rank r gets the reduction of everybody's
  /// part r.
  torch::Tensor reduce_scatter(const torch::Tensor& tensor, Reduce how = Reduce::sum) const;

  /// The first dimension is cut into world() equal parts; part r goes to rank r, and part r of the
  /// result comes from there.
  torch::Tensor all_to_all(const torch::Tensor& tensor) const;

  /// A message to another rank, which calls recv() with a tensor of the same type and shape. send()
  /// returns when it has been received. The content travels along with the call: where types or shapes
  /// turn out to differ, the receiver's tensor may have been written to.
  void send(const torch::Tensor& tensor, int peer) const;
  void recv(const torch::Tensor& tensor, int peer) const;
  Work send(const torch::Tensor& tensor, int peer, Async) const;
  Work recv(const torch::Tensor& tensor, int peer, Async) const;

  /// Bytes of any length: the root's (what others give does not matter), or everybody's by rank.
  std::string broadcast(const std::string& bytes, int root = 0) const;
  std::vector<std::string> all_gather(const std::string& bytes) const;

  /// A tensor, not set to anything, whose reductions need no copies where all ranks are on one host: it lies in
  /// memory that all of them can read. All ranks call it, with the same sizes.
  torch::Tensor empty(torch::IntArrayRef sizes, torch::ScalarType type = torch::kFloat32) const;

  /// Groups of some of the ranks: those that give the same color become one, in the order of their
  /// keys, and of their ranks where these are equal. All ranks call split(), or split_without_me(). A
  /// part may outlive the whole: the processes over which the ranks meet (that of rank 0, and of the
  /// first rank of every host) stay at the end of their last group until the ranks they serve have
  /// ended theirs, unless something went wrong.
  Group split(int color, int key = 0) const;
  void split_without_me() const;

 private:
  friend struct parallel::GroupAccess;
  struct State;
  explicit Group(std::shared_ptr<State> state);
  Work started(std::shared_ptr<group::Pending> pending) const;

  std::shared_ptr<State> state_;
};

struct JoinOptions {
  /// auto, shm, gloo, shm+gloo: docs/strategies.md says what each needs.
  std::string engine = "auto";
  /// For how long a call waits for ranks that live but do not come.
  double timeout_seconds = 600;
  /// Threads that this rank computes with. 0: OMP_NUM_THREADS, or as many as its share has cores.
  int threads = 0;
  /// Binds the rank to its share of the host's cores: those that it may use, divided among the ranks
  /// that may use the same.
  bool pin = true;
  /// Has malloc keep large blocks instead of giving them back to the system, and share one arena among
  /// all threads: LibTorch programs gain up to a third by that.
  bool keep_memory = true;
  /// What goes between hosts is not encrypted. Without this, or COHORT_INSECURE=1, a group of
  /// several hosts is refused.
  bool insecure = false;
};

/// The group of all processes that were started together: by `cohort run`, torchrun, mpirun, srun, or
/// by hand with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. A program that was started alone gets
/// a group of one, in which no call waits, and none copies but into a tensor that it returns.
///
/// Call it once, after use_fast_kernels() and before the program computes: it gives this rank its
/// cores, threads and memory. An
/// Error of Cohort that nobody catches then ends the program with one sentence and the exit code that
/// launchers understand (138: a peer was lost, trying again may help) instead of an abort.
Group join(const JoinOptions& options = {});

}  // namespace cohort
