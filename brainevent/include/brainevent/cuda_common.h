// SPDX-License-Identifier: Apache-2.0
// What CUDA kernels of sparse operators share: 16-bit numbers, sums over a warp, atomic sums, grids.
//
// The headers of 16-bit types double the time a small file takes to compile. A file that does not
// need them includes common.h only.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "brainevent/common.h"

// --- 16-bit numbers ----------------------------------------------------------------------------

#undef BE_FLOAT16_TYPE
#undef BE_BFLOAT16_TYPE
#undef BE_DISPATCH_FLOATING_AND_HALF
#define BE_FLOAT16_TYPE __half
#define BE_BFLOAT16_TYPE __nv_bfloat16
#define BE_DISPATCH_FLOATING_AND_HALF(DTYPE, T, ...)            \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_FLOATING_AND_HALF", DTYPE,   \
                      BE_CASES_FLOATING_(T, __VA_ARGS__) BE_CASES_HALF_(T, __VA_ARGS__))

namespace BE {

// What numbers are added up in: 16-bit ones in float, others in themselves.
template <class T> struct Accumulator { using type = T; };
template <> struct Accumulator<__half> { using type = float; };
template <> struct Accumulator<__nv_bfloat16> { using type = float; };
template <class T>
using accumulator_t = typename Accumulator<T>::type;

template <class T>
__device__ __forceinline__ accumulator_t<T> widen(T x) {
  if constexpr (std::is_same<T, __half>::value) {
    return __half2float(x);
  } else if constexpr (std::is_same<T, __nv_bfloat16>::value) {
    return __bfloat162float(x);
  } else {
    return x;
  }
}

template <class T>
__device__ __forceinline__ T narrow(accumulator_t<T> x) {
  if constexpr (std::is_same<T, __half>::value) {
    return __float2half(x);
  } else if constexpr (std::is_same<T, __nv_bfloat16>::value) {
    return __float2bfloat16(x);
  } else {
    return x;
  }
}

// The rule of every event operator: true, or a value above zero, is one event.
template <class T>
__device__ __forceinline__ bool is_active(T x) {
  return widen(x) > 0;
}

// --- warps -------------------------------------------------------------------------------------

constexpr unsigned full_warp = 0xffffffffu;

__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x & 31u); }

// The number of this warp among all of the launch, and how many there are. Blocks hold whole warps.
__device__ __forceinline__ int64_t warp_index() {
  return static_cast<int64_t>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5);
}
__device__ __forceinline__ int64_t warp_count() {
  return static_cast<int64_t>(gridDim.x) * (blockDim.x >> 5);
}

// The sum over the lanes of a warp; every lane gets it, and every lane must call.
template <class T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_xor_sync(full_warp, x, offset);
  return x;
}

// --- atomic sums -------------------------------------------------------------------------------

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
// bfloat16 has no atomic sum here: exchange the aligned word around it until nobody was faster.
__device__ __forceinline__ void atomic_add(__nv_bfloat16* place, __nv_bfloat16 x) {
  const auto address = reinterpret_cast<uintptr_t>(place);
  auto* word = reinterpret_cast<unsigned*>(address & ~static_cast<uintptr_t>(2));
  const unsigned shift = (address & 2) ? 16 : 0;
  unsigned seen = *word, assumed;
  do {
    assumed = seen;
    const auto bits = static_cast<unsigned short>(assumed >> shift);
    const float sum = __bfloat162float(__ushort_as_bfloat16(bits)) + __bfloat162float(x);
    const unsigned next = __bfloat16_as_ushort(__float2bfloat16(sum));
    seen = atomicCAS(word, assumed, (assumed & ~(0xffffu << shift)) | (next << shift));
  } while (seen != assumed);
}
#else
__device__ __forceinline__ void atomic_add(__nv_bfloat16* place, __nv_bfloat16 x) {
  atomicAdd(place, x);
}
#endif

// Whole numbers of 64 bits too: sums of signed and unsigned ones are the same bits.
template <class T>
__device__ __forceinline__ void atomic_add(T* place, T x) {
  if constexpr (std::is_integral<T>::value && sizeof(T) == 8) {
    atomicAdd(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(x));
  } else {
    atomicAdd(place, x);
  }
}

// --- launches ----------------------------------------------------------------------------------

// Blocks for n pieces of work, `per` to a block: at least one, which an empty launch needs, too.
inline unsigned blocks_for(int64_t n, int64_t per, int64_t most = 1 << 20) {
  const int64_t wanted = n / per + (n % per != 0);
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > most ? most : wanted);
}

// Clear a result that kernels add to. On the stream, so that a CUDA graph repeats it.
inline void clear(const Tensor& tensor, cudaStream_t stream) {
  if (tensor.nbytes() > 0)
    BE_CUDA_CHECK(cudaMemsetAsync(tensor.data(), 0, tensor.nbytes(), stream));
}

}  // namespace BE
