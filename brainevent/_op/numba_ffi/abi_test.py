# SPDX-License-Identifier: Apache-2.0
"""The offsets of the C structs, against the header that jaxlib brings along."""

import re
from pathlib import Path

import jaxlib
import pytest

from brainevent._op.numba_ffi import abi

HEADER = Path(jaxlib.__file__).parent / 'include' / 'xla' / 'ffi' / 'api' / 'c_api.h'


@pytest.fixture(scope='module')
def structs():
    """Parse the header's structs: name -> list of (field, type)."""
    if not HEADER.exists():
        pytest.skip('jaxlib brings no header')
    text = re.sub(r'//.*', '', HEADER.read_text())
    field = r'_XLA_FFI_API_STRUCT_FIELD\((\w+)\)'
    text = re.sub(field, r'\1* \1', text)
    found = {}
    for name, body in re.findall(r'struct (XLA_FFI_\w+) \{(.*?)\n\}', text, re.S):
        lines = [line.split() for line in body.replace('*', '* ').split(';') if line.strip()]
        found[name] = [(line[-1], ' '.join(line[:-1])) for line in lines]
    return found


def size(kind, structs):
    if '*' in kind or kind in ('size_t', 'int64_t'):
        return 8
    if kind in structs:
        return -(-layout(kind, structs)['end'] // 8) * 8 if kind != 'XLA_FFI_Api_Version' else 24
    return 4  # int and enumerations


def layout(name, structs):
    """Return the byte offset of every field, and of the end."""
    offsets, at = {}, 0
    for field, kind in structs[name]:
        width = size(kind, structs)
        step = min(width, 8)
        at = -(-at // step) * step
        offsets[field] = at
        at += width
    return {**offsets, 'end': at}


def test_frame(structs):
    frame = layout('XLA_FFI_CallFrame', structs)
    args = layout('XLA_FFI_Args', structs)
    assert frame['extension_start'] == 8 * abi.FRAME_EXTENSION
    assert frame['api'] == 8 * abi.FRAME_API
    assert frame['ctx'] == 8 * abi.FRAME_CONTEXT
    assert frame['args'] + args['args'] == 8 * abi.FRAME_ARGS
    assert frame['rets'] + layout('XLA_FFI_Rets', structs)['rets'] == 8 * abi.FRAME_RETS
    assert frame['end'] >= 8 * abi.FRAME_WORDS


def test_buffer(structs):
    buffer = layout('XLA_FFI_Buffer', structs)
    assert buffer['data'] == 8 * abi.BUFFER_DATA
    assert buffer['rank'] == 8 * abi.BUFFER_RANK
    assert buffer['dims'] == 8 * abi.BUFFER_DIMS
    assert buffer['end'] == 8 * abi.BUFFER_WORDS


def test_metadata(structs):
    extension = layout('XLA_FFI_Metadata_Extension', structs)
    version = layout('XLA_FFI_Metadata', structs)['api_version']
    assert extension['metadata'] == 8 * abi.EXTENSION_METADATA
    assert extension['end'] == 8 * abi.EXTENSION_WORDS
    parts = layout('XLA_FFI_Api_Version', structs)
    assert version + parts['major_version'] == abi.METADATA_VERSION_BYTE
    assert parts['minor_version'] - parts['major_version'] == 4


def test_functions(structs):
    api = layout('XLA_FFI_Api', structs)
    assert api['XLA_FFI_Error_Create'] == 8 * abi.API_ERROR_CREATE
    assert api['XLA_FFI_Error_Destroy'] == 8 * abi.API_ERROR_DESTROY
    assert api['XLA_FFI_ThreadPool_Schedule'] == 8 * abi.API_SCHEDULE
    assert api['end'] >= 8 * abi.API_WORDS


def test_arguments(structs):
    assert layout('XLA_FFI_Error_Create_Args', structs)['end'] == abi.ERROR_ARGS_BYTES
    assert layout('XLA_FFI_Error_Destroy_Args', structs)['end'] == abi.DESTROY_ARGS_BYTES
    assert layout('XLA_FFI_ThreadPool_Schedule_Args', structs)['end'] == abi.SCHEDULE_ARGS_BYTES


def test_declared_version_is_not_newer_than_the_header(structs):
    text = HEADER.read_text()
    major, minor = (
        int(re.search(rf'XLA_FFI_API_{part} (\d+)', text)[1]) for part in ('MAJOR', 'MINOR')
    )
    assert (major, minor) >= abi.API_VERSION
