// SPDX-License-Identifier: Apache-2.0
// BE::Tensor: what a kernel sees of an array. It owns nothing and can be copied like a number.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <type_traits>

// For functions that kernels on the GPU call, too. The emulator compiles everything for the host.
#ifdef __CUDACC__
#define BE_HOST_DEVICE __host__ __device__
#else
#define BE_HOST_DEVICE
#endif

namespace BE {

enum class DType : uint8_t {
  Float16 = 0,
  Float32 = 1,
  Float64 = 2,
  BFloat16 = 3,
  Int8 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  UInt8 = 8,
  UInt16 = 9,
  UInt32 = 10,
  UInt64 = 11,
  Bool = 12,
  Complex64 = 13,
  Complex128 = 14,
  Invalid = 255,
};

// Bytes of one element; 0 for a dtype that kernels do not know.
BE_HOST_DEVICE constexpr size_t dtype_size(DType dtype) {
  constexpr size_t sizes[] = {2, 4, 8, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16};
  return dtype == DType::Invalid ? 0 : sizes[static_cast<int>(dtype)];
}

inline const char* dtype_name(DType dtype) {
  static const char* const names[] = {
      "float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64",
      "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"};
  return dtype == DType::Invalid ? "an unsupported dtype" : names[static_cast<int>(dtype)];
}

// Elements that C++ has no name for. Plain bits: convert them in the kernel, or include
// cuda_common.h, which brings the GPU's own 16-bit types.
struct float16_t {
  uint16_t bits;
  BE_HOST_DEVICE constexpr operator uint16_t() const { return bits; }
};
struct bfloat16_t {
  uint16_t bits;
  BE_HOST_DEVICE constexpr operator uint16_t() const { return bits; }
};

template <class Real>
struct Complex {
  Real re, im;
  // To std::complex and its relatives.
  template <class Other, std::enable_if_t<std::is_constructible<Other, Real, Real>::value, int> = 0>
  BE_HOST_DEVICE constexpr operator Other() const {
    return Other(re, im);
  }
};
using complex64_t = Complex<float>;
using complex128_t = Complex<double>;

// Whether elements of a dtype can be read as T. Numbers must be what they are taken for; unsigned
// integers, char, void and types of the user's are views of bits, and fit all.
template <class T>
constexpr bool can_view(DType holds) {
  const bool whole = (holds >= DType::Int8 && holds <= DType::UInt64) || holds == DType::Bool;
  if constexpr (std::is_same<T, float>::value) {
    return holds == DType::Float32 || holds == DType::Complex64;
  } else if constexpr (std::is_same<T, double>::value) {
    return holds == DType::Float64 || holds == DType::Complex128;
  } else if constexpr (std::is_same<T, bool>::value) {
    return whole && dtype_size(holds) == 1;
  } else if constexpr (std::is_integral<T>::value && std::is_signed<T>::value &&
                       !std::is_same<T, char>::value) {
    return whole && dtype_size(holds) == sizeof(T);
  } else {
    return true;
  }
}
[[noreturn]] void refuse_view(DType holds, const char* wanted, size_t bytes);  // check.h

constexpr int max_dimensions = 8;

class Tensor {
 public:
  Tensor() = default;

  Tensor(void* data, DType dtype, int ndim, const int64_t* shape)
      : data_(data), numel_(1), ndim_(ndim), dtype_(dtype) {
    for (int i = ndim - 1; i >= 0; --i) {
      shape_[i] = shape[i];
      strides_[i] = numel_;
      numel_ *= shape[i];
    }
  }

  BE_HOST_DEVICE void* data() const { return data_; }
  BE_HOST_DEVICE void* data_ptr() const { return data_; }
  template <class T>
  BE_HOST_DEVICE T* data_ptr() const {
#ifndef __CUDA_ARCH__  // on the GPU there is nobody to tell
    using Element = std::remove_cv_t<T>;
    if (!can_view<Element>(dtype_)) {
      const bool real = std::is_floating_point<Element>::value;
      refuse_view(dtype_, real ? "real numbers" : "signed integers", sizeof(Element));
    }
#endif
    return static_cast<T*>(data_);
  }

  BE_HOST_DEVICE DType dtype() const { return dtype_; }
  BE_HOST_DEVICE size_t element_size() const { return dtype_size(dtype_); }

  BE_HOST_DEVICE int ndim() const { return ndim_; }
  // The length along an axis; 1 for an axis that is not there.
  BE_HOST_DEVICE int64_t size(int axis) const { return has(axis) ? shape_[axis] : 1; }
  BE_HOST_DEVICE int64_t shape(int axis) const { return size(axis); }
  // Elements from one entry of an axis to the next.
  BE_HOST_DEVICE int64_t stride(int axis) const { return has(axis) ? strides_[axis] : 0; }
  BE_HOST_DEVICE const int64_t* shape_ptr() const { return shape_; }
  BE_HOST_DEVICE const int64_t* strides_ptr() const { return strides_; }

  BE_HOST_DEVICE int64_t numel() const { return numel_; }
  BE_HOST_DEVICE size_t nbytes() const { return static_cast<size_t>(numel_) * element_size(); }
  int numel_checked_int() const;                               // check.h
  BE_HOST_DEVICE bool is_contiguous() const { return true; }  // XLA gives no others

 private:
  BE_HOST_DEVICE bool has(int axis) const { return axis >= 0 && axis < ndim_; }

  void* data_ = nullptr;
  int64_t numel_ = 0;
  int64_t shape_[max_dimensions] = {};
  int64_t strides_[max_dimensions] = {};
  int ndim_ = 0;
  DType dtype_ = DType::Invalid;
};

}  // namespace BE
