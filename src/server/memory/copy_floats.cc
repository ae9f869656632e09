#include "server/memory/copy_floats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace cohort::server {

#if defined(__x86_64__)
/// Streaming stores want 16-byte alignment; floats elsewhere are copied the plain way. They may
/// become visible late and out of order, which the fence at the end mends.
void copy_past_cache(std::span<const float> from, std::span<float> to) {
  constexpr std::size_t kAtOnce = 4;
  std::size_t done = 0;
  if (reinterpret_cast<std::uintptr_t>(to.data()) % sizeof(__m128) == 0) {
    for (; done + kAtOnce <= from.size(); done += kAtOnce) {
      _mm_stream_ps(to.data() + done, _mm_loadu_ps(from.data() + done));
    }
  }
  std::ranges::copy(from.subspan(done), to.subspan(done).begin());
  _mm_sfence();
}
#else
void copy_past_cache(std::span<const float> from, std::span<float> to) {
  std::ranges::copy(from, to.begin());
}
#endif

}  // namespace cohort::server
