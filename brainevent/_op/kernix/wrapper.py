# SPDX-License-Identifier: Apache-2.0
"""The text of the handlers: what stands between XLA's call and a kernel function."""

from __future__ import annotations

import json
from collections.abc import Iterable

from brainevent._op.kernix.runtime import PREFIX
from brainevent._op.kernix.source import FunctionSpec
from brainevent._op.kernix.tokens import DTYPES, Token


def wrapper_text(specs: Iterable[FunctionSpec], graph: bool) -> str:
    """Write the handlers of some functions, to stand behind their source.

    Parameters
    ----------
    specs : iterable of FunctionSpec
    graph : bool
        Allow XLA to capture calls into a CUDA graph.
    """
    handlers = (_handler(spec, graph) for spec in specs)
    return '\n#include "brainevent/ffi.h"\n' + ''.join(handlers)


def _handler(spec: FunctionSpec, graph: bool) -> str:
    args, rets, attrs = spec.of('arg'), spec.of('ret'), spec.of('attr')
    call = f'BE::ffi::Call<{len(args) + len(rets)}>'
    values = ''.join(f'    const auto be_attr_{t.name} = be_call.attr<{_type(t)}>("{t.name}");\n'
                     for t in attrs)  # fmt: skip
    return f"""
BE_FFI_EXPORT XLA_FFI_Error* {PREFIX}{spec.name}(XLA_FFI_CallFrame* be_frame) {{
{_table('BE::ffi::Operand', 'be_args', map(_operand, args))}\
{_table('BE::ffi::Operand', 'be_rets', map(_operand, rets))}\
{_table('char* const', 'be_attrs', (json.dumps(t.name) for t in attrs))}\
  static const BE::ffi::Signature be_signature = {{
      "{spec.name}", be_args, {len(args)}, be_rets, {len(rets)}, be_attrs, {len(attrs)},
      {str(graph).lower()}}};
  return BE::ffi::handle<{len(args) + len(rets)}>(be_frame, be_signature, []({call}& be_call) {{
{values}    {spec.name}({', '.join(_passed(spec))});
  }});
}}
"""


def _type(token: Token) -> str:
    assert token.dtype is not None
    return DTYPES[token.dtype][0]


def _table(of: str, name: str, rows: Iterable[str]) -> str:
    """Write an array; C++ has none of length zero."""
    body = ', '.join(rows)
    if not body:
        return f'  static const {of}* const {name} = nullptr;\n'
    return f'  static const {of} {name}[] = {{{body}}};\n'


def _operand(token: Token) -> str:
    dtype = DTYPES[token.dtype][1] if token.dtype else 'Invalid'
    ndim = -1 if token.ndim is None else token.ndim
    return f'{{{json.dumps(token.name or "no name")}, BE::DType::{dtype}, {ndim}}}'


def _passed(spec: FunctionSpec) -> Iterable[str]:
    """Yield what the wrapper passes for each parameter."""
    count = {'arg': 0, 'ret': 0}
    for token in spec.tokens:
        if token.kind in count:
            yield f'be_call.{token.kind}({count[token.kind]})'
            count[token.kind] += 1
        elif token.kind == 'stream':
            yield 'be_call.stream()'
        elif token.fit is None:
            yield f'be_attr_{token.name}'
        else:
            yield f'BE::ffi::fit<{DTYPES[token.fit][0]}>(be_attr_{token.name}, "{token.name}")'
