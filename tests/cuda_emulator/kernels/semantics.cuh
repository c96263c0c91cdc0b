// SPDX-License-Identifier: Apache-2.0
// Small kernels that pin down what CUDA's words mean.
#pragma once
#include <cuda_runtime.h>
#include <stdint.h>

#include "faults.cuh"

namespace semantics {

__constant__ const int kTable[4] = {3, 1, 4, 1};

// Every operation of a warp once; with 40 threads the second warp is a partial one.
__global__ void warp_operations(const int* x, int* y, int n) {
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const unsigned all = warp == 0 ? 0xffffffffu : (1u << (n - 32)) - 1u;
  const int v = x[t];
  int k = 0;
  auto put = [&](int result) { y[(k++) * n + t] = result; };
  put(__shfl_sync(all, v, 3));
  put(__shfl_up_sync(all, v, 2));
  put(__shfl_down_sync(all, v, 2, 8));  // within eights
  put(warp == 0 ? __shfl_xor_sync(all, v, 5) : v);
  put((int)__ballot_sync(all, v & 1));
  put(__any_sync(all, v > 37));
  put(__all_sync(all, v >= 0));
  put((int)__match_any_sync(all, v % 3));
  put(__reduce_add_sync(all, v));
  put((int)__reduce_max_sync(all, (unsigned)v));
  put(__popc(all) + __ffs(v) + __clz(v) + kTable[lane & 3]);
  put((int)(__shfl_sync(all, (double)v * 0x1p-40, 1) * 0x1p40));  // eight bytes
}

// Three dimensions, barriers that count, shared arrays of several types, an argument by value.
struct Extents {
  int x, y, z;
};
__global__ void three_dimensions(Extents given, int* y) {
  __shared__ unsigned char flag[64];
  __shared__ int sum[2], extra;
  const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  if (t == 0) {
    sum[0] = sum[1] = 0;
    extra = 7;
  }
  flag[t] = t % 3 == 0;
  __syncthreads();
  atomicAdd(&sum[t & 1], t);
  const int count = __syncthreads_count(flag[(t + 1) % threads]);
  const int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (t == 0) y[b] = sum[0] * 10000 + sum[1] * 10 + count + extra + given.x + given.y + given.z;
}

// Shared memory within a warp: __syncwarp orders it, a shuffle does not.
__global__ void neighbours(const float* x, float* y, Fault fault) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[t];
  if (fault == no_syncwarp) {
    (void)__shfl_sync(0xffffffffu, t, 0);
  } else {
    __syncwarp();
  }
  y[t] = s[t ^ 1];  // <- no_syncwarp
}

// The largest float, by compare and swap, over many blocks.
__device__ void atomic_max(float* place, float v) {
  int* bits = reinterpret_cast<int*>(place);
  int old = atomicAdd(bits, 0);
  while (__int_as_float(old) < v) {
    const int seen = atomicCAS(bits, old, __float_as_int(v));
    if (seen == old) break;
    old = seen;
  }
}
__global__ void maximum(const float* x, float* y, int n, Fault fault) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (fault == blocks_assumed_ordered) {
    if (x[i] > y[0]) y[0] = x[i];  // <- blocks_assumed_ordered
  } else {
    atomic_max(y, x[i]);
  }
}

// Vectors of four, and ways to go wrong with memory.
__global__ void fours(float* x, float* y, int n, Fault fault) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  if (fault == shared_unwritten) y[n - 1] = t == 0 ? s[5] : 0.f;  // <- shared_unwritten
  if (fault == input_written) x[t] = 0.f;                         // <- input_written
  s[t & 31] = 0.f;
  const float* from = fault == misaligned_vector ? x + 1 + 4 * (t & 1) : x + 4 * t;
  const float4 v = *(const float4*)from;  // <- misaligned_vector
  float parts[4] = {v.x, v.y, v.z, v.w};
  volatile int last = fault == local_array_exceeded ? 4 : 3;
  y[t] = parts[0] + parts[1] + parts[2] + parts[last];  // <- local_array_exceeded
}

// Barriers that differ, masks without the caller, waits that never end.
__global__ void barriers(const int* x, int* y, Fault fault) {
  const int t = threadIdx.x;
  if (fault == two_barriers) {
    if (x[t] & 1) {
      __syncthreads();  // the hardware lets these two meet; nobody means it
    } else {
      y[t] = 0;
      __syncthreads();  // <- two_barriers
    }
  }
  if (fault == mask_without_self && t < 32)
    y[t] = __shfl_sync(0x0000ffffu, t, 0);  // <- mask_without_self
  if (fault == assertion) assert(x[t] < 5);  // <- assertion
  if (fault == spin_for_ever)
    while (atomicAdd(&y[63], 0) != 1) {}  // <- spin_for_ever
  if (fault == wait_for_ever) {
    if (t < 32) {
      __syncthreads();  // <- wait_for_ever
    } else {
      (void)__ballot_sync(0xffffffffu, t != 33 ? 1 : (__syncthreads(), 1));
    }
  }
  y[t] = x[t];
}

}  // namespace semantics
