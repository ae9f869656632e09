#pragma once

/// Compiles a function once per instruction set and picks the best one when the program loads, so
/// that a binary built anywhere uses AVX2 or AVX-512 where it runs. For plain loops over floats.
/// Sanitizers cannot run the code that picks, so there only one version is compiled.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define COHORT_VECTORIZE \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define COHORT_VECTORIZE
#endif
