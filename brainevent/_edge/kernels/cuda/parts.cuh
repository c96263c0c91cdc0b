// SPDX-License-Identifier: Apache-2.0
// The parts of a kernel: batches, indices, weights, events. Walks are in walks.cuh.
#pragma once
#include <initializer_list>
#include <type_traits>

#include "brainevent/check.h"
#include "numbers.cuh"

namespace be {

// Where one way of working ends and the next begins. No figure here changes a result.
struct Limits {
  static constexpr int THREADS = 256;                // of every block
  static constexpr int64_t WARP_FROM = 8;            // edges of a line, from which a warp takes it
  static constexpr int64_t BLOCK_FROM = 2048;        // and a block
  static constexpr int64_t BLOCKS = 1 << 16;         // the most blocks of a launch, along x
  static constexpr int64_t LAYERS = 1 << 10;         // and along y
  static constexpr int64_t SHARERS = 64;             // and that share a line, along z
};

// The number of blocks for n pieces of work, `per` to a block: never none, never too many.
inline unsigned blocks(int64_t n, int64_t per, int64_t most = Limits::BLOCKS) {
  const int64_t wanted = (n + per - 1) / per;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted > most ? most : wanted);
}

// ---- batches -----------------------------------------------------------------------------------

// Leading axes of all operands, each of full length or of length one. `offset(k, b)` is how many
// elements of operand k lie before its part in sample b.
struct Levels {
  static constexpr int AXES = 6, OPERANDS = 8;
  int axes = 0;
  int64_t samples = 1;
  int64_t size[AXES] = {};
  int64_t stride[OPERANDS][AXES] = {};

  explicit Levels(int axes_) : axes(axes_) {
    BE_CHECK(axes <= AXES) << "at most " << AXES << " nested batch axes, got " << axes;
    for (int a = 0; a < axes; a++) size[a] = 1;
  }

  void enter(int operand, const BE::Tensor& t) {
    int64_t inner = 1;
    for (int a = static_cast<int>(t.ndim()) - 1; a >= 0; a--) {
      if (a < axes && t.size(a) != 1) {
        stride[operand][a] = inner;
        size[a] = t.size(a);
      }
      inner *= t.size(a);
    }
  }

  __device__ __forceinline__ int64_t offset(int operand, int64_t sample) const {
    int64_t all = 0;
    for (int a = axes - 1; a >= 0; a--) {
      all += sample % size[a] * stride[operand][a];
      sample /= size[a];
    }
    return all;
  }
};

// The batch of operands in order; a list of tensors counts as so many operands.
template <class... Operands>
Levels levels_of(int axes, const Operands&... operands) {
  Levels levels(axes);
  int k = 0;
  const auto enter = [&](const auto& one) {
    if constexpr (std::is_same_v<std::decay_t<decltype(one)>, BE::Tensor>) {
      levels.enter(k++, one);
    } else {
      for (const BE::Tensor& t : one) levels.enter(k++, t);
    }
  };
  (enter(operands), ...);
  for (int a = 0; a < axes; a++) levels.samples *= levels.size[a];
  return levels;
}

// ---- sharing out ------------------------------------------------------------------------------

// The grid for n pieces of work of every sample, each for LANES threads together.
template <int LANES>
dim3 grid_for(int64_t n, const Levels& levels) {
  return dim3(blocks(n, Limits::THREADS / LANES), blocks(levels.samples, 1, Limits::LAYERS));
}

// Call `f(p, i)` for all i below n and `p = whole.at(levels, sample)` for all samples. The LANES
// threads that share a piece of work call together.
template <int LANES, class P, class F>
__device__ __forceinline__ void share(const Levels& levels, const P& whole, int64_t n, F&& f) {
  const int64_t groups = static_cast<int64_t>(gridDim.x) * (Limits::THREADS / LANES);
  const int64_t group = (static_cast<int64_t>(blockIdx.x) * Limits::THREADS + threadIdx.x) / LANES;
  for (int64_t sample = blockIdx.y; sample < levels.samples; sample += gridDim.y) {
    const P p = whole.at(levels, sample);
    for (int64_t i = group; i < n; i += groups) f(p, i);
  }
}

// ---- indices -----------------------------------------------------------------------------------

// Signed integers of 32 or 64 bits. A branch that all threads take alike costs less than a second
// copy of every kernel.
struct Ids {
  const void* first;
  bool wide;

  explicit Ids(const BE::Tensor& t) : first(t.data_ptr()), wide(t.dtype() == BE::DType::Int64) {
    BE_CHECK(wide || t.dtype() == BE::DType::Int32) << "indices are int32 or int64";
  }
  __device__ __forceinline__ int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(first)[i] : static_cast<const int32_t*>(first)[i];
  }
  __device__ __forceinline__ void advance(int64_t n) {
    first = static_cast<const char*>(first) + n * (wide ? 8 : 4);
  }
};

__device__ __forceinline__ bool inside(int64_t i, int64_t extent) {
  return static_cast<uint64_t>(i) < static_cast<uint64_t>(extent);
}

// ---- weights -----------------------------------------------------------------------------------

// A weight is made of its parameters and the number of batch axes, and tells the value of a tag.
// `begin(walk)` is called once by every thread, when its sample is known.

// One number an edge, or one for all.
template <class T>
struct Stored {
  using Value = Sum<T>;
  const T* values;
  bool one;

  Stored(const BE::Tensor& w, int axes)
      : values(static_cast<const T*>(w.data_ptr())), one(w.size(axes) == 1) {}
  __device__ __forceinline__ Value at(int64_t tag) const { return widen(values[one ? 0 : tag]); }
  __device__ __forceinline__ void advance(int64_t n) { values += n; }
  template <class Walk>
  __device__ __forceinline__ void begin(const Walk&) {}
};

// ---- events ------------------------------------------------------------------------------------

// Elements that count one or nothing.
template <class A>
struct Spikes {
  using Element = bool;
  const Element* x;

  explicit Spikes(const BE::Tensor& t) : x(static_cast<const Element*>(t.data_ptr())) {}
  __device__ __forceinline__ bool on(int64_t i) const { return x[i]; }
  __device__ __forceinline__ A times(A weight, int64_t) const { return weight; }
  __device__ __forceinline__ void advance(int64_t n) { x += n; }
};

// Elements that count for themselves; `skips` passes over zeros, whatever they would have met.
template <class A>
struct Values {
  using Element = A;
  const Element* x;
  bool skips;

  Values(const BE::Tensor& t, bool skips_)
      : x(static_cast<const Element*>(t.data_ptr())), skips(skips_) {}
  __device__ __forceinline__ bool on(int64_t i) const { return !skips || !is_zero(x[i]); }
  __device__ __forceinline__ A times(A weight, int64_t i) const { return weight * x[i]; }
  __device__ __forceinline__ void advance(int64_t n) { x += n; }
};

// ---- calls -------------------------------------------------------------------------------------

// Lengths of the two axes as a walk sees them: lines, and the axis they reach into.
struct Extents {
  int64_t lines, others;
};

// What a launcher is told besides its tensors.
struct Call {
  int32_t event;        // 0: values, 1: spikes, 2: values of which zeros are skipped
  int32_t levels;       // leading batch axes
  bool transpose;       // rows are the input and columns the output, not the other way round
  bool along_columns;   // the walk goes along columns of the matrix, not along rows
  int64_t rows, cols;   // of the matrix

  // Whether the walk goes along lines of the input.
  bool inward() const { return transpose != along_columns; }
  int64_t in() const { return transpose ? rows : cols; }
  int64_t out() const { return transpose ? cols : rows; }
  Extents extents() const { return along_columns ? Extents{cols, rows} : Extents{rows, cols}; }
};

// ---- choice of types ---------------------------------------------------------------------------

template <class... T>
struct Types {};

template <class T>
struct Type {
  using type = T;
};

// Call `f(Type<T>{})` with the type of the list that a tensor holds.
template <class... T, class F>
void with_type(Types<T...>, const BE::Tensor& t, F&& f) {
  const bool found = ((Holds<T>::test(t.dtype()) && (f(Type<T>{}), true)) || ...);
  BE_CHECK(found) << "no kernel for weights of type " << BE::dtype_name(t.dtype());
}

// Call `f` with the events that a call is about.
template <class A, class F>
void with_events(const BE::Tensor& x, const Call& call, F&& f) {
  if (call.event == 1) {
    f(Spikes<A>(x));
  } else {
    f(Values<A>(x, call.event == 2));
  }
}

}  // namespace be
