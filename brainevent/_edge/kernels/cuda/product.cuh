// SPDX-License-Identifier: Apache-2.0
// The product: y[target] += weight * e(x)[source] over all edges.
//
// *Gather* walks along lines of the output: every line is one sum. *Scatter* walks along lines of
// the input: a block lists the active ones of its stretch, then adds what they reach.
#pragma once
#include <type_traits>

#include "active.cuh"
#include "walks.cuh"

namespace be {

// All that a kernel of the product works on.
template <class Walk, class Weight, class Events, class Y>
struct Product {
  Walk walk;
  Weight weight;
  Events x;
  Y* y;

  __device__ __forceinline__ Product at(const Levels& levels, int64_t sample) const {
    Product p = *this;
    if (levels.axes > 0) {
      p.weight.advance(levels.offset(0, sample));
      p.walk.advance(levels, 1, sample);
      p.x.advance(levels.offset(Walk::ARRAYS + 1, sample));
      p.y += levels.offset(Walk::ARRAYS + 2, sample);
    }
    p.walk.begin();
    p.weight.begin(p.walk);
    return p;
  }
  __device__ __forceinline__ typename Weight::Value term(int64_t element, int64_t tag) const {
    return x.times(weight.at(tag), element);
  }
};

// ---- gather ------------------------------------------------------------------------------------

template <class P>
using Total = std::remove_reference_t<decltype(*P::y)>;

template <int LANES, class P>
__global__ void gather_vector(Levels levels, P whole) {
  const int lane = threadIdx.x % LANES;
  share<LANES>(levels, whole, whole.walk.extents.lines, [&](const P& p, int64_t line) {
    Adder<Total<P>> sum;
    p.walk.visit(line, lane, LANES, [&](int64_t far, int64_t tag) {
      if (p.x.on(far)) sum.add(p.term(far, tag));
    });
    auto total = sum.value();
    if constexpr (LANES == 32) total = warp_sum(total);
    if constexpr (LANES > 32) total = block_sum<LANES>(total);
    if (lane == 0) p.y[line] = total;
  });
}

// Up to 32 columns for a warp: `side` lanes have a column each, the rest share edges.
struct Tiles {
  int64_t columns, count;
  int side;

  explicit Tiles(int64_t columns_) : columns(columns_), side(1) {
    while (side < columns && side < 32) side *= 2;
    count = (columns + side - 1) / side;
  }
  __device__ __forceinline__ int64_t line(int64_t item) const { return item / count; }
  __device__ __forceinline__ int64_t column(int64_t item) const {
    return item % count * side + (threadIdx.x & 31) % side;
  }
  __device__ __forceinline__ int edge_lane() const { return (threadIdx.x & 31) / side; }
  __device__ __forceinline__ int edge_lanes() const { return 32 / side; }
};

template <class P>
__global__ void gather_columns(Levels levels, P whole, Tiles tiles) {
  const int64_t items = whole.walk.extents.lines * tiles.count, columns = tiles.columns;
  share<32>(levels, whole, items, [&](const P& p, int64_t item) {
    const int64_t line = tiles.line(item), column = tiles.column(item);
    Adder<Total<P>> sum;
    if (column < columns) {
      p.walk.visit(line, tiles.edge_lane(), tiles.edge_lanes(), [&](int64_t far, int64_t tag) {
        const int64_t element = far * columns + column;
        if (p.x.on(element)) sum.add(p.term(element, tag));
      });
    }
    const auto total = warp_sum(sum.value(), tiles.side);
    if (tiles.edge_lane() == 0 && column < columns) p.y[line * columns + column] = total;
  });
}

// ---- scatter -----------------------------------------------------------------------------------

// Blocks along z share every line, where lines are few and long.
template <int LANES, class P>
__global__ void scatter_vector(Levels levels, P whole) {
  __shared__ Active active;
  const int lane = threadIdx.x % LANES + LANES * blockIdx.z;
  for (int64_t sample = blockIdx.y; sample < levels.samples; sample += gridDim.y) {
    const P p = whole.at(levels, sample);
    active.template visit<LANES>(p.x, p.walk.extents.lines, [&](int64_t line) {
      p.walk.visit(line, lane, LANES * gridDim.z, [&](int64_t far, int64_t tag) {
        add_to(&p.y[far], p.term(line, tag));
      });
    });
  }
}

template <class P>
__global__ void scatter_columns(Levels levels, P whole, Tiles tiles) {
  const int64_t items = whole.walk.extents.lines * tiles.count, columns = tiles.columns;
  share<32>(levels, whole, items, [&](const P& p, int64_t item) {
    const int64_t line = tiles.line(item), column = tiles.column(item);
    const int64_t element = line * columns + column;
    if (column >= columns || !p.x.on(element)) return;
    p.walk.visit(line, tiles.edge_lane(), tiles.edge_lanes(), [&](int64_t far, int64_t tag) {
      add_to(&p.y[far * columns + column], p.term(element, tag));
    });
  });
}

// ---- edges without order -----------------------------------------------------------------------

template <class P>
__global__ void scatter_pairs(Levels levels, P whole, Call call, int64_t columns) {
  share<1>(levels, whole, whole.walk.edges * columns, [&](const P& p, int64_t item) {
    const int64_t edge = item / columns, column = item % columns;
    int64_t source, target;
    if (!p.walk.ends(edge, call, source, target)) return;
    const int64_t element = source * columns + column;
    if (p.x.on(element)) add_to(&p.y[target * columns + column], p.term(element, edge));
  });
}

// ---- launching ---------------------------------------------------------------------------------

template <class From, class To>
__global__ void narrow(const From* from, To* to, int64_t n) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * Limits::THREADS;
  int64_t i = static_cast<int64_t>(blockIdx.x) * Limits::THREADS + threadIdx.x;
  for (; i < n; i += threads) to[i] = static_cast<To>(from[i]);
}

template <class P>
void launch_gather(const Levels& levels, const P& p, int64_t columns, cudaStream_t stream) {
  const int64_t lines = p.walk.extents.lines, mean = p.walk.mean();
  constexpr int T = Limits::THREADS;
  if (columns > 0) {
    const Tiles tiles(columns);
    gather_columns<<<grid_for<32>(lines * tiles.count, levels), T, 0, stream>>>(levels, p, tiles);
  } else if (mean < Limits::WARP_FROM) {
    gather_vector<1><<<grid_for<1>(lines, levels), T, 0, stream>>>(levels, p);
  } else if (mean < Limits::BLOCK_FROM) {
    gather_vector<32><<<grid_for<32>(lines, levels), T, 0, stream>>>(levels, p);
  } else {
    gather_vector<T><<<grid_for<T>(lines, levels), T, 0, stream>>>(levels, p);
  }
}

template <class P>
void launch_scatter(const Levels& levels, const P& p, int64_t columns, cudaStream_t stream) {
  const int64_t lines = p.walk.extents.lines, mean = p.walk.mean();
  constexpr int T = Limits::THREADS;
  dim3 grid = grid_for<1>(lines, levels);  // a block lists as many lines as it has threads
  if (columns > 0) {
    const Tiles tiles(columns);
    scatter_columns<<<grid_for<32>(lines * tiles.count, levels), T, 0, stream>>>(levels, p, tiles);
  } else if (mean < Limits::WARP_FROM) {
    scatter_vector<1><<<grid, T, 0, stream>>>(levels, p);
  } else if (mean < Limits::BLOCK_FROM) {
    scatter_vector<32><<<grid, T, 0, stream>>>(levels, p);
  } else {
    grid.z = blocks(mean, 4 * T, Limits::SHARERS);
    scatter_vector<T><<<grid, T, 0, stream>>>(levels, p);
  }
}

inline void clear(const BE::Tensor& t, cudaStream_t stream) {
  if (t.nbytes() > 0) BE_CUDA_CHECK(cudaMemsetAsync(t.data_ptr(), 0, t.nbytes(), stream));
}

// y = the product. `wide` is room for sums in double, or empty.
template <class Walk, class List, template <class> class Weight = Stored>
void product(const BE::Tensor& w, std::initializer_list<BE::Tensor> arrays, const BE::Tensor& x,
             const BE::Tensor& y, const BE::Tensor& wide, const Call& call, int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  const int axes = call.levels;
  const int64_t columns = y.ndim() > axes + 1 ? y.size(axes + 1) : 0;
  if (y.numel() == 0) return;
  const Walk walk(arrays.begin(), call);
  const Levels levels = levels_of(axes, w, arrays, x, y);
  const bool split = wide.numel() > 0;
  const auto run = [&](const auto& p) {
    if constexpr (std::is_same_v<Walk, Pairs>) {
      const int64_t side = columns > 0 ? columns : 1;
      scatter_pairs<<<grid_for<1>(walk.edges * side, levels), Limits::THREADS, 0, stream>>>(
          levels, p, call, side);
    } else {
      launch_scatter(levels, p, columns, stream);
    }
  };
  const bool scatter = std::is_same_v<Walk, Pairs> || call.inward();
  if (scatter) clear(split ? wide : y, stream);
  with_type(List{}, w, [&](auto type) {
    using T = typename decltype(type)::type;
    const Weight<T> weight(w, axes);
    auto* result = static_cast<Sum<T>*>(y.data_ptr());
    with_events<Sum<T>>(x, call, [&](auto events) {
      using Events = decltype(events);
      if (!scatter) {
        if constexpr (!std::is_same_v<Walk, Pairs>)
          launch_gather(levels, Product<Walk, Weight<T>, Events, Sum<T>>{walk, weight, events, result},
                        columns, stream);
      } else if (!split) {
        run(Product<Walk, Weight<T>, Events, Sum<T>>{walk, weight, events, result});
      } else if constexpr (std::is_same_v<Sum<T>, float>) {
        auto* sums = static_cast<double*>(wide.data_ptr());
        run(Product<Walk, Weight<T>, Events, double>{walk, weight, events, sums});
        narrow<<<blocks(y.numel(), Limits::THREADS), Limits::THREADS, 0, stream>>>(sums, result,
                                                                                  y.numel());
      }
    });
  });
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
