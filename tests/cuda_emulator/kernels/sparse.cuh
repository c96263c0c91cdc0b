// SPDX-License-Identifier: Apache-2.0
// Kernels like those of sparse operators: plain CUDA, with faults that are switched on by number.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

#include <type_traits>

#include "faults.cuh"

namespace sparse {

constexpr unsigned kWhole = 0xffffffffu;

inline unsigned blocks(int64_t n, int64_t per, int64_t most) {
  const int64_t wanted = (n + per - 1) / per;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > most ? most : wanted);
}

__device__ __forceinline__ bool active(const bool* e, int64_t i) { return e[i]; }
__device__ __forceinline__ bool active(const float* e, int64_t i) { return e[i] > 0.f; }

template <class W>
__device__ __forceinline__ W added(W a, W b) {
  if constexpr (std::is_same_v<W, double>) {
    return a + b;
  } else {
    return static_cast<W>(static_cast<float>(a) + static_cast<float>(b));
  }
}

// y[indices[j]] += w[j] for the rows whose event is set; WARPS rows at a time in each block.
template <int WARPS, class W, class E>
__global__ void __launch_bounds__(WARPS * 32)
    scatter(const W* __restrict__ w, const int* __restrict__ indices,
            const int* __restrict__ indptr, const E* __restrict__ events, W* __restrict__ y, int m,
            Fault fault) {
  const int lane = threadIdx.x & 31, warps = gridDim.x * WARPS;
  for (int r = blockIdx.x * WARPS + (threadIdx.x >> 5); r < m; r += warps) {
    if (!active(events, r)) continue;
    const int end = indptr[r + 1] + (fault == past_the_end);
    for (int j = indptr[r] + lane; j < end; j += 32) {
      const int target = indices[j];  // <- past_the_end
      if (fault == not_atomic) {
        y[target] = added(y[target], w[j]);  // <- not_atomic
      } else {
        atomicAdd(&y[target], w[j]);  // <- not_cleared
      }
    }
  }
}

template <class W, class E>
void launch_scatter(const W* w, const int* indices, const int* indptr, const E* events, W* y,
                    int m, int n, Fault fault, cudaStream_t stream) {
  constexpr int warps = 8;
  if (fault != not_cleared) cudaMemsetAsync(y, 0, n * sizeof(W), stream);
  const unsigned grid = fault == no_blocks ? m / warps : blocks(m, warps, 4096);
  scatter<warps, W, E><<<grid, warps * 32, 0, stream>>>(  // <- no_blocks
      w, indices, indptr, events, y, m, fault);
}

// y[r] = sum of w[j] over the active columns of row r; a warp for each row, a sum by shuffles.
__global__ void gather(const float* w, const int* indices, const int* indptr, const bool* events,
                       float* y, int m, Fault fault) {
  const int lane = threadIdx.x & 31, warps = gridDim.x * (blockDim.x >> 5);
  for (int r = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5); r < m; r += warps) {
    float sum = 0.f;
    int j = indptr[r] + lane;
    if (fault == lanes_leave && j >= indptr[r + 1]) return;
    for (; j < indptr[r + 1]; j += 32)
      if (active(events, indices[j])) sum += __ldg(&w[j]);
    if (fault != half_a_warp || lane < 16)
      for (int o = 16; o > 0; o >>= 1)
        sum += __shfl_down_sync(kWhole, sum, o);  // <- lanes_leave half_a_warp
    if (lane == 0 && (fault != rows_unwritten || indptr[r] < indptr[r + 1])) y[r] = sum;
  }
}

// One sum for each block, in dynamic shared memory.
__global__ void block_sums(const float* x, float* out, int n, Fault fault) {
  extern __shared__ float part[];
  const int t = threadIdx.x;
  float sum = 0.f;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  part[t] = sum;  // <- too_little_shared no_barrier
  if (fault != no_barrier) __syncthreads();
  for (int o = blockDim.x >> 1; o > 0; o >>= 1) {
    if (t < o) {
      part[t] += part[t + o];  // <- lockstep_assumed
      if (fault == barrier_in_branch) __syncthreads();  // <- barrier_in_branch
    }
    if (fault == lockstep_assumed && o <= 32) continue;  // not true since 2017
    if (fault != barrier_in_branch) __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

inline void launch_block_sums(const float* x, float* out, int n, int sums, Fault fault,
                              cudaStream_t stream) {
  const int threads = 256;
  const size_t bytes = (fault == too_little_shared ? threads / 32 : threads) * sizeof(float);
  block_sums<<<sums, threads, bytes, stream>>>(x, out, n, fault);
}

// The numbers of the set events, in any order: a vote in each warp, offsets in shared memory.
__global__ void compact(const bool* events, int* found, int* count, int n, Fault fault) {
  __shared__ int of_warp[32], base;
  const int t = threadIdx.x, lane = t & 31, warp = t >> 5;
  for (int i0 = blockIdx.x * blockDim.x; i0 < n; i0 += gridDim.x * blockDim.x) {
    const bool on = i0 + t < n && active(events, i0 + t);
    const unsigned votes = __ballot_sync(kWhole, on);
    if (lane == 0) of_warp[warp] = __popc(votes);  // <- reused_too_soon
    __syncthreads();
    if (t == 0) {
      int before = 0;
      for (int k = 0; k < blockDim.x >> 5; k++) {
        const int here = of_warp[k];
        of_warp[k] = before;
        before += here;
      }
      base = atomicAdd(count, before);
    }
    __syncthreads();
    if (on) found[base + of_warp[warp] + __popc(votes & ((1u << lane) - 1))] = i0 + t;
    if (fault != reused_too_soon) __syncthreads();
  }
}

__global__ void fill_tail(int* found, const int* count, int n) {
  const int step = gridDim.x * blockDim.x;
  for (int i = *count + blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) found[i] = -1;
}

inline void launch_compact(const bool* events, int* found, int* count, int n, Fault fault,
                           cudaStream_t stream) {
  const unsigned grid = blocks(n, 256, 4);
  cudaMemsetAsync(count, 0, sizeof(int), stream);
  compact<<<grid, 256, 0, stream>>>(events, found, count, n, fault);
  if (fault != tail_unwritten) fill_tail<<<grid, 256, 0, stream>>>(found, count, n);
}

// Rows of a matrix, in place.
__global__ void scale_rows(float* b, const int* rows, int n, float factor, Fault fault) {
  const int r = rows[blockIdx.x];
  for (int c = threadIdx.x; c < n; c += blockDim.x) {
    const int64_t at =
        fault == index_of_32_bits ? r * n + c : (int64_t)r * n + c;  // <- index_of_32_bits
    b[at] *= factor;
  }
}

}  // namespace sparse
