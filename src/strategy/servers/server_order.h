#pragma once

#include <span>
#include <vector>

#include "tensor/flat_space.h"

namespace cohort {

/// Where the floats of a TrainingState (parameters, or one slot) stand on servers. Where gradients
/// are pushed servers keep the tables apart; all other floats, the *dense* ones, stand close
/// together. Tensors are found by name. Padding becomes zero wherever something is copied to.
class ServerOrder {
 public:
  ServerOrder(Model& model, Tables place);

  std::size_t floats() const { return floats_; }  ///< Of a TrainingState's parameters.
  std::size_t dense() const { return dense_floats_; }
  std::size_t tables() const { return tables_.size(); }
  std::size_t table(std::size_t index) const { return tables_[index].count; }

  // From a TrainingState's floats, and to them.
  void take_dense(std::span<const float> state, std::span<float> dense) const;
  void take_table(std::size_t index, std::span<const float> state, std::span<float> table) const;
  void put_dense(std::span<const float> dense, std::span<float> state) const;
  void put_table(std::size_t index, std::span<const float> table, std::span<float> state) const;

 private:
  struct Piece {
    std::size_t in_state = 0;
    std::size_t on_server = 0;
    std::size_t count = 0;
    std::size_t padding = 0;  ///< Behind it in the state, and behind dense ones on the server.
  };

  std::size_t floats_ = 0;
  std::size_t dense_floats_ = 0;
  std::vector<Piece> dense_;
  std::vector<Piece> tables_;
};

}  // namespace cohort
