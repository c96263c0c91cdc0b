// SPDX-License-Identifier: Apache-2.0
// Numbers: what weights are stored as, what sums are held in, and how threads add and share them.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#include "brainevent/tensor.h"

namespace be {

// Complex numbers as a plain pair: no constructor, so that it can lie in shared memory.
template <class R>
struct Complex {
  R re, im;
};

template <class R>
__device__ __forceinline__ Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}

template <class R>
__device__ __forceinline__ Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Number<T>: `Sum` is what T is added up in, `holds` whether a tensor's dtype is T. Whole numbers
// are unsigned, whose sums wrap around: so do signed ones, and every width has the low bits right.
template <class T>
struct Number {
  using Sum = T;
};

template <class T>
using Sum = typename Number<T>::Sum;

template <class T>
struct Holds;
template <>
struct Holds<float> {
  static bool test(BE::DType t) { return t == BE::DType::Float32; }
};
template <>
struct Holds<double> {
  static bool test(BE::DType t) { return t == BE::DType::Float64; }
};
template <>
struct Holds<unsigned> {
  static bool test(BE::DType t) { return t == BE::DType::Int32 || t == BE::DType::UInt32; }
};
template <>
struct Holds<unsigned long long> {
  static bool test(BE::DType t) { return t == BE::DType::Int64 || t == BE::DType::UInt64; }
};
template <>
struct Holds<Complex<float>> {
  static bool test(BE::DType t) { return t == BE::DType::Complex64; }
};
template <>
struct Holds<Complex<double>> {
  static bool test(BE::DType t) { return t == BE::DType::Complex128; }
};

template <class A>
__device__ __forceinline__ A zero() {
  return A{};
}

template <class A>
__device__ __forceinline__ bool is_zero(A x) {
  return x == A{};
}
template <class R>
__device__ __forceinline__ bool is_zero(Complex<R> x) {
  return x.re == R{} && x.im == R{};
}

// A stored number in the type of sums.
template <class T>
__device__ __forceinline__ Sum<T> widen(T x) {
  return static_cast<Sum<T>>(x);
}

// ---- adding where others add too ---------------------------------------------------------------

template <class A, class B>
__device__ __forceinline__ void add_to(A* place, B x) {
  atomicAdd(place, static_cast<A>(x));
}
template <class R>
__device__ __forceinline__ void add_to(Complex<R>* place, Complex<R> x) {
  atomicAdd(&place->re, x.re);
  atomicAdd(&place->im, x.im);
}

// ---- writing where, if the structure is unsound, others write too ------------------------------

// Edges of unsound structure may share a weight. Then one of the writers wins, whole: volatile
// accesses are relaxed atomic ones in CUDA's memory model, and cost the same as plain ones.
template <class A>
__device__ __forceinline__ void put(A* place, A x) {
  *const_cast<volatile A*>(place) = x;
}
template <class R>
__device__ __forceinline__ void put(Complex<R>* place, Complex<R> x) {
  put(&place->re, x.re);
  put(&place->im, x.im);
}
template <class A>
__device__ __forceinline__ A get(const A* place) {
  return *const_cast<const volatile A*>(place);
}
template <class R>
__device__ __forceinline__ Complex<R> get(const Complex<R>* place) {
  return {get(&place->re), get(&place->im)};
}

// ---- adding up within a thread, a warp, a block ------------------------------------------------

// A long float32 sum sticks at 2^24: parts of it are summed apart.
template <class A>
struct Adder {
  A total{};
  __device__ __forceinline__ void add(A x) { total = total + x; }
  __device__ __forceinline__ A value() const { return total; }
};

template <>
struct Adder<float> {
  static constexpr int PART = 1024;
  float total = 0, part = 0;
  int left = PART;
  __device__ __forceinline__ void add(float x) {
    part += x;
    if (--left == 0) {
      total += part;
      part = 0;
      left = PART;
    }
  }
  __device__ __forceinline__ float value() const { return total + part; }
};

constexpr unsigned WHOLE_WARP = 0xffffffffu;

template <class A>
__device__ __forceinline__ A from_lane(A x, int distance) {
  return __shfl_xor_sync(WHOLE_WARP, x, distance);
}
template <class R>
__device__ __forceinline__ Complex<R> from_lane(Complex<R> x, int distance) {
  return {from_lane(x.re, distance), from_lane(x.im, distance)};
}

// The sum over the lanes of a warp that agree in their number modulo `nearest`; all of them get it.
template <class A>
__device__ __forceinline__ A warp_sum(A x, int nearest = 1) {
  for (int distance = 16; distance >= nearest; distance >>= 1) x = x + from_lane(x, distance);
  return x;
}

// The sum over a block; the first thread gets it. Every thread must call.
template <int THREADS, class A>
__device__ __forceinline__ A block_sum(A x) {
  __shared__ A parts[THREADS / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  x = warp_sum(x);
  if (lane == 0) parts[warp] = x;
  __syncthreads();
  A all = lane < THREADS / 32 ? parts[lane] : zero<A>();
  if (warp == 0) all = warp_sum(all);
  __syncthreads();  // before the next call writes its parts
  return all;
}

}  // namespace be
