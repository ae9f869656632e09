// An OpenBLAS that does not know this CPU, by what it says: loaded before the real one
// (LD_PRELOAD), it claims to have taken the oldest core, unless it was asked for another.

#include <cstdlib>

extern "C" const char* openblas_get_corename() {
  const char* asked_for = std::getenv("OPENBLAS_CORETYPE");
  return asked_for == nullptr ? "Prescott" : asked_for;
}
