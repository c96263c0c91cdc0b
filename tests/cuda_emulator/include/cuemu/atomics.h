// SPDX-License-Identifier: Apache-2.0
// Atomic operations: they happen in the order of the schedule, and the checker knows them as such.
#pragma once
#include "cuemu/half.h"
#include "cuemu/runtime.h"

namespace cuemu {

template <class T, class... Listed>
constexpr bool is_one_of = (std::is_same<T, Listed>::value || ...);

// The types that CUDA declares them for. uint64_t and size_t are not among them: they are other
// types than unsigned long long, of the same size.
template <class T>
constexpr bool is_counter = is_one_of<T, unsigned>;
template <class T>
constexpr bool is_int = is_one_of<T, int, unsigned>;
template <class T>
constexpr bool is_word = is_one_of<T, int, unsigned, unsigned long long, long long>;
template <class T>
constexpr bool is_number = is_one_of<T, int, unsigned, unsigned long long, float>;
template <class T>
constexpr bool is_addable =
    is_one_of<T, int, unsigned, unsigned long long, float, double, __half, __nv_bfloat16>;

template <class T>
using Same = std::enable_if_t<true, T>;  // not deduced, so that atomicAdd(float*, 1) is accepted

template <class T>
inline T sum(T a, T b) {
  if constexpr (std::is_integral<T>::value) {
    using U = std::make_unsigned_t<T>;  // wraps around, as the hardware does
    return (T)((U)a + (U)b);
  } else {
    return (T)(a + b);
  }
}

}  // namespace cuemu

// `o` is the old value, `v` the operand. The touch comes first: the schedule may switch there.
#define CUEMU_ATOMIC_FUNCTION(NAME, ALLOWED, EXPRESSION)                       \
  template <class T>                                                           \
  CUEMU_QUIET T NAME(T* p, cuemu::Same<T> v) {                                 \
    static_assert(cuemu::ALLOWED<T>, #NAME " has no such type");               \
    cuemu_touch_atomic(p, sizeof(T), __builtin_return_address(0));             \
    T o;                                                                       \
    __builtin_memcpy(&o, p, sizeof(T));                                        \
    T n = (EXPRESSION);                                                        \
    __builtin_memcpy(p, &n, sizeof(T));                                        \
    return o;                                                                  \
  }
#define CUEMU_ATOMIC(NAME, ALLOWED, EXPRESSION)               \
  CUEMU_ATOMIC_FUNCTION(NAME, ALLOWED, EXPRESSION)            \
  CUEMU_ATOMIC_FUNCTION(NAME##_block, ALLOWED, EXPRESSION)
CUEMU_ATOMIC(atomicAdd, is_addable, cuemu::sum(o, v))
CUEMU_ATOMIC(atomicSub, is_int, (T)((unsigned)o - (unsigned)v))
CUEMU_ATOMIC(atomicExch, is_number, v)
CUEMU_ATOMIC(atomicMin, is_word, v < o ? v : o)
CUEMU_ATOMIC(atomicMax, is_word, v > o ? v : o)
CUEMU_ATOMIC(atomicAnd, is_word, (T)(o & v))
CUEMU_ATOMIC(atomicOr, is_word, (T)(o | v))
CUEMU_ATOMIC(atomicXor, is_word, (T)(o ^ v))
CUEMU_ATOMIC(atomicInc, is_counter, (T)(o >= v ? 0 : o + 1))
CUEMU_ATOMIC(atomicDec, is_counter, (T)(o == 0 || o > v ? v : o - 1))
#undef CUEMU_ATOMIC
#undef CUEMU_ATOMIC_FUNCTION

template <class T>
CUEMU_QUIET T atomicCAS(T* p, cuemu::Same<T> expected, cuemu::Same<T> v) {
  static_assert(cuemu::is_word<T> || cuemu::is_one_of<T, unsigned short>,
                "atomicCAS has no such type");
  cuemu_touch_atomic(p, sizeof(T), __builtin_return_address(0));
  T o;
  __builtin_memcpy(&o, p, sizeof(T));
  if (o == expected) __builtin_memcpy(p, &v, sizeof(T));
  return o;
}
