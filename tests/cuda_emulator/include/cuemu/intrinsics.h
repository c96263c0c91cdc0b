// SPDX-License-Identifier: Apache-2.0
// Loads, bit tricks, conversions and fast mathematics: plain C++ underneath.
#pragma once
#include "cuemu/half.h"

// Loads and stores with a cache hint.
#define CUEMU_LOAD(NAME)             \
  template <class T>                 \
  inline T NAME(const T* p) {        \
    return *p;                       \
  }
CUEMU_LOAD(__ldg)
CUEMU_LOAD(__ldca)
CUEMU_LOAD(__ldcg)
CUEMU_LOAD(__ldcs)
#undef CUEMU_LOAD
template <class T>
inline void __stcs(T* p, T value) {
  *p = value;
}

// Bits.
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline unsigned __brev(unsigned v) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; i++) reversed |= (v >> i & 1u) << (31 - i);
  return reversed;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return (unsigned)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((uint64_t)a * b) >> 32); }
inline int __mulhi(int a, int b) { return (int)(((int64_t)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
inline int __float_as_int(float f) { return cuemu::bits<int>(f); }
inline unsigned __float_as_uint(float f) { return cuemu::bits<unsigned>(f); }
inline float __int_as_float(int i) { return cuemu::bits<float>(i); }
inline float __uint_as_float(unsigned i) { return cuemu::bits<float>(i); }
inline long long __double_as_longlong(double d) { return cuemu::bits<long long>(d); }
inline double __longlong_as_double(long long i) { return cuemu::bits<double>(i); }
inline double __hiloint2double(int high, int low) {
  return cuemu::bits<double>((uint64_t)(unsigned)high << 32 | (unsigned)low);
}

// Conversions with a rounding mode: rn to nearest even, rz towards zero, rd down, ru up.
inline float __int2float_rn(int i) { return (float)i; }
inline float __uint2float_rn(unsigned i) { return (float)i; }
inline float __ll2float_rn(long long i) { return (float)i; }
inline float __ull2float_rn(unsigned long long i) { return (float)i; }
inline double __int2double_rn(int i) { return (double)i; }
inline double __uint2double_rn(unsigned i) { return (double)i; }
inline double __ull2double_rn(unsigned long long i) { return (double)i; }
inline float __double2float_rn(double d) { return (float)d; }
inline int __float2int_rn(float f) { return (int)nearbyintf(f); }
inline int __float2int_rz(float f) { return (int)f; }
inline int __float2int_rd(float f) { return (int)floorf(f); }
inline int __float2int_ru(float f) { return (int)ceilf(f); }
inline unsigned __float2uint_rn(float f) { return (unsigned)nearbyintf(f); }
inline unsigned __float2uint_rz(float f) { return (unsigned)f; }
inline long long __double2ll_rn(double d) { return (long long)nearbyint(d); }
inline long long __double2ll_rd(double d) { return (long long)floor(d); }

// Arithmetic that a compiler must not contract, and mathematics with fewer digits.
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __powf(float a, float b) { return powf(a, b); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float sinpif(float x) { return sinf(3.14159265358979323846f * x); }
inline float cospif(float x) { return cosf(3.14159265358979323846f * x); }
inline double sinpi(double x) { return sin(3.14159265358979323846 * x); }
inline double cospi(double x) { return cos(3.14159265358979323846 * x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
inline float normcdff(float x) { return (float)normcdf(x); }

// min and max of mixed types go the way of C++'s usual conversions, as in CUDA.
#define CUEMU_MIN_MAX(A, B)                                                     \
  inline auto min(A a, B b)->decltype(a + b) { return b < a ? b : a; }          \
  inline auto max(A a, B b)->decltype(a + b) { return a < b ? b : a; }
CUEMU_MIN_MAX(int, int)
CUEMU_MIN_MAX(unsigned, unsigned)
CUEMU_MIN_MAX(int, unsigned)
CUEMU_MIN_MAX(unsigned, int)
CUEMU_MIN_MAX(long, long)
CUEMU_MIN_MAX(unsigned long, unsigned long)
CUEMU_MIN_MAX(long long, long long)
CUEMU_MIN_MAX(unsigned long long, unsigned long long)
CUEMU_MIN_MAX(float, float)
CUEMU_MIN_MAX(double, double)
CUEMU_MIN_MAX(float, double)
CUEMU_MIN_MAX(double, float)
#undef CUEMU_MIN_MAX
