// Users' tensors: their sizes, what is refused of them, and several made one.

#include "group/array.h"

#include "group/group_test_support.h"

namespace cohort::group {
namespace {

TEST(Array, HasAsManyBytesAsItsShapeSays) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(bytes_of(ElementType::f64, Shape{}), 8u);
  EXPECT_EQ(bytes_of(ElementType::bf16, Shape{3, 5}), 30u);
  EXPECT_EQ(bytes_of(ElementType::u8, Shape{3, 0, 5}), 0u);
  EXPECT_EQ(bytes_of(ElementType::f32, Shape{std::int64_t{1} << 62, 0}), 0u);
  EXPECT_THROW(bytes_of(ElementType::f32, Shape{std::int64_t{1} << 62}), Error);
  EXPECT_THROW(bytes_of(ElementType::u8, Shape{std::int64_t{1} << 32, std::int64_t{1} << 31}),
               Error);
  EXPECT_THROW(bytes_of(ElementType::f32, Shape{2, -1}), Error);
}

TEST(Array, IsPackedBehindOthersAndComesBack) {
  std::vector<std::byte> packed;
  const std::vector<Array> arrays = {floats(3, 1), floats(0, 1), floats(2, 7)};
  const auto all = pack(arrays, packed);
  EXPECT_EQ(all.size(), 20u);
  for (float& value : std::span(reinterpret_cast<float*>(all.data()), 5)) value += 1;
  unpack(all, arrays);
  EXPECT_TRUE(same(arrays[0], floats(3, 2)));
  EXPECT_TRUE(same(arrays[2], floats(2, 8)));
  EXPECT_EQ(pack({arrays.data(), 1}, packed).size(), 12u) << "the memory is kept";
  EXPECT_EQ(packed.size(), 20u);
}

}  // namespace
}  // namespace cohort::group
