// SPDX-License-Identifier: Apache-2.0
// The entry points of the emulator's runtime: what kernel files, the FFI wrapper and Python call.
//
// The runtime includes this file too, so that both sides agree. All sizes are in bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifndef CUEMU_RUNTIME_ITSELF
#include "cuemu/language.h"
#else
struct dim3 {
  unsigned x, y, z;
};
struct uint3 {
  unsigned x, y, z;
};
#endif

// The place of a call, filled in by the compiler: file and line end up in the findings.
#define CUEMU_PLACE const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()

// Kinds of barriers of a block and of meetings of a warp.
enum { CUEMU_SYNC, CUEMU_SYNC_COUNT, CUEMU_SYNC_AND, CUEMU_SYNC_OR };
enum {
  CUEMU_SYNCWARP = 1,
  CUEMU_SHUFFLE,
  CUEMU_SHUFFLE_UP,
  CUEMU_SHUFFLE_DOWN,
  CUEMU_SHUFFLE_XOR,
  CUEMU_BALLOT,
  CUEMU_MATCH,
  CUEMU_REDUCE
};
// What CUEMU_REDUCE does; CUEMU_SIGNED is added for signed numbers.
enum { CUEMU_ADD, CUEMU_MIN, CUEMU_MAX, CUEMU_AND, CUEMU_OR, CUEMU_XOR, CUEMU_SIGNED = 16 };

// Uses of a buffer, for cuemu_alloc.
enum { CUEMU_READ_ONLY = 1, CUEMU_RESULT = 2, CUEMU_WRITTEN = 4, CUEMU_SPARSE = 8 };

struct cuemu_launch_t {
  const char *kernel, *file;
  int line;
  dim3 grid, block;
  size_t shared;            // dynamic shared memory
  void (*thread)(void*);    // runs one thread
  void* arguments;          // given to `thread`
  size_t argument_bytes;
};

extern "C" {
// Called by kernel code.
uint3 cuemu_thread_index(void);
uint3 cuemu_block_index(void);
uint3 cuemu_block_extent(void);
uint3 cuemu_grid_extent(void);
void* cuemu_shared(const void* key, const char* name, size_t bytes, size_t element);
void* cuemu_dynamic_shared(void);
int cuemu_block_meet(int kind, int predicate, const char* file, int line);
void cuemu_warp_meet(int kind, unsigned mask, const void* in, void* out, unsigned bytes, int a,
                     int b, const char* file, int line);
void cuemu_touch_atomic(const void* place, unsigned bytes, void* return_address);
void cuemu_trap(const char* what, const char* file, int line);
int cuemu_in_kernel(void);  // whether a thread of a kernel runs, or its host

// Called by launchers.
int cuemu_launch(const cuemu_launch_t* launch);
int cuemu_memset(void* to, int value, size_t bytes, const char* file, int line);
int cuemu_memcpy(void* to, const void* from, size_t bytes, const char* file, int line);
int cuemu_shared_limit(int bytes, const char* file, int line);
int cuemu_error(int clear);
const char* cuemu_error_text(int error);
void cuemu_forbidden(const char* call, const char* file, int line);

// Called by the FFI wrapper (brainevent/ffi.h, under BE_EMULATOR): lock, a guarded copy for each
// operand and result, the launches, release, report, unlock.
void cuemu_lock(int on);
void* cuemu_alloc(size_t bytes, size_t element, int use, const char* name);
void cuemu_release(void);
const char* cuemu_report(void);
}
