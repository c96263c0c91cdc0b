// SPDX-License-Identifier: Apache-2.0
// BE_DISPATCH_*: run a block with a dtype's C++ type, whose name you choose.
//
//   BE_DISPATCH_FLOATING(x.dtype(), T, {
//     const T* a = x.data_ptr<T>();
//     ...
//   });
//
// A dtype that the block is not made for is an error of the call. The block is compiled once for
// each type, so take the narrowest list that will do.
#pragma once
#include "brainevent/check.h"

namespace BE {
namespace detail {

[[noreturn]] inline void unsupported(const char* dispatch, DType dtype, const char* file, int line) {
  Text text;
  text << dispatch << " has no case for " << dtype << " (" << file << ":" << line << ")";
  throw CheckError(text);
}

}  // namespace detail
}  // namespace BE

#define BE_DISPATCH_CASE_(NAME, TYPE, T, ...) \
  case ::BE::DType::NAME: {                   \
    using T [[maybe_unused]] = TYPE;          \
    __VA_ARGS__                               \
    break;                                    \
  }
#define BE_DISPATCH_SWITCH_(DISPATCH, DTYPE, CASES)                            \
  do {                                                                         \
    const ::BE::DType be_dtype_ = (DTYPE);                                     \
    switch (be_dtype_) {                                                       \
      CASES                                                                    \
      default: ::BE::detail::unsupported(DISPATCH, be_dtype_, __FILE__, __LINE__); \
    }                                                                          \
  } while (0)

#define BE_CASES_FLOATING_(T, ...)                    \
  BE_DISPATCH_CASE_(Float32, float, T, __VA_ARGS__)   \
  BE_DISPATCH_CASE_(Float64, double, T, __VA_ARGS__)
#define BE_CASES_INTEGRAL_(T, ...)                     \
  BE_DISPATCH_CASE_(Bool, bool, T, __VA_ARGS__)        \
  BE_DISPATCH_CASE_(Int8, int8_t, T, __VA_ARGS__)      \
  BE_DISPATCH_CASE_(Int16, int16_t, T, __VA_ARGS__)    \
  BE_DISPATCH_CASE_(Int32, int32_t, T, __VA_ARGS__)    \
  BE_DISPATCH_CASE_(Int64, int64_t, T, __VA_ARGS__)    \
  BE_DISPATCH_CASE_(UInt8, uint8_t, T, __VA_ARGS__)    \
  BE_DISPATCH_CASE_(UInt16, uint16_t, T, __VA_ARGS__)  \
  BE_DISPATCH_CASE_(UInt32, uint32_t, T, __VA_ARGS__)  \
  BE_DISPATCH_CASE_(UInt64, uint64_t, T, __VA_ARGS__)
#define BE_CASES_SIGNED_INDEX_(T, ...)               \
  BE_DISPATCH_CASE_(Int32, int32_t, T, __VA_ARGS__)  \
  BE_DISPATCH_CASE_(Int64, int64_t, T, __VA_ARGS__)
#define BE_CASES_COMPLEX_(T, ...)                                   \
  BE_DISPATCH_CASE_(Complex64, ::BE::complex64_t, T, __VA_ARGS__)   \
  BE_DISPATCH_CASE_(Complex128, ::BE::complex128_t, T, __VA_ARGS__)
#define BE_CASES_HALF_(T, ...)                                      \
  BE_DISPATCH_CASE_(Float16, BE_FLOAT16_TYPE, T, __VA_ARGS__)       \
  BE_DISPATCH_CASE_(BFloat16, BE_BFLOAT16_TYPE, T, __VA_ARGS__)

// Bits on the CPU; cuda_common.h makes them the GPU's own types.
#define BE_FLOAT16_TYPE ::BE::float16_t
#define BE_BFLOAT16_TYPE ::BE::bfloat16_t

#define BE_DISPATCH_FLOATING(DTYPE, T, ...) \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_FLOATING", DTYPE, BE_CASES_FLOATING_(T, __VA_ARGS__))
// With 16-bit types only where there is arithmetic for them: after cuda_common.h.
#define BE_DISPATCH_FLOATING_AND_HALF(DTYPE, T, ...) \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_FLOATING_AND_HALF", DTYPE, BE_CASES_FLOATING_(T, __VA_ARGS__))
#define BE_DISPATCH_INTEGRAL(DTYPE, T, ...) \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_INTEGRAL", DTYPE, BE_CASES_INTEGRAL_(T, __VA_ARGS__))
#define BE_DISPATCH_COMPLEX(DTYPE, T, ...) \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_COMPLEX", DTYPE, BE_CASES_COMPLEX_(T, __VA_ARGS__))
#define BE_DISPATCH_ALL_TYPES(DTYPE, T, ...)            \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_ALL_TYPES", DTYPE,   \
                      BE_CASES_FLOATING_(T, __VA_ARGS__) BE_CASES_INTEGRAL_(T, __VA_ARGS__))
#define BE_DISPATCH_ALL(DTYPE, T, ...)                                                    \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_ALL", DTYPE,                                           \
                      BE_CASES_FLOATING_(T, __VA_ARGS__) BE_CASES_INTEGRAL_(T, __VA_ARGS__) \
                          BE_CASES_HALF_(T, __VA_ARGS__) BE_CASES_COMPLEX_(T, __VA_ARGS__))
#define BE_DISPATCH_SIGNED_INDEX(DTYPE, T, ...) \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_SIGNED_INDEX", DTYPE, BE_CASES_SIGNED_INDEX_(T, __VA_ARGS__))
#define BE_DISPATCH_CSR_INDPTR(DTYPE, T, ...) \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_CSR_INDPTR", DTYPE, BE_CASES_SIGNED_INDEX_(T, __VA_ARGS__))

// Two dtypes, two names.
#define BE_PAIR_CASE_(NAME, TYPE, DTYPE2, T1, T2, ...)      \
  case ::BE::DType::NAME: {                                 \
    using T1 [[maybe_unused]] = TYPE;                       \
    BE_DISPATCH_SIGNED_INDEX(DTYPE2, T2, __VA_ARGS__);      \
    break;                                                  \
  }
#define BE_DISPATCH_SIGNED_INDEX_PAIR(DTYPE1, DTYPE2, T1, T2, ...)                    \
  BE_DISPATCH_SWITCH_("BE_DISPATCH_SIGNED_INDEX_PAIR", DTYPE1,                        \
                      BE_PAIR_CASE_(Int32, int32_t, DTYPE2, T1, T2, __VA_ARGS__)      \
                          BE_PAIR_CASE_(Int64, int64_t, DTYPE2, T1, T2, __VA_ARGS__))

#define BE_CHECK_CSR_INDICES_INT32(TENSOR)                  \
  BE_CHECK((TENSOR).dtype() == ::BE::DType::Int32)          \
      << "the column indices are " << (TENSOR).dtype() << ", this kernel takes int32"
