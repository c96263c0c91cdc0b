// SPDX-License-Identifier: Apache-2.0
// Qualifiers and vector types of CUDA C++.
#pragma once
#include <stddef.h>

// Calls that remain calls would pass by the checker. The name in the object file is another one,
// also for copies that the compiler itself makes. First of all: nothing may have named them yet.
extern "C" {
void* memcpy(void* to, const void* from, size_t bytes) noexcept __asm__("cuemu_memcpy_call");
void* memmove(void* to, const void* from, size_t bytes) noexcept __asm__("cuemu_memmove_call");
void* memset(void* to, int value, size_t bytes) noexcept __asm__("cuemu_memset_call");
}

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__  // empty, so that libstdc++'s __attribute__((__noinline__)) stays valid
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

// Inside the checker's own helpers no access is reported.
#define CUEMU_QUIET __attribute__((noinline, no_sanitize("thread", "undefined")))

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// N1 .. N4 with their makers, aligned as on a GPU: a misaligned vector access is a finding.
#define CUEMU_VECTOR(T, N)                                                                    \
  struct N##1 {                                                                               \
    T x;                                                                                      \
  };                                                                                          \
  struct alignas(2 * sizeof(T)) N##2 {                                                        \
    T x, y;                                                                                   \
  };                                                                                          \
  struct N##3 {                                                                               \
    T x, y, z;                                                                                \
  };                                                                                          \
  struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) N##4 {                              \
    T x, y, z, w;                                                                             \
  };                                                                                          \
  inline N##1 make_##N##1(T x) { return {x}; }                                                \
  inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                        \
  inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                \
  inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUEMU_VECTOR(signed char, char)
CUEMU_VECTOR(unsigned char, uchar)
CUEMU_VECTOR(short, short)
CUEMU_VECTOR(unsigned short, ushort)
CUEMU_VECTOR(int, int)
CUEMU_VECTOR(unsigned, uint)
CUEMU_VECTOR(long long, longlong)
CUEMU_VECTOR(unsigned long long, ulonglong)
CUEMU_VECTOR(float, float)
CUEMU_VECTOR(double, double)
