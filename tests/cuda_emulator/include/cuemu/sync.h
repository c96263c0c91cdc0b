// SPDX-License-Identifier: Apache-2.0
// Where threads meet: barriers of a block, shuffles and votes of a warp; and what stops a kernel.
#pragma once
#include "cuemu/runtime.h"

#define threadIdx (cuemu_thread_index())
#define blockIdx (cuemu_block_index())
#define blockDim (cuemu_block_extent())
#define gridDim (cuemu_grid_extent())
#define warpSize 32

inline void __syncthreads(CUEMU_PLACE) { cuemu_block_meet(CUEMU_SYNC, 0, file_, line_); }
inline int __syncthreads_count(int p, CUEMU_PLACE) {
  return cuemu_block_meet(CUEMU_SYNC_COUNT, p != 0, file_, line_);
}
inline int __syncthreads_and(int p, CUEMU_PLACE) {
  return cuemu_block_meet(CUEMU_SYNC_AND, p != 0, file_, line_);
}
inline int __syncthreads_or(int p, CUEMU_PLACE) {
  return cuemu_block_meet(CUEMU_SYNC_OR, p != 0, file_, line_);
}

// Fences order nothing here: see "Limits" in the README.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

inline void __syncwarp(unsigned mask = 0xffffffffu, CUEMU_PLACE) {
  cuemu_warp_meet(CUEMU_SYNCWARP, mask, nullptr, nullptr, 0, 0, 0, file_, line_);
}

#define CUEMU_SHUFFLE_FUNCTION(NAME, KIND, ARGUMENT)                                              \
  template <class T>                                                                              \
  T NAME(unsigned mask, T value, ARGUMENT, int width = 32, CUEMU_PLACE) {                         \
    static_assert(std::is_arithmetic<T>::value || sizeof(T) == 2 || sizeof(T) == 4,               \
                  "shuffles move numbers of 1 to 8 bytes: move the parts of a struct");           \
    T result;                                                                                     \
    cuemu_warp_meet(KIND, mask, &value, &result, sizeof(T), (int)which, width, file_, line_);     \
    return result;                                                                                \
  }
CUEMU_SHUFFLE_FUNCTION(__shfl_sync, CUEMU_SHUFFLE, int which)
CUEMU_SHUFFLE_FUNCTION(__shfl_up_sync, CUEMU_SHUFFLE_UP, unsigned which)
CUEMU_SHUFFLE_FUNCTION(__shfl_down_sync, CUEMU_SHUFFLE_DOWN, unsigned which)
CUEMU_SHUFFLE_FUNCTION(__shfl_xor_sync, CUEMU_SHUFFLE_XOR, int which)
#undef CUEMU_SHUFFLE_FUNCTION

inline unsigned __ballot_sync(unsigned mask, int predicate, CUEMU_PLACE) {
  unsigned result;
  int p = predicate != 0;
  cuemu_warp_meet(CUEMU_BALLOT, mask, &p, &result, sizeof p, 0, 0, file_, line_);
  return result;
}
inline int __any_sync(unsigned mask, int p, CUEMU_PLACE) {
  return __ballot_sync(mask, p, file_, line_) != 0;
}
inline int __all_sync(unsigned mask, int p, CUEMU_PLACE) {
  return __ballot_sync(mask, !p, file_, line_) == 0;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, CUEMU_PLACE) {
  unsigned result;
  cuemu_warp_meet(CUEMU_MATCH, mask, &value, &result, sizeof(T), 0, 0, file_, line_);
  return result;
}

#define CUEMU_REDUCE_FUNCTION(NAME, KIND)                                                         \
  inline unsigned NAME(unsigned mask, unsigned value, CUEMU_PLACE) {                              \
    unsigned result;                                                                              \
    cuemu_warp_meet(CUEMU_REDUCE, mask, &value, &result, 4, KIND, 0, file_, line_);               \
    return result;                                                                                \
  }                                                                                               \
  inline int NAME(unsigned mask, int value, CUEMU_PLACE) {                                        \
    int result;                                                                                   \
    cuemu_warp_meet(CUEMU_REDUCE, mask, &value, &result, 4, KIND + CUEMU_SIGNED, 0, file_, line_); \
    return result;                                                                                \
  }
CUEMU_REDUCE_FUNCTION(__reduce_add_sync, CUEMU_ADD)
CUEMU_REDUCE_FUNCTION(__reduce_min_sync, CUEMU_MIN)
CUEMU_REDUCE_FUNCTION(__reduce_max_sync, CUEMU_MAX)
CUEMU_REDUCE_FUNCTION(__reduce_and_sync, CUEMU_AND)
CUEMU_REDUCE_FUNCTION(__reduce_or_sync, CUEMU_OR)
CUEMU_REDUCE_FUNCTION(__reduce_xor_sync, CUEMU_XOR)
#undef CUEMU_REDUCE_FUNCTION

inline unsigned __activemask(CUEMU_PLACE) {
  cuemu_trap("__activemask() tells what happens to run, not who takes part; compute the mask",
             file_, line_);
  return 0;
}
#define __trap() cuemu_trap("__trap()", __FILE__, __LINE__)
#undef assert
#define assert(x) ((x) ? (void)0 : cuemu_trap("assertion failed: " #x, __FILE__, __LINE__))
