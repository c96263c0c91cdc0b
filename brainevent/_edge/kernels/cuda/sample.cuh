// SPDX-License-Identifier: Apache-2.0
// The sample: out[edge] = e(x)[source] * y[target], summed over a batch in columns.
#pragma once
#include "product.cuh"

namespace be {

template <class Walk, class Events, class A>
struct Sample {
  Walk walk;
  Events x;
  const A* y;
  A* out;

  __device__ __forceinline__ Sample at(const Levels& levels, int64_t sample) const {
    Sample p = *this;
    if (levels.axes == 0) return p;
    p.walk.advance(levels, 0, sample);
    p.x.advance(levels.offset(Walk::ARRAYS, sample));
    p.y += levels.offset(Walk::ARRAYS + 1, sample);
    p.out += levels.offset(Walk::ARRAYS + 2, sample);
    return p;
  }
  __device__ __forceinline__ A value(int64_t source, int64_t target, int64_t columns) const {
    Adder<A> sum;
    for (int64_t c = 0; c < columns; c++) {
      const int64_t element = source * columns + c;
      if (x.on(element)) sum.add(x.times(y[target * columns + c], element));
    }
    return sum.value();
  }
};

template <int LANES, class P>
__global__ void sample_lines(Levels levels, P whole, int64_t columns, bool inward) {
  const int lane = threadIdx.x % LANES;
  share<LANES>(levels, whole, whole.walk.extents.lines, [&](const P& p, int64_t line) {
    if (inward && columns == 1 && !p.x.on(line)) return;
    p.walk.visit(line, lane, LANES, [&](int64_t far, int64_t tag) {
      put(&p.out[tag], inward ? p.value(line, far, columns) : p.value(far, line, columns));
    });
  });
}

template <class P>
__global__ void sample_pairs(Levels levels, P whole, Call call, int64_t columns) {
  share<1>(levels, whole, whole.walk.edges, [&](const P& p, int64_t edge) {
    int64_t source, target;
    if (p.walk.ends(edge, call, source, target)) p.out[edge] = p.value(source, target, columns);
  });
}

// out = the sample.
template <class Walk, class List>
void sample(std::initializer_list<BE::Tensor> arrays, const BE::Tensor& x, const BE::Tensor& y,
            const BE::Tensor& out, const Call& call, int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  const int axes = call.levels;
  const int64_t columns = y.ndim() > axes + 1 ? y.size(axes + 1) : 1;
  clear(out, stream);  // edges that lead nowhere are zero
  if (out.numel() == 0) return;
  const Walk walk(arrays.begin(), call);
  const int64_t lines = call.extents().lines;
  const Levels levels = levels_of(axes, arrays, x, y, out);
  constexpr int T = Limits::THREADS;
  with_type(List{}, y, [&](auto type) {
    using A = typename decltype(type)::type;
    with_events<A>(x, call, [&](auto events) {
      const Sample<Walk, decltype(events), A> p{walk, events, static_cast<const A*>(y.data_ptr()),
                                                static_cast<A*>(out.data_ptr())};
      if constexpr (std::is_same_v<Walk, Pairs>) {
        sample_pairs<<<grid_for<1>(walk.edges, levels), T, 0, stream>>>(levels, p, call, columns);
      } else if (walk.mean() < Limits::WARP_FROM) {
        sample_lines<1><<<grid_for<1>(lines, levels), T, 0, stream>>>(levels, p, columns,
                                                                     call.inward());
      } else {
        sample_lines<32><<<grid_for<32>(lines, levels), T, 0, stream>>>(levels, p, columns,
                                                                       call.inward());
      }
    });
  });
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
