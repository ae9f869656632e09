// A language model of characters that learns to add, by any number of ranks: an LSTM whose state goes in and
// comes out, a forward() of several inputs that returns a tuple, a loss of two terms, gradients that are
// clipped, a learning rate that falls, and batches that the ranks cannot share evenly.
//
//   cohort run -n 2 ./sequence sums.pt 300               # save where, steps

#include <cohort/cohort.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace nn = torch::nn;
using torch::Tensor;

constexpr std::int64_t kColumns =
    10;  // Places of the text that are read at once, by all ranks together.
constexpr std::int64_t kLength = 24;  // Characters that a step reads in each.
const std::string kCharacters = "0123456789+=;";

using State = std::tuple<Tensor, Tensor>;

struct Adder : nn::Module {
  Adder()
      : letters(register_module("letters", nn::Embedding(kCharacters.size(), 16))),
        places(register_module("places", nn::Embedding(8, 8))),
        lstm(register_module("lstm", nn::LSTM(24, 48))),
        output(register_module("output", nn::Linear(48, kCharacters.size()))) {}

  /// Scores of the next characters, the LSTM's outputs, and the state after them. `place` counts from the
  /// last semicolon.
  std::tuple<Tensor, Tensor, State> forward(const Tensor& text, const Tensor& place,
                                            const State& state) {
    const Tensor input = torch::cat({letters(text), places(place)}, 2);
    const auto [hidden, after] = lstm(input, state);
    return {output(hidden), hidden, after};
  }

  nn::Embedding letters, places;
  nn::LSTM lstm;
  nn::Linear output;
};

/// "3+4=7;6+6=12;…" as numbers of characters, in kColumns columns that are read downwards, and where in its
/// sum each stands.
std::pair<Tensor, Tensor> write_sums(std::int64_t rows) {
  std::vector<std::int64_t> text, places;
  std::uint32_t draw = 1;
  while (text.size() < static_cast<std::size_t>(rows * kColumns)) {
    draw = draw * 1664525 + 1013904223;
    const int one = static_cast<int>(draw >> 8) % 10, other = static_cast<int>(draw >> 16) % 10;
    const std::string sum =
        std::to_string(one) + "+" + std::to_string(other) + "=" + std::to_string(one + other) + ";";
    for (std::size_t i = 0; i < sum.size(); ++i) {
      text.push_back(static_cast<std::int64_t>(kCharacters.find(sum[i])));
      places.push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto in_columns = [&](const std::vector<std::int64_t>& all) {
    return torch::tensor(all)
        .narrow(0, 0, rows * kColumns)
        .reshape({kColumns, rows})
        .t()
        .contiguous();
  };
  return {in_columns(text), in_columns(places)};
}

void save(const std::string& file, Adder& net, torch::optim::Optimizer& optimizer,
          const State& state, std::int64_t steps) {
  torch::serialize::OutputArchive all, of_net, of_optimizer;
  net.save(of_net);
  optimizer.save(of_optimizer);
  all.write("net", of_net);
  all.write("optimizer", of_optimizer);
  all.write("hidden", std::get<0>(state));
  all.write("cell", std::get<1>(state));
  all.write("steps", torch::tensor(steps));
  all.save_to(file + ".part");
  std::filesystem::rename(file + ".part", file);
}

std::int64_t load(const std::string& file, Adder& net, torch::optim::Optimizer& optimizer,
                  State& state) {
  if (!std::filesystem::exists(file)) return 0;
  torch::serialize::InputArchive all, of_net, of_optimizer;
  Tensor steps;
  all.load_from(file);
  all.read("net", of_net);
  all.read("optimizer", of_optimizer);
  all.read("hidden", std::get<0>(state));
  all.read("cell", std::get<1>(state));
  all.read("steps", steps);
  net.load(of_net);
  optimizer.load(of_optimizer);
  return steps.item<std::int64_t>();
}

/// The states of all columns, from what every rank has of its own.
State joined(const cohort::Group& group, const State& own) {
  const auto all = [&](const Tensor& part) {
    return torch::cat(group.all_gather(part.detach().transpose(0, 1).contiguous()))
        .transpose(0, 1)
        .contiguous();
  };
  return {all(std::get<0>(own)), all(std::get<1>(own))};
}

int main(int argc, char** argv) {
  cohort::use_fast_kernels();
  const cohort::Group group = cohort::join();
  const std::string file = argc > 1 ? argv[1] : "sums.pt";
  const std::int64_t steps = argc > 2 ? std::atoi(argv[2]) : 300;

  // A rank's columns: with three ranks 4, 3 and 3.
  const std::int64_t from = group.rank() * kColumns / group.world();
  const std::int64_t columns = (group.rank() + 1) * kColumns / group.world() - from;
  const auto [text, places] = write_sums(kLength * 50 + 1);
  const auto part = [&](const Tensor& all, std::int64_t row) {
    return all.narrow(0, row, kLength).narrow(1, from, columns);
  };

  torch::manual_seed(7);
  Adder net;
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(5e-3));
  State state{torch::zeros({1, kColumns, 48}), torch::zeros({1, kColumns, 48})};
  const std::int64_t first = load(file, net, optimizer, state);
  state = {std::get<0>(state).narrow(1, from, columns).contiguous(),
           std::get<1>(state).narrow(1, from, columns).contiguous()};
  cohort::DataParallel parallel(group, net);

  for (std::int64_t step = first; step < steps; ++step) {
    for (auto& one : optimizer.param_groups())
      one.options().set_lr(5e-3 / (1 + 0.01 * static_cast<double>(step)));
    const std::int64_t row = step % 50 * kLength;
    const auto [scores, hidden, after] = net.forward(part(text, row), part(places, row), state);
    const Tensor next = part(text, row + 1);
    const Tensor loss = torch::cross_entropy_loss(scores.flatten(0, 1), next.flatten()) +
                        1e-3 * hidden.square().mean();
    optimizer.zero_grad();
    loss.backward();
    parallel.wait(columns);  // Ranks with more columns count more: the mean is that of all columns.
    const double norm = parallel.clip_grad_norm(0.5);
    optimizer.step();
    state = {std::get<0>(after).detach(), std::get<1>(after).detach()};

    if ((step + 1) % 20 != 0 && step + 1 != steps) continue;
    const State of_all = joined(group, state);  // All ranks call it.
    if (group.rank() != 0) continue;
    save(file, net, optimizer, of_all, step + 1);
    std::cout << "step " << step + 1 << " loss " << loss.item<double>() << " norm " << norm
              << std::endl;
  }
}
