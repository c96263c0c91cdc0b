// SPDX-License-Identifier: Apache-2.0
// What house kernels use beyond the rest, and more faults: templates in many forms, complex numbers
// as a pair, kernels that are values, shared variables in functions.
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>

#include "brainevent/check.h"
#include "faults.cuh"

extern __shared__ __align__(16) unsigned char raw_shared[];  // outside all functions

namespace other {

template <class R>
struct Complex {
  R re, im;
};

// Shared variables of one name and type in two instances are two variables.
template <int N, class T>
__device__ T rotate(T x, int by) {
  __shared__ T kept[N];
  const int t = threadIdx.x;
  kept[t] = x;
  __syncthreads();
  const T result = kept[(t + by) % N];
  __syncthreads();
  return result;
}

// y[0] is the sum; parts of an element are added apart.
template <class R, int THREADS>
__global__ void complex_sum(const Complex<R>* x, Complex<R>* y, int n) {
  Complex<R> sum{};
  for (int i = threadIdx.x; i < n; i += THREADS) {
    sum.re += x[i].re;
    sum.im += x[i].im;
  }
  sum = rotate<THREADS>(rotate<THREADS>(sum, 1), 3);
  Complex<R>* kept = reinterpret_cast<Complex<R>*>(raw_shared);
  kept[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x < 2) {  // one thread for each part
    R total{};
    for (int k = 0; k < THREADS; k++) total += threadIdx.x ? kept[k].im : kept[k].re;
    R* part = threadIdx.x ? &y->im : &y->re;
    atomicAdd(part, total);
  }
}

template <class F>
__global__ void each(int* y, int n, F f) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = f(i);
}

// A kernel that is a value, and a launch over several lines in a macro.
#define OTHER_LAUNCH(KERNEL, ...) \
  KERNEL<<<                       \
      2,                          \
      32                          \
      >>>                         \
      (__VA_ARGS__)

inline void squares(int* y, int n, cudaStream_t stream) {
  const int factor = 1'000;
  auto square = [=] __device__(int i) { return i * i + factor; };
  auto kernel = &each<decltype(square)>;
  if (n > 64) {
    kernel<<<(n + 31) / 32, 32, 0, stream>>>(y, n, square);
  } else {
    OTHER_LAUNCH(kernel, y, n, square);
  }
}

__device__ int* leaked;

__global__ void __launch_bounds__(64) faulty(const float* x, int* y, Fault fault) {
  const int t = threadIdx.x;
  int own = t, zero = t - t;
  if (fault == divide_by_zero) own = 5 / zero;  // <- divide_by_zero
  if (fault == shift_too_far) own = 1 << (32 + zero);  // <- shift_too_far
  if (fault == float_too_large) own = (int)(x[t] * 1e30f);  // <- float_too_large
  if (fault == other_threads_local) {
    if (t == 0) leaked = &own;
    __syncthreads();
    if (t == 1) y[t] = *leaked;  // <- other_threads_local
    __syncthreads();
  }
  if (fault == lines_of_shuffles_differ) {
    if (t & 1)
      own = __shfl_sync(0xffffffffu, own, 0);
    else
      own = __shfl_sync(0xffffffffu, own, 0);  // <- lines_of_shuffles_differ
  }
  if (fault == check_in_kernel) BE_CHECK(t < 0) << "thread " << t;
  if (fault == too_much_static_shared) {
    __shared__ double much[48][129];
    much[0][t] = t;
    own = (int)much[0][t];
  }
  y[t] = own;
  if (fault == memcpy_too_long && t == 63)
    memcpy(y, x, (blockDim.x + 1 + zero) * sizeof(int));  // <- memcpy_too_long
}

__global__ void read(const int* from, int* y) {
  y[threadIdx.x] = from[threadIdx.x];  // <- host_pointer
}

inline void launch_faulty(const float* x, int* y, int n, Fault fault, cudaStream_t stream) {
  int on_the_stack[64] = {};
  if (fault == host_pointer) {
    read<<<1, n, 0, stream>>>(on_the_stack, y);
    return;
  }
  if (fault == copy_of_nothing)
    cudaMemcpyAsync(y, y + n / 2, n * 2, cudaMemcpyDeviceToDevice, stream);  // <- copy_of_nothing
  if (fault == copy_too_long)
    cudaMemcpyAsync(y, x, n * 8, cudaMemcpyDeviceToDevice, stream);  // <- copy_too_long
  if (fault == launcher_reads && x[0] > 2) return;  // <- launcher_reads
  const size_t bytes = fault == too_much_dynamic_shared ? 64 << 10 : 0;
  faulty<<<1, n, bytes, stream>>>(x, y, fault);  // <- too_much_dynamic_shared
}

}  // namespace other
