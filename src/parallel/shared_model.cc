#include "parallel/shared_model.h"

#include <map>
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
  fail(ErrorCode::invalid, "the ranks have different modules: rank 0 has {}, rank {} has {}",
       words(ours), rank, words(theirs));
}

/// By type, since one call takes tensors of one type.
std::map<torch::ScalarType, Tensors> by_type(const std::vector<NamedTensor>& tensors) {
  std::map<torch::ScalarType, Tensors> sorted;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.numel() > 0)
      sorted[named.tensor.scalar_type()].push_back(named.tensor.detach());
  }
  return sorted;
}

/// Calls `change` with contiguous tensors of the same values, which become those of the originals.
template <class Change>
void change_contiguous(const Tensors& originals, Change&& change) {
  const torch::NoGradGuard no_grad;
  Tensors given;
  for (const torch::Tensor& one : originals) given.push_back(one.contiguous());
  change(given);
  for (std::size_t i = 0; i < originals.size(); ++i) {
    if (!given[i].is_same(originals[i])) originals[i].copy_(given[i]);
  }
}

void average(const Group& group, Tensors& tensors, const Weights& weights) {
  if (weights.nobody) return;
  if (weights.equal) return group.all_reduce(tensors, Reduce::mean);
  const double own = weights.of_rank[static_cast<std::size_t>(group.rank())];
  for (torch::Tensor& one : tensors) own > 0 ? one.mul_(own) : one.zero_();
  group.all_reduce(tensors, Reduce::sum);
}

bool has_mean(torch::ScalarType type) {
  return type == torch::kFloat32 || type == torch::kFloat64 || type == torch::kBFloat16;
}

}  // namespace

void check_same_model(const Group& group, const std::vector<NamedTensor>& parameters,
                      const std::vector<NamedTensor>& buffers) {
  std::string own;
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
  for (const auto& [type, originals] : by_type(tensors)) {
    change_contiguous(originals, [&](Tensors& given) { group.broadcast(given, root); });
  }
}

void share_buffers(const Group& group, const std::vector<NamedTensor>& buffers,
                   DataParallelOptions::Buffers how, const Weights& weights) {
  if (how == DataParallelOptions::Buffers::leave) return;
  for (const auto& [type, originals] : by_type(buffers)) {
    change_contiguous(originals, [&](Tensors& given) {
      if (how == DataParallelOptions::Buffers::average && has_mean(type)) {
        average(group, given, weights);
      } else {
        group.broadcast(given, weights.lowest_active);
      }
    });
  }
}

}  // namespace cohort::parallel
