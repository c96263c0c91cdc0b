// SPDX-License-Identifier: Apache-2.0
// BE_CHECK: refuse a call with a text that its caller reads as the error of the call.
//
//   BE_CHECK(x.ndim() == 2) << "x has " << x.ndim() << " dimensions";
//
// On the host it throws BE::CheckError. On the GPU there is nobody to catch it: the kernel stops.
#pragma once
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <exception>
#include <type_traits>

#include "brainevent/tensor.h"

#if defined(__CUDACC__) || defined(BE_EMULATOR)
#include <cuda_runtime.h>
#endif

#ifdef BE_EMULATOR  // supplied by the emulator's run time
extern "C" void cuemu_trap(const char* what, const char* file, int line);
extern "C" __attribute__((weak)) int cuemu_in_kernel(void);
#endif

namespace BE {

// A text in a fixed place. Streams and strings of the C++ library cost seconds of compilation.
class Text {
 public:
  const char* c_str() const { return text_; }
  bool empty() const { return text_[0] == 0; }

  // The text, fit to be read as UTF-8: what is none, or was cut off, becomes question marks.
  const char* readable() {
    bool sound = true;
    for (const char* c = text_; *c && sound;) {
      const unsigned char lead = static_cast<unsigned char>(*c++);
      int more = lead < 0x80 ? 0 : lead >> 5 == 6 ? 1 : lead >> 4 == 14 ? 2 : lead >> 3 == 30 ? 3 : -1;
      sound = more >= 0;
      for (; more > 0 && sound; --more) sound = (static_cast<unsigned char>(*c++) >> 6) == 2;
    }
    for (char* c = text_; *c && !sound; ++c)
      if (static_cast<unsigned char>(*c) >= 0x80) *c = '?';
    return text_;
  }

  Text& operator<<(const char* part) { return add("%s", part ? part : "(null)"); }
  Text& operator<<(bool part) { return add("%s", part ? "true" : "false"); }
  Text& operator<<(char part) { return add("%c", part); }
  Text& operator<<(const void* part) { return add("%p", part); }
  Text& operator<<(DType part) { return add("%s", dtype_name(part)); }
  Text& operator<<(const Tensor& part) {
    *this << part.dtype() << "[";
    for (int i = 0; i < part.ndim(); ++i) *this << (i ? ", " : "") << part.size(i);
    return *this << "]";
  }
  // Numbers, and whatever has c_str().
  template <class T, std::enable_if_t<!std::is_pointer<std::decay_t<T>>::value, int> = 0>
  Text& operator<<(const T& part) {
    if constexpr (std::is_floating_point<T>::value) {
      return add("%g", static_cast<double>(part));
    } else if constexpr (std::is_enum<T>::value || std::is_signed<T>::value) {
      return add("%lld", static_cast<long long>(part));
    } else if constexpr (std::is_unsigned<T>::value) {
      return add("%llu", static_cast<unsigned long long>(part));
    } else {
      return add("%s", part.c_str());
    }
  }

 private:
  template <class T>
  Text& add(const char* format, T part) {
    const int written = snprintf(text_ + used_, sizeof text_ - used_, format, part);
    const size_t room = sizeof text_ - used_ - 1;
    used_ += written < 0 ? 0 : static_cast<size_t>(written) < room ? static_cast<size_t>(written) : room;
    return *this;
  }

  size_t used_ = 0;
  char text_[2000] = {};
};

class CheckError : public std::exception {
 public:
  explicit CheckError(const Text& text) : text_(text) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Text text_;
};

inline void refuse_view(DType holds, const char* wanted, size_t bytes) {
  Text text;
  text << "an array of " << holds << " is read as " << wanted << " of " << bytes
       << " bytes; convert it before the call, or dispatch on its dtype";
  throw CheckError(text);
}

class CudaError : public CheckError {
 public:
  using CheckError::CheckError;
};

namespace detail {

// What a failed BE_CHECK gathers before it is raised; on the GPU it gathers nothing.
class Failure {
 public:
  BE_HOST_DEVICE Failure(const char* condition, const char* file, int line)
      : condition_(condition), file_(file), line_(line) {}

  template <class T>
  BE_HOST_DEVICE Failure& operator<<(const T& part) {
#ifdef __CUDA_ARCH__
    (void)part;
#else
    said_ << part;
#endif
    return *this;
  }

  [[noreturn]] BE_HOST_DEVICE void raise() const {
#ifdef __CUDA_ARCH__
    printf("check `%s` failed at %s:%d\n", condition_, file_, line_);
    __trap();
#else
#ifdef BE_EMULATOR
    if (cuemu_in_kernel && cuemu_in_kernel()) cuemu_trap(said_.c_str(), file_, line_);
#endif
    Text text;
    if (!said_.empty()) text << said_ << " (";
    text << "check `" << condition_ << "` failed at " << file_ << ":" << line_;
    if (!said_.empty()) text << ")";
    throw CheckError(text);
#endif
  }

 private:
  const char* condition_;
  const char* file_;
  int line_;
#ifndef __CUDA_ARCH__
  Text said_;
#endif
};

// Binds weaker than <<, so it raises what has been gathered.
struct Raise {
  [[noreturn]] BE_HOST_DEVICE void operator&(const Failure& failure) const { failure.raise(); }
};

}  // namespace detail

inline int Tensor::numel_checked_int() const {
  if (numel_ > INT_MAX) {
    Text text;
    text << "an array of " << numel_ << " elements is too large for this kernel";
    throw CheckError(text);
  }
  return static_cast<int>(numel_);
}

}  // namespace BE

#define BE_CHECK(condition) \
  (condition) ? (void)0     \
              : ::BE::detail::Raise() & ::BE::detail::Failure(#condition, __FILE__, __LINE__)

#if defined(__CUDACC__) || defined(BE_EMULATOR)
namespace BE {
namespace detail {

inline void cuda_check(cudaError_t status, const char* what, const char* file, int line) {
  if (status == cudaSuccess) return;
  Text text;
  text << cudaGetErrorString(status) << " (" << what << " at " << file << ":" << line << ")";
  throw CudaError(text);
}

}  // namespace detail
}  // namespace BE

#define BE_CUDA_CHECK(expression) \
  ::BE::detail::cuda_check((expression), #expression, __FILE__, __LINE__)
// After a launch: was it accepted? With _SYNC: did the kernel end well? That waits for the GPU, so
// it is for debugging only, and never inside a CUDA graph.
#define BE_CHECK_KERNEL_LAUNCH() \
  ::BE::detail::cuda_check(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)
#define BE_CHECK_KERNEL_LAUNCH_SYNC()                                               \
  (BE_CHECK_KERNEL_LAUNCH(), ::BE::detail::cuda_check(cudaDeviceSynchronize(), "kernel", \
                                                      __FILE__, __LINE__))
#endif
