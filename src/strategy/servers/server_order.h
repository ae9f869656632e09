#pragma once

#include <span>
#include <vector>

#include "server/client/server_client.h"
#include "tensor/flat_space.h"

namespace cohort::strategy {

/// Where the floats of a TrainingState (parameters, or one slot) stand on servers. Where gradients
/// are pushed servers keep the tables apart; all other floats, the *dense* ones, stand close
/// together. Tensors are found by name. Padding becomes zero wherever something is copied to.
///
///   state     [ first . | table 0 . | second . | table 1 . ]      . is padding
///   servers   dense [ first . | second . ]   tables [ table 0 ] [ table 1 ]
class ServerOrder {
 public:
  ServerOrder(Model& model, tensor::Tables place);

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

constexpr int kParameters = -1;  ///< Instead of the number of a slot.

/// The parameters or a slot of a TrainingState as the servers keep it.
void to_servers(const ServerOrder& order, std::span<const float> state, server::ServerModel& model,
                int slot);

/// The same back. What it came from may have changed places with `state`.
void from_servers(const ServerOrder& order, server::ServerModel& model, int slot,
                  std::vector<float>& state);

/// Floats between two tensors are nobody's, and are zero; but on servers to which messages go whose
/// codec knows no zero (sign) they are not, and the next messages depend on them. Of the
/// parameters, then of each slot. put_padding() leaves everything as it is where the number of
/// floats is not that of the layout.
std::vector<double> padding_of(const tensor::FlatLayout& layout,
                               const server::ServerModel::Part& dense);
void put_padding(const tensor::FlatLayout& layout, std::span<const double> padding,
                 server::ServerModel::Part& dense);

}  // namespace cohort::strategy
