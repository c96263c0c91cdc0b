// SPDX-License-Identifier: Apache-2.0
// From XLA's call to a kernel function: the generated wrapper is a few lines over this header.
//
// Only XLA's C header is used. Its C++ header costs several seconds in every translation unit.
// Handlers declare version 0.1 of XLA's interface whatever the header says: every release accepts
// an older version, and none a newer one.
#pragma once
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "brainevent/common.h"
#include "xla/ffi/api/c_api.h"

#ifdef BE_EMULATOR
extern "C" {
void* cuemu_alloc(size_t bytes, size_t element, int kind, const char* name);
void cuemu_release(void);
const char* cuemu_report(void);  // all findings since the last report; empty if there are none
void cuemu_lock(int on);
}
#endif

#ifdef _WIN32
#define BE_FFI_EXPORT extern "C" __declspec(dllexport)
#else
#define BE_FFI_EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace BE {
namespace ffi {

// --- what the wrapper says about a function --------------------------------------------------

struct Operand {
  const char* name;
  DType dtype;  // Invalid: any that kernels know
  int ndim;     // -1: any
};

struct Signature {
  const char* function;
  const Operand* args;
  int n_args;
  const Operand* rets;
  int n_rets;
  const char* const* attrs;
  int n_attrs;
  bool graph;  // the function may be captured into a CUDA graph
};

// A call that does not fit the signature; other exceptions come from the function.
class Refusal : public CheckError {
 public:
  using CheckError::CheckError;
};

// The stream of the call, as an integer or as a pointer of any type. Null on the CPU.
struct Stream {
  void* handle;
  operator int64_t() const { return reinterpret_cast<intptr_t>(handle); }
  template <class T>
  operator T*() const {
    return static_cast<T*>(handle);
  }
};

inline DType dtype_of(XLA_FFI_DataType type) {
  switch (type) {
    case XLA_FFI_DataType_PRED: return DType::Bool;
    case XLA_FFI_DataType_S8: return DType::Int8;
    case XLA_FFI_DataType_S16: return DType::Int16;
    case XLA_FFI_DataType_S32: return DType::Int32;
    case XLA_FFI_DataType_S64: return DType::Int64;
    case XLA_FFI_DataType_U8: return DType::UInt8;
    case XLA_FFI_DataType_U16: return DType::UInt16;
    case XLA_FFI_DataType_U32: return DType::UInt32;
    case XLA_FFI_DataType_U64: return DType::UInt64;
    case XLA_FFI_DataType_F16: return DType::Float16;
    case XLA_FFI_DataType_F32: return DType::Float32;
    case XLA_FFI_DataType_F64: return DType::Float64;
    case XLA_FFI_DataType_BF16: return DType::BFloat16;
    case XLA_FFI_DataType_C64: return DType::Complex64;
    case XLA_FFI_DataType_C128: return DType::Complex128;
    default: return DType::Invalid;  // numbers of 8 bits and fewer, tokens, and what is yet to come
  }
}

// An attribute's value as it travels: complex numbers as two reals, 16-bit floats as their bits.
template <class T> struct Scalar { using type = T; static constexpr int count = 1; };
template <> struct Scalar<float16_t> { using type = uint16_t; static constexpr int count = 1; };
template <> struct Scalar<bfloat16_t> { using type = uint16_t; static constexpr int count = 1; };
template <class R> struct Scalar<Complex<R>> { using type = R; static constexpr int count = 2; };

template <class T> constexpr DType dtype_for = DType::Invalid;
template <> constexpr DType dtype_for<bool> = DType::Bool;
template <> constexpr DType dtype_for<int8_t> = DType::Int8;
template <> constexpr DType dtype_for<int16_t> = DType::Int16;
template <> constexpr DType dtype_for<int32_t> = DType::Int32;
template <> constexpr DType dtype_for<int64_t> = DType::Int64;
template <> constexpr DType dtype_for<uint8_t> = DType::UInt8;
template <> constexpr DType dtype_for<uint16_t> = DType::UInt16;
template <> constexpr DType dtype_for<uint32_t> = DType::UInt32;
template <> constexpr DType dtype_for<uint64_t> = DType::UInt64;
template <> constexpr DType dtype_for<float> = DType::Float32;
template <> constexpr DType dtype_for<double> = DType::Float64;

// A number as the narrower type of the parameter it is for: C++ would cut a whole one without a
// word, and take a real one that is too large for infinity. A real number is rounded.
template <class To, class From>
To fit(From value, const char* name) {
  const To taken = static_cast<To>(value);
  bool same = static_cast<From>(taken) == value;
  if constexpr (std::is_floating_point<From>::value)
    same = taken - taken == 0 || value - value != 0;  // x - x is 0 if x is finite
  if constexpr (std::is_signed<From>::value && !std::is_signed<To>::value) same &= value >= From(0);
  if constexpr (!std::is_signed<From>::value && std::is_signed<To>::value) same &= taken >= To(0);
  if (!same) {
    Text text;
    text << "attribute `" << name << "` does not fit.\n    expected: a number that the function's "
         << dtype_for<To> << " holds\n    got:      " << value;
    throw Refusal(text);
  }
  return taken;
}

// --- one call ----------------------------------------------------------------------------------

// What a wrapper's body takes its arguments from. `N` is the number of operands and results.
template <int N>
class Call {
 public:
  Call(XLA_FFI_CallFrame* frame, const Signature& signature) : frame_(frame), sig_(signature) {
    check_count("operand", sig_.n_args, frame->args.size);
    check_count("result", sig_.n_rets, frame->rets.size);
    for (int i = 0; i < sig_.n_args; ++i)
      tensors_[i] = view("argument", i, sig_.args[i], frame->args.args[i]);
    for (int i = 0; i < sig_.n_rets; ++i)
      tensors_[sig_.n_args + i] = view("result", i, sig_.rets[i], frame->rets.rets[i]);
    check_attributes();
  }

  const Tensor& arg(int i) const { return tensors_[i]; }
  Tensor& ret(int i) { return tensors_[sig_.n_args + i]; }

  Stream stream() const { return stream_; }
  void set_stream(void* handle) { stream_ = Stream{handle}; }

  // The attribute `name`, whose type must be T's and no other: a number must not be reinterpreted.
  template <class T>
  T attr(const char* name) const {
    using Part = typename Scalar<T>::type;
    constexpr int count = Scalar<T>::count;
    const int64_t i = find(name);
    const void* value = nullptr;
    DType dtype = DType::Invalid;
    int64_t size = 0;
    if (i >= 0 && frame_->attrs.types[i] == XLA_FFI_AttrType_SCALAR) {
      const auto* scalar = static_cast<const XLA_FFI_Scalar*>(frame_->attrs.attrs[i]);
      value = scalar->value, dtype = dtype_of(scalar->dtype), size = 1;
    } else if (i >= 0 && frame_->attrs.types[i] == XLA_FFI_AttrType_ARRAY) {
      const auto* array = static_cast<const XLA_FFI_Array*>(frame_->attrs.attrs[i]);
      value = array->data, dtype = dtype_of(array->dtype), size = static_cast<int64_t>(array->size);
    }
    if (value == nullptr || dtype != dtype_for<Part> || size != count) {
      Text text;
      text << "attribute `" << name << "` does not fit.\n    expected: " << dtype_for<Part>;
      if (count > 1) text << " array of " << count;
      text << "\n    got:      ";
      if (i < 0) {
        text << "nothing of that name";
      } else if (value == nullptr) {
        text << "something that is not a number";
      } else {
        text << dtype;
        if (size != 1) text << " array of " << size;
      }
      text << "\n    remedy:   pass a NumPy number of that very type, such as np.float32(0.5); "
              "Python numbers arrive as int64 and float64";
      throw Refusal(text);
    }
    T result;
    memcpy(&result, value, sizeof(Part) * count);
    return result;
  }

 private:
  void check_count(const char* what, int64_t expected, int64_t got) const {
    if (expected == got) return;
    Text text;
    text << "wrong number of " << what << "s.\n    expected: " << expected << "\n    got:      "
         << got;
    throw Refusal(text);
  }

  Tensor view(const char* side, int i, const Operand& wanted, void* raw) const {
    const auto* buffer = static_cast<const XLA_FFI_Buffer*>(raw);
    const DType dtype = dtype_of(buffer->dtype);
    const bool fits = buffer->rank <= max_dimensions && dtype != DType::Invalid;
    const Tensor tensor(buffer->data, dtype, fits ? static_cast<int>(buffer->rank) : 0, buffer->dims);
    if (fits && (wanted.dtype == DType::Invalid || wanted.dtype == dtype) &&
        (wanted.ndim < 0 || wanted.ndim == buffer->rank))
      return tensor;
    Text text;
    text << side << " " << i << " (`" << wanted.name << "`) does not fit.\n    expected: ";
    if (wanted.dtype == DType::Invalid) {
      text << "a dtype that kernels know";
    } else {
      text << wanted.dtype;
    }
    if (wanted.ndim < 0) {
      text << ", at most " << max_dimensions << " dimensions";
    } else {
      text << ", " << wanted.ndim << " dimensions";
    }
    text << "\n    got:      " << dtype << ", " << buffer->rank << " dimensions";
    throw Refusal(text);
  }

  int64_t find(const char* name) const {
    for (int64_t i = 0; i < frame_->attrs.size; ++i) {
      const XLA_FFI_ByteSpan* span = frame_->attrs.names[i];
      if (span->len == strlen(name) && memcmp(span->ptr, name, span->len) == 0) return i;
    }
    return -1;
  }

  // Names that the function does not have; those that are missing show when they are asked for.
  void check_attributes() const {
    int64_t known = 0;
    for (int i = 0; i < sig_.n_attrs; ++i) known += find(sig_.attrs[i]) >= 0;
    if (known == frame_->attrs.size) return;
    Text text;
    text << "unknown attribute.\n    expected: ";
    for (int i = 0; i < sig_.n_attrs; ++i) text << (i ? ", " : "") << sig_.attrs[i];
    if (sig_.n_attrs == 0) text << "no attributes";
    text << "\n    got:      " << frame_->attrs.size << " attributes, " << known << " of them known";
    throw Refusal(text);
  }

  XLA_FFI_CallFrame* frame_;
  const Signature& sig_;
  Stream stream_ = {nullptr};
  Tensor tensors_[N > 0 ? N : 1];
};

inline XLA_FFI_Error* make_error(XLA_FFI_CallFrame* frame, XLA_FFI_Error_Code code,
                                 const char* text) {
  XLA_FFI_Error_Create_Args args;
  memset(&args, 0, sizeof args);
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = text;
  args.errc = code;
  return frame->api->XLA_FFI_Error_Create(&args);
}

// True if XLA only asks which version of its interface the handler speaks, and what it may do.
inline bool answered_metadata(XLA_FFI_CallFrame* frame, bool graph) {
  for (XLA_FFI_Extension_Base* e = frame->extension_start; e != nullptr; e = e->next) {
    if (e->type != XLA_FFI_Extension_Metadata) continue;
    XLA_FFI_Metadata* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
    metadata->api_version.major_version = 0;
    metadata->api_version.minor_version = 1;
    metadata->traits = graph ? XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE : 0;
    return true;
  }
  return false;
}

// --- where operands lie ------------------------------------------------------------------------

#ifdef BE_EMULATOR

// Every operand in a guarded place of its own, so that the emulator knows who may touch what.
// One call at a time: the emulator plays one device.
template <int N>
class Memory {
 public:
  Memory(Call<N>& call, const Signature& sig) : call_(call), sig_(sig) {
    cuemu_lock(1);
    for (int i = 0; i < sig.n_args; ++i) outside_[i] = call.arg(i);
    for (int i = 0; i < sig.n_rets; ++i) outside_[sig.n_args + i] = call.ret(i);
    for (int i = 0; i < sig.n_args; ++i) {
      bool alias = false;
      for (int k = 0; k < sig.n_rets; ++k) alias |= same(outside_[i], outside_[sig.n_args + k]);
      const int kind = alias ? 4 : 5;  // defined content, and for a plain operand read-only
      bring(const_cast<Tensor&>(call.arg(i)), outside_[i], kind, sig.args[i].name);
      memcpy(call.arg(i).data(), outside_[i].data(), outside_[i].nbytes());
    }
    for (int k = 0; k < sig.n_rets; ++k) {
      const Tensor& out = outside_[sig.n_args + k];
      bool alias = false;
      for (int i = 0; i < sig.n_args && !alias; ++i)
        if ((alias = same(outside_[i], out))) call.ret(k) = call.arg(i);
      if (!alias) bring(call.ret(k), out, 2, sig.rets[k].name);  // undefined content, to be written
    }
  }
  Memory(const Memory&) = delete;
  ~Memory() { cuemu_lock(0); }

  // Copies results back if all went well; returns the findings, or an empty text.
  const char* finish(bool succeeded) {
    for (int k = 0; succeeded && k < sig_.n_rets; ++k) {
      const Tensor& out = outside_[sig_.n_args + k];
      memcpy(out.data(), call_.ret(k).data(), out.nbytes());
    }
    cuemu_release();
    return cuemu_report();
  }

 private:
  static bool same(const Tensor& a, const Tensor& b) {
    return a.numel() > 0 && b.numel() > 0 && a.data() == b.data();
  }
  static void bring(Tensor& tensor, const Tensor& outside, int kind, const char* name) {
    void* place = cuemu_alloc(outside.nbytes(), outside.element_size(), kind, name);
    tensor = Tensor(place, outside.dtype(), outside.ndim(), outside.shape_ptr());
  }

  Call<N>& call_;
  const Signature& sig_;
  Tensor outside_[N > 0 ? N : 1];
};

#else

template <int N>
struct Memory {
  Memory(Call<N>&, const Signature&) {}
  const char* finish(bool) { return ""; }
};

#endif

// --- the handler -------------------------------------------------------------------------------

struct Problem {
  XLA_FFI_Error_Code code = XLA_FFI_Error_Code_OK;
  Text text;
};

// Runs `act`; an exception becomes the problem. Nothing may leave a C function as an exception.
template <class Act>
void attempt(Problem& problem, const char* function, Act act) {
  try {
    act();
    return;
  } catch (const Refusal& refusal) {
    problem.code = XLA_FFI_Error_Code_INVALID_ARGUMENT;
    problem.text << function << ": " << refusal.what();
  } catch (const std::exception& error) {
    problem.code = XLA_FFI_Error_Code_INTERNAL;
    problem.text << function << ": " << error.what();
  } catch (...) {
    problem.code = XLA_FFI_Error_Code_INTERNAL;
    problem.text << function << ": an exception that says nothing about itself";
  }
}

template <int N, class Body>
XLA_FFI_Error* run(XLA_FFI_CallFrame* frame, const Signature& sig, Call<N>& call, Body body) {
  Problem problem;
  Memory<N> memory(call, sig);
  attempt(problem, sig.function, [&] {
    body(call);
#if defined(__CUDACC__) || defined(BE_EMULATOR)
    BE_CHECK_KERNEL_LAUNCH();
#endif
  });
  const bool ok = problem.code == XLA_FFI_Error_Code_OK;
  const char* findings = memory.finish(ok);
  if (*findings) return make_error(frame, XLA_FFI_Error_Code_INTERNAL, findings);
  return ok ? nullptr : make_error(frame, problem.code, problem.text.readable());
}

// The whole life of one call from XLA.
template <int N, class Body>
XLA_FFI_Error* handle(XLA_FFI_CallFrame* frame, const Signature& sig, Body body) {
  if (answered_metadata(frame, sig.graph)) return nullptr;
  Problem problem;
  XLA_FFI_Error* error = nullptr;
  attempt(problem, sig.function, [&] {
    Call<N> call(frame, sig);
#if defined(__CUDACC__)
    XLA_FFI_Stream_Get_Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = XLA_FFI_Stream_Get_Args_STRUCT_SIZE;
    args.ctx = frame->ctx;
    error = frame->api->XLA_FFI_Stream_Get(&args);
    if (error != nullptr) return;
    call.set_stream(args.stream);
#endif
    error = run<N>(frame, sig, call, body);
  });
  if (problem.code != XLA_FFI_Error_Code_OK)
    error = make_error(frame, problem.code, problem.text.readable());
  return error;
}

}  // namespace ffi
}  // namespace BE
