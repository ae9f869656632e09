#include "parallel/shared_model.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <string>

#include "base/fail.h"

namespace cohort::parallel {
namespace {

using Tensors = std::vector<torch::Tensor>;

std::string describe_tensor(const char* kind, const NamedTensor& named) {
  std::ostringstream text;
  text << kind << ' ' << named.name << " of " << torch::toString(named.tensor.scalar_type()) << ' '
       << named.tensor.sizes() << (named.tensor.requires_grad() ? "" : ", not trained");
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The first line in which two descriptions differ, or where one of them ends.
[[noreturn]] void fail_different(const std::string& first, const std::string& other, int rank) {
  const auto ours = lines_of(first);
  const auto theirs = lines_of(other);
  std::size_t line = 0;
  while (line < ours.size() && line < theirs.size() && ours[line] == theirs[line]) ++line;
  const auto words = [&](const std::vector<std::string>& lines) {
    return line < lines.size() ? lines[line] : std::string("nothing more");
  };
  fail(ErrorCode::invalid,
       "the ranks have different modules or options: rank 0 has {}, rank {} has {}", words(ours),
       rank, words(theirs));
}

const char* name_of(DataParallelOptions::Buffers how) {
  constexpr const char* kNames[] = {"averaged", "broadcast", "left alone"};
  return kNames[static_cast<std::size_t>(how)];
}

/// All that ranks must have in common: they would wait for each other in different calls.
std::string describe_options(const DataParallelOptions& options) {
  const CompressionOptions& how = options.compression;
  return fmt::format(
      "buffers {}, compression {} (ratio {}, rank {}, error feedback {}, momentum {}){}",
      name_of(options.buffers), how.kind, how.ratio, how.rank, how.error_feedback,
      how.momentum_correction, options.reducer ? ", a reducer of its own" : "");
}

/// The values of a tensor that may stand anywhere, as contiguous memory that goes back to it.
Tensors contiguous(const std::vector<NamedTensor>& tensors) {
  Tensors copies;
  for (const NamedTensor& one : tensors) copies.push_back(one.tensor.detach().contiguous());
  return copies;
}

void put_back(const std::vector<NamedTensor>& tensors, const Tensors& copies) {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const torch::Tensor values = tensors[i].tensor.detach();
    if (copies[i].data_ptr() != values.data_ptr()) torch::Tensor(values).copy_(copies[i]);
  }
}

/// Of any type: nothing is computed with them.
torch::Tensor bytes_of(const torch::Tensor& contiguous) {
  return torch::from_blob(
      contiguous.data_ptr(), {static_cast<std::int64_t>(contiguous.nbytes())},
      [contiguous](void*) {}, torch::kUInt8);
}

/// In float64, so that what is the same number on all ranks (a mask's 1) is that number afterwards.
void average(const Group& group, const std::vector<NamedTensor>& tensors, const Weights& weights) {
  if (weights.nobody || tensors.empty()) return;
  Tensors sums;
  for (const NamedTensor& one : tensors) {
    sums.push_back(one.tensor.detach().to(torch::kFloat64, false, /*copy=*/true).contiguous());
    if (weights.equal) continue;
    const double own = weights.of_rank[static_cast<std::size_t>(group.rank())];
    own > 0 ? sums.back().mul_(own) : sums.back().zero_();
  }
  group.all_reduce(sums, weights.equal ? Reduce::mean : Reduce::sum);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    torch::Tensor(tensors[i].tensor.detach()).copy_(sums[i]);
  }
}

bool has_mean(torch::ScalarType type) {
  return type == torch::kFloat32 || type == torch::kFloat64 || type == torch::kBFloat16;
}

}  // namespace

void check_same_model(const Group& group, const std::vector<NamedTensor>& parameters,
                      const std::vector<NamedTensor>& buffers, const DataParallelOptions& options) {
  std::string own = describe_options(options) + '\n';
  for (const NamedTensor& one : parameters) own += describe_tensor("parameter", one) + '\n';
  for (const NamedTensor& one : buffers) own += describe_tensor("buffer", one) + '\n';
  const auto all = group.all_gather(own);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) fail_different(all[0], all[rank], static_cast<int>(rank));
  }
}

std::vector<NamedTensor> each_once(std::vector<NamedTensor> tensors) {
  std::set<const void*> seen;
  std::erase_if(tensors, [&](const NamedTensor& named) {
    return !seen.insert(named.tensor.unsafeGetTensorImpl()).second;
  });
  return tensors;
}

void share_values(const Group& group, const std::vector<NamedTensor>& tensors, int root) {
  const torch::NoGradGuard no_grad;
  const Tensors copies = contiguous(tensors);
  Tensors bytes;
  for (const torch::Tensor& one : copies) {
    if (one.nbytes() > 0) bytes.push_back(bytes_of(one));
  }
  if (bytes.empty()) return;
  group.broadcast(bytes, root);
  put_back(tensors, copies);
}

void share_buffers(const Group& group, const std::vector<NamedTensor>& buffers,
                   DataParallelOptions::Buffers how, const Weights& weights) {
  if (how == DataParallelOptions::Buffers::leave) return;
  const torch::NoGradGuard no_grad;
  std::vector<NamedTensor> with_mean, others;
  for (const NamedTensor& one : buffers) {
    const bool is_averaged =
        how == DataParallelOptions::Buffers::average && has_mean(one.tensor.scalar_type());
    (is_averaged ? with_mean : others).push_back(one);
  }
  average(group, with_mean, weights);
  share_values(group, others, weights.lowest_active);
}

}  // namespace cohort::parallel
