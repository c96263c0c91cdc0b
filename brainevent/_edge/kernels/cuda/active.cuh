// SPDX-License-Identifier: Apache-2.0
// Finding the few active lines: a block votes on a stretch of them and works on those that are on.
#pragma once
#include "numbers.cuh"
#include "parts.cuh"

namespace be {

// The active lines of a stretch, in shared memory.
struct Active {
  static constexpr int THREADS = Limits::THREADS, WARPS = THREADS / 32;
  int lines[THREADS];
  int counts[WARPS];

  // Call `f(line)` for all active lines, each with LANES threads of a block together. Blocks along
  // x share the lines. Every thread of the block must call.
  template <int LANES, class Events, class F>
  __device__ __forceinline__ void visit(const Events& x, int64_t extent, F&& f) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t start = static_cast<int64_t>(blockIdx.x) * THREADS; start < extent;
         start += step) {
      const int found = list(x, start, extent);
      for (int k = threadIdx.x / LANES; k < found; k += THREADS / LANES) f(start + lines[k]);
      __syncthreads();  // before the next stretch is listed
    }
  }

 private:
  // List the active lines from `start` on; the number of them goes to every thread.
  template <class Events>
  __device__ __forceinline__ int list(const Events& x, int64_t start, int64_t extent) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t line = start + threadIdx.x;
    const bool on = line < extent && x.on(line);
    const unsigned votes = __ballot_sync(WHOLE_WARP, on);
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < WARPS; w++) {
      before += w < warp ? counts[w] : 0;
      all += counts[w];
    }
    if (on) lines[before + __popc(votes & ((1u << lane) - 1))] = threadIdx.x;
    __syncthreads();
    return all;
  }
};

}  // namespace be
