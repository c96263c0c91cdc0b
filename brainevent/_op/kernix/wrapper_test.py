# SPDX-License-Identifier: Apache-2.0
"""The text of a handler, from its tokens."""

from brainevent._op.kernix.source import FunctionSpec
from brainevent._op.kernix.tokens import Token
from brainevent._op.kernix.wrapper import wrapper_text


def test_the_text_of_a_handler():
    tokens = (
        Token('arg', 'x', 'float32', 2),
        Token('attr', 'k', 'complex64'),
        Token('ret', 'y'),
        Token('stream'),
        Token('arg', ''),
    )
    text = wrapper_text([FunctionSpec('f', tokens)], graph=False)
    assert (
        text
        == """
#include "brainevent/ffi.h"

BE_FFI_EXPORT XLA_FFI_Error* be_f(XLA_FFI_CallFrame* be_frame) {
  static const BE::ffi::Operand be_args[] = \
{{"x", BE::DType::Float32, 2}, {"no name", BE::DType::Invalid, -1}};
  static const BE::ffi::Operand be_rets[] = {{"y", BE::DType::Invalid, -1}};
  static const char* const be_attrs[] = {"k"};
  static const BE::ffi::Signature be_signature = {
      "f", be_args, 2, be_rets, 1, be_attrs, 1,
      false};
  return BE::ffi::handle<3>(be_frame, be_signature, [](BE::ffi::Call<3>& be_call) {
    const auto be_attr_k = be_call.attr<BE::complex64_t>("k");
    f(be_call.arg(0), be_attr_k, be_call.ret(0), be_call.stream(), be_call.arg(1));
  });
}
"""
    )


def test_what_there_is_none_of():
    text = wrapper_text([FunctionSpec('f', (Token('ret'),))], graph=True)
    assert 'static const BE::ffi::Operand* const be_args = nullptr;' in text
    assert 'static const char* const* const be_attrs = nullptr;' in text
    assert 'true};' in text
