// SPDX-License-Identifier: Apache-2.0
// Picking lines or elements out of a matrix, and the way back to the weights.
#pragma once
#include "product.cuh"

namespace be {

// What is asked for: lines i[k], and for elements their other ends j[k].
template <class Walk, class A>
struct Pick {
  Walk walk;
  const A* x;  // weights; on the way back a number for everything that was picked
  bool one;    // one weight for all edges
  Ids i, j;
  A* out;

  __device__ __forceinline__ Pick at(const Levels& levels, int64_t sample) const {
    Pick p = *this;
    if (levels.axes == 0) return p;
    p.x += levels.offset(0, sample);
    p.walk.advance(levels, 1, sample);
    p.i.advance(levels.offset(Walk::ARRAYS + 1, sample));
    p.j.advance(levels.offset(Walk::ARRAYS + 2, sample));
    p.out += levels.offset(Walk::ARRAYS + 3, sample);
    return p;
  }
};

// A warp takes one line, or one element, that is asked for.
template <class P>
__global__ void pick_lines(Levels levels, P whole, int64_t asked, bool elements, bool back) {
  const int lane = threadIdx.x & 31;
  const int64_t warps = static_cast<int64_t>(gridDim.x) * (Limits::THREADS / 32);
  const int64_t warp = (static_cast<int64_t>(blockIdx.x) * Limits::THREADS + threadIdx.x) / 32;
  for (int64_t sample = blockIdx.y; sample < levels.samples; sample += gridDim.y) {
    const P p = whole.at(levels, sample);
    const int64_t others = p.walk.extents.others;
    for (int64_t k = warp; k < asked; k += warps) {
      const int64_t line = p.i[k];
      if (!inside(line, p.walk.extents.lines)) continue;
      p.walk.visit(line, lane, 32, [&](int64_t far, int64_t tag) {
        if (elements && far != p.j[k]) return;
        const int64_t place = elements ? k : k * others + far;
        if (back) {
          add_to(&p.out[tag], p.x[place]);
        } else {
          add_to(&p.out[place], p.x[p.one ? 0 : tag]);
        }
      });
    }
  }
}

// out = what is picked, or on the way back the sum of what arrives at every edge.
template <class Walk, class List>
void pick(const BE::Tensor& x, std::initializer_list<BE::Tensor> arrays, const BE::Tensor& i,
          const BE::Tensor& j, const BE::Tensor& out, const Call& call, bool elements, bool back,
          int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  clear(out, stream);
  if (out.numel() == 0) return;
  const Walk walk(arrays.begin(), call);
  const int axes = call.levels;
  const int64_t asked = i.size(axes);
  const Levels levels = levels_of(axes, x, arrays, i, j, out);
  constexpr int T = Limits::THREADS;
  const dim3 grid(blocks(asked, T / 32), blocks(levels.samples, 1, Limits::LAYERS));
  with_type(List{}, x, [&](auto type) {
    using A = typename decltype(type)::type;
    const bool one = !back && x.size(axes) == 1;
    const Pick<Walk, A> p{walk, static_cast<const A*>(x.data_ptr()), one, Ids(i), Ids(j),
                          static_cast<A*>(out.data_ptr())};
    pick_lines<<<grid, T, 0, stream>>>(levels, p, asked, elements, back);
  });
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
