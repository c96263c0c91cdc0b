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
  const int64_t others = whole.walk.extents.others;
  share<32>(levels, whole, asked, [&](const P& p, int64_t k) {
    const int64_t line = p.i[k];
    if (!inside(line, p.walk.extents.lines)) return;
    p.walk.visit(line, threadIdx.x & 31, 32, [&](int64_t far, int64_t tag) {
      if (elements && far != p.j[k]) return;
      const int64_t place = elements ? k : k * others + far;
      if (back) {
        add_to(&p.out[tag], p.x[place]);
      } else {
        add_to(&p.out[place], p.x[p.one ? 0 : tag]);
      }
    });
  });
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
  with_type(List{}, x, [&](auto type) {
    using A = typename decltype(type)::type;
    const bool one = !back && x.size(axes) == 1;
    const Pick<Walk, A> p{walk, static_cast<const A*>(x.data_ptr()), one, Ids(i), Ids(j),
                          static_cast<A*>(out.data_ptr())};
    pick_lines<<<grid_for<32>(asked, levels), T, 0, stream>>>(levels, p, asked, elements, back);
  });
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
