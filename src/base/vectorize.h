#pragma once

/// COHORT_VECTORIZE before a function compiles it once per instruction set and picks the best one
/// when the program loads, so that a binary built anywhere uses AVX2 or AVX-512 where it runs.
///
/// For plain loops over floats that the compiler can vectorise by itself:
/// - pointers are `float* __restrict`, or copies to locals: a store through one must not change
///   what another reads, as far as the compiler can see;
/// - no call to a function that is not inlined, since that one is compiled for the oldest CPU;
/// - a sum is kept in as many lanes as the code says, never as many as the CPU has, so that results
///   have the same bits everywhere. Where those bits matter the room also sets -ffp-contract=off:
///   a fused multiply-add rounds otherwise than two operations.
///
/// Sanitizers cannot run the code that picks, so there only one version is compiled; clang, which
/// the fuzzer is built by, does not know these names.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__clang__)
#define COHORT_VECTORIZE \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define COHORT_VECTORIZE
#endif
