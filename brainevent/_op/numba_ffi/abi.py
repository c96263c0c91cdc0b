# SPDX-License-Identifier: Apache-2.0
"""The C structs of XLA's foreign function interface, as word offsets, and nothing else.

Every offset counts 8-byte words of the structs in ``xla/ffi/api/c_api.h``. They are the same in
every jaxlib from 0.8 to 0.12; a handler that declares API version 0.1 is accepted by all of them.
"""

API_VERSION = (0, 1)

# XLA_FFI_CallFrame
FRAME_WORDS = 22
FRAME_EXTENSION = 1  # not null: XLA asks for the handler's metadata instead of a call
FRAME_API = 2
FRAME_CONTEXT = 3
FRAME_ARGS = 9  # XLA_FFI_Args embedded at word 5: size, extension, count, types, items
FRAME_RETS = 14

# XLA_FFI_Buffer
BUFFER_WORDS = 6
BUFFER_DATA = 3
BUFFER_RANK = 4
BUFFER_DIMS = 5

# XLA_FFI_Metadata_Extension -> XLA_FFI_Metadata
EXTENSION_WORDS = 4
EXTENSION_METADATA = 3
METADATA_VERSION_BYTE = 24  # int32 major, int32 minor of the nested XLA_FFI_Api_Version

# XLA_FFI_Api: table of functions
API_WORDS = 24
API_ERROR_CREATE = 6
API_ERROR_DESTROY = 8
API_SCHEDULE = 17

# XLA_FFI_Error_Create_Args: size, extension, message, code
ERROR_ARGS_BYTES = 28
ERROR_INTERNAL = 13

# XLA_FFI_Error_Destroy_Args: size, extension, error
DESTROY_ARGS_BYTES = 24

# XLA_FFI_ThreadPool_Schedule_Args: size, extension, context, task, data
SCHEDULE_ARGS_BYTES = 40
