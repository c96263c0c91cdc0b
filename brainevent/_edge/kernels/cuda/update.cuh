// SPDX-License-Identifier: Apache-2.0
// Plasticity in place: every edge whose source fired gets the trace at its target, and is held
// between two bounds if there are any.
#pragma once
#include "product.cuh"

namespace be {

// NaN stays what it is.
template <class A>
__device__ __forceinline__ A held(A x, const A* bounds) {
  return x < bounds[0] ? bounds[0] : x > bounds[1] ? bounds[1] : x;
}
template <class R>
__device__ __forceinline__ Complex<R> held(Complex<R> x, const Complex<R>*) {
  return x;  // never asked for: complex numbers have no order
}

template <class Walk, class A>
struct Update {
  Walk walk;
  Spikes<A> x;
  const A* y;
  const A* bounds;
  bool clip;
  A* w;

  __device__ __forceinline__ Update at(const Levels& levels, int64_t sample) const {
    Update p = *this;
    if (levels.axes == 0) return p;
    p.walk.advance(levels, 0, sample);
    p.x.advance(levels.offset(Walk::ARRAYS, sample));
    p.y += levels.offset(Walk::ARRAYS + 1, sample);
    p.bounds += levels.offset(Walk::ARRAYS + 2, sample);
    p.w += levels.offset(Walk::ARRAYS + 3, sample);
    return p;
  }
  __device__ __forceinline__ void add(int64_t tag, int64_t target) const {
    const A sum = get(&w[tag]) + y[target];
    put(&w[tag], clip ? held(sum, bounds) : sum);
  }
};

// Lines fired: only they are visited.
template <int LANES, class P>
__global__ void update_lines(Levels levels, P whole) {
  __shared__ Active active;
  const int lane = threadIdx.x % LANES;
  for (int64_t sample = blockIdx.y; sample < levels.samples; sample += gridDim.y) {
    const P p = whole.at(levels, sample);
    active.template visit<LANES>(p.x, p.walk.extents.lines, [&](int64_t line) {
      p.walk.visit(line, lane, LANES, [&](int64_t far, int64_t tag) { p.add(tag, far); });
    });
  }
}

// The far ends fired: every edge is asked.
template <class P>
__global__ void update_against_lines(Levels levels, P whole) {
  share<32>(levels, whole, whole.walk.extents.lines, [&](const P& p, int64_t line) {
    p.walk.visit(line, threadIdx.x & 31, 32, [&](int64_t far, int64_t tag) {
      if (p.x.on(far)) p.add(tag, line);
    });
  });
}

template <class P>
__global__ void update_pairs(Levels levels, P whole, Call call) {
  share<1>(levels, whole, whole.walk.edges, [&](const P& p, int64_t edge) {
    int64_t source, target;
    if (p.walk.ends(edge, call, source, target) && p.x.on(source)) p.add(edge, target);
  });
}

// w, in place, plus the trace where the source fired.
template <class Walk, class List>
void update(std::initializer_list<BE::Tensor> arrays, const BE::Tensor& x, const BE::Tensor& y,
            const BE::Tensor& bounds, const BE::Tensor& w, const Call& call, bool clip,
            int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  const int axes = call.levels;
  if (w.numel() == 0) return;
  const Walk walk(arrays.begin(), call);
  const int64_t lines = call.extents().lines;
  const Levels levels = levels_of(axes, arrays, x, y, bounds, w);
  constexpr int T = Limits::THREADS;
  with_type(List{}, w, [&](auto type) {
    using A = typename decltype(type)::type;
    const Update<Walk, A> p{walk, Spikes<A>(x), static_cast<const A*>(y.data_ptr()),
                            static_cast<const A*>(bounds.data_ptr()), clip,
                            static_cast<A*>(w.data_ptr())};
    if constexpr (std::is_same_v<Walk, Pairs>) {
      update_pairs<<<grid_for<1>(walk.edges, levels), T, 0, stream>>>(levels, p, call);
    } else if (!call.inward()) {
      update_against_lines<<<grid_for<32>(lines, levels), T, 0, stream>>>(levels, p);
    } else if (walk.mean() < Limits::BLOCK_FROM) {
      update_lines<32><<<grid_for<1>(lines, levels), T, 0, stream>>>(levels, p);
    } else {
      update_lines<T><<<grid_for<1>(lines, levels), T, 0, stream>>>(levels, p);
    }
  });
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
