// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits: stored as such, added up in float32. Apart, because their headers take longer
// to compile than most kernels.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "numbers.cuh"

namespace be {

template <>
struct Number<__half> {
  using Sum = float;
};
template <>
struct Number<__nv_bfloat16> {
  using Sum = float;
};
template <>
struct Holds<__half> {
  static bool test(BE::DType t) { return t == BE::DType::Float16; }
};
template <>
struct Holds<__nv_bfloat16> {
  static bool test(BE::DType t) { return t == BE::DType::BFloat16; }
};

template <>
__device__ __forceinline__ float widen(__half x) {
  return __half2float(x);
}
template <>
__device__ __forceinline__ float widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

}  // namespace be
