#include "strategy/allreduce/model_record.h"

#include <algorithm>

namespace cohort {
namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kPage = 4096;

}  // namespace

std::size_t ModelRecord::bytes_needed(std::size_t buffers) {
  static_assert(sizeof(Header) <= kHeaderBytes);
  return (kHeaderBytes + buffers * sizeof(float) + kPage - 1) / kPage * kPage;
}

ModelRecord::ModelRecord(std::span<std::byte> memory, std::size_t buffers)
    : header_(reinterpret_cast<Header*>(memory.data())),
      buffers_(reinterpret_cast<float*>(memory.data() + kHeaderBytes), buffers) {}

void ModelRecord::begin(std::int64_t group) {
  header_->changed_by.store(group + 1, std::memory_order_seq_cst);
}

bool ModelRecord::is_changed_by(std::int64_t group) const {
  return !holds() && header_->changed_by.load(std::memory_order_acquire) == group + 1;
}

bool ModelRecord::holds() const {
  return header_->written_of.load(std::memory_order_acquire) ==
         header_->changed_by.load(std::memory_order_acquire);
}

void ModelRecord::write(const ModelAge& age, std::span<const float> buffers) {
  header_->age = age;
  std::ranges::copy(buffers, buffers_.begin());
  // Last: a record that is half written does not hold.
  header_->written_of.exchange(header_->changed_by.load(std::memory_order_acquire),
                               std::memory_order_acq_rel);
}

ModelAge ModelRecord::age() const {
  return header_->age;
}

}  // namespace cohort
