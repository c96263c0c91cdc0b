// SPDX-License-Identifier: Apache-2.0
// Scaling: out[edge] = w[edge] * y[target].
#pragma once
#include "product.cuh"

namespace be {

template <class Walk, class A>
struct Scale {
  Walk walk;
  const A* w;
  const A* y;
  A* out;

  __device__ __forceinline__ Scale at(const Levels& levels, int64_t sample) const {
    Scale p = *this;
    if (levels.axes == 0) return p;
    p.w += levels.offset(0, sample);
    p.walk.advance(levels, 1, sample);
    p.y += levels.offset(Walk::ARRAYS + 1, sample);
    p.out += levels.offset(Walk::ARRAYS + 2, sample);
    return p;
  }
};

template <int LANES, class P>
__global__ void scale_lines(Levels levels, P whole, bool inward) {
  const int lane = threadIdx.x % LANES;
  share<LANES>(levels, whole, whole.walk.extents.lines, [&](const P& p, int64_t line) {
    p.walk.visit(line, lane, LANES, [&](int64_t far, int64_t tag) {
      put(&p.out[tag], p.w[tag] * p.y[inward ? far : line]);
    });
  });
}

template <class P>
__global__ void scale_pairs(Levels levels, P whole, Call call) {
  share<1>(levels, whole, whole.walk.edges, [&](const P& p, int64_t edge) {
    int64_t source, target;
    if (p.walk.ends(edge, call, source, target)) p.out[edge] = p.w[edge] * p.y[target];
  });
}

// out = w, each times the number at its target.
template <class Walk, class List>
void scale(const BE::Tensor& w, std::initializer_list<BE::Tensor> arrays, const BE::Tensor& y,
           const BE::Tensor& out, const Call& call, int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  clear(out, stream);  // edges that lead nowhere are zero
  if (out.numel() == 0) return;
  const Walk walk(arrays.begin(), call);
  const int64_t lines = call.extents().lines;
  const Levels levels = levels_of(call.levels, w, arrays, y, out);
  constexpr int T = Limits::THREADS;
  with_type(List{}, w, [&](auto type) {
    using A = typename decltype(type)::type;
    const Scale<Walk, A> p{walk, static_cast<const A*>(w.data_ptr()),
                           static_cast<const A*>(y.data_ptr()), static_cast<A*>(out.data_ptr())};
    if constexpr (std::is_same_v<Walk, Pairs>) {
      scale_pairs<<<grid_for<1>(walk.edges, levels), T, 0, stream>>>(levels, p, call);
    } else if (walk.mean() < Limits::WARP_FROM) {
      scale_lines<1><<<grid_for<1>(lines, levels), T, 0, stream>>>(levels, p, call.inward());
    } else {
      scale_lines<32><<<grid_for<32>(lines, levels), T, 0, stream>>>(levels, p, call.inward());
    }
  });
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
