// SPDX-License-Identifier: Apache-2.0
// Undefined behaviour: g++ -fsanitize=... calls a handler, which makes it a finding.
#include "machine.h"

namespace {

struct Location {
  const char* file;
  unsigned line, column;
};
struct TypeMismatch {
  Location at;
  const void* type;
  unsigned char log_alignment, kind;
};

void undefined(const char* what, const Location& at) {
  std::lock_guard<std::recursive_mutex> hold(cuemu::guard);  // it may be host code
  cuemu::find("undefined", cuemu::place(at.file, static_cast<int>(at.line)), "%s", what);
}

}  // namespace

#define HANDLER_1(NAME, WHAT) \
  void __ubsan_handle_##NAME(Location* at, void*) { undefined(WHAT, *at); }
#define HANDLER_2(NAME, WHAT) \
  void __ubsan_handle_##NAME(Location* at, void*, void*) { undefined(WHAT, *at); }

extern "C" {
HANDLER_2(add_overflow, "signed integer overflow (+)")
HANDLER_2(sub_overflow, "signed integer overflow (-)")
HANDLER_2(mul_overflow, "signed integer overflow (*)")
HANDLER_1(negate_overflow, "signed integer overflow (negation)")
HANDLER_2(shift_out_of_bounds, "shift out of range")
HANDLER_1(out_of_bounds, "index out of a fixed-size array")
HANDLER_1(float_cast_overflow, "conversion of a float that does not fit")
HANDLER_1(load_invalid_value, "a bool that is neither 0 nor 1")
void __ubsan_handle_divrem_overflow(Location* at, void*, void*) {
  undefined("division by zero or overflow", *at);
  if (cuemu::in_kernel()) cuemu::leave();  // the processor would stop the process
}
void __ubsan_handle_type_mismatch_v1(TypeMismatch* about, void* pointer) {
  undefined(pointer ? "misaligned pointer" : "null pointer", about->at);
  if (cuemu::in_kernel()) cuemu::leave();
}
}
