// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits: stored as such, every operation through float and rounded to nearest even.
#pragma once
#include "cuemu/language.h"

namespace cuemu {

template <class To, class From>
inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "both must have the same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// Both written out: not every g++ has _Float16 for every processor.
inline uint16_t half_bits(float value) {
  const uint32_t u = bits<uint32_t>(value), sign = u >> 16 & 0x8000, size = u & 0x7fffffff;
  if (size > 0x7f800000) return (uint16_t)0x7fff;                 // NaN
  if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);       // beyond 65504: infinity
  if (size < 0x38800000) {                                        // subnormal: units of 2^-24
    const float scaled = bits<float>(size) * 16777216.0f;
    const float whole = nearbyintf(scaled);
    return (uint16_t)(sign | (uint32_t)whole);
  }
  return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}
inline float half_value(uint16_t b) {
  const uint32_t sign = (uint32_t)(b & 0x8000) << 16, exponent = b >> 10 & 31, low = b & 0x3ff;
  if (exponent == 0) return bits<float>(sign | bits<uint32_t>((float)low / 16777216.0f));
  if (exponent == 31) return bits<float>(sign | 0x7f800000 | low << 13);
  return bits<float>(sign | (exponent + 112) << 23 | low << 13);
}
inline uint16_t bfloat_bits(float value) {
  const uint32_t u = bits<uint32_t>(value);
  if (value != value) return 0x7fff;
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float bfloat_value(uint16_t b) { return bits<float>((uint32_t)b << 16); }

}  // namespace cuemu

#define CUEMU_NARROW(NAME, TO_BITS, TO_VALUE)                                     \
  struct alignas(2) NAME {                                                        \
    uint16_t pattern;                                                             \
    NAME() = default;                                                             \
    NAME(float value) : pattern(cuemu::TO_BITS(value)) {}                         \
    operator float() const { return cuemu::TO_VALUE(pattern); }                   \
    NAME& operator+=(NAME o) { return *this = NAME((float)*this + (float)o); }    \
    NAME& operator-=(NAME o) { return *this = NAME((float)*this - (float)o); }    \
    NAME& operator*=(NAME o) { return *this = NAME((float)*this * (float)o); }    \
  };                                                                              \
  inline NAME operator+(NAME a, NAME b) { return NAME((float)a + (float)b); }     \
  inline NAME operator-(NAME a, NAME b) { return NAME((float)a - (float)b); }     \
  inline NAME operator*(NAME a, NAME b) { return NAME((float)a * (float)b); }     \
  inline NAME operator/(NAME a, NAME b) { return NAME((float)a / (float)b); }     \
  inline NAME operator-(NAME a) { return NAME(-(float)a); }                       \
  inline NAME __hadd(NAME a, NAME b) { return a + b; }                            \
  inline NAME __hsub(NAME a, NAME b) { return a - b; }                            \
  inline NAME __hmul(NAME a, NAME b) { return a * b; }                            \
  inline NAME __hfma(NAME a, NAME b, NAME c) {                                    \
    return NAME(fmaf((float)a, (float)b, (float)c));                              \
  }                                                                               \
  inline bool __hgt(NAME a, NAME b) { return (float)a > (float)b; }               \
  inline bool __heq(NAME a, NAME b) { return (float)a == (float)b; }              \
  inline bool __hne(NAME a, NAME b) { return (float)a != (float)b; }
CUEMU_NARROW(__half, half_bits, half_value)
CUEMU_NARROW(__nv_bfloat16, bfloat_bits, bfloat_value)
#undef CUEMU_NARROW

typedef __half half;
typedef __nv_bfloat16 nv_bfloat16;

inline float __half2float(__half h) { return (float)h; }
inline __half __float2half(float f) { return __half(f); }
inline __half __float2half_rn(float f) { return __half(f); }
inline __half __double2half(double d) { return __half((float)d); }
inline unsigned short __half_as_ushort(__half h) { return h.pattern; }
inline __half __ushort_as_half(unsigned short b) { return cuemu::bits<__half>(b); }
inline float __bfloat162float(__nv_bfloat16 h) { return (float)h; }
inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
inline __nv_bfloat16 __double2bfloat16(double d) { return __nv_bfloat16((float)d); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.pattern; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short b) {
  return cuemu::bits<__nv_bfloat16>(b);
}
