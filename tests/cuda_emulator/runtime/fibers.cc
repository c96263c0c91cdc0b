// SPDX-License-Identifier: Apache-2.0
// Fibers: every thread of a block has a stack, and a switch costs a dozen instructions.
//
// A context is what the calling convention lets a function expect unchanged after a call; it is
// saved on the stack that is left.
#include <sys/mman.h>

#include <cstdlib>

#include "machine.h"

extern "C" void cuemu_switch(void** save_stack_pointer, void* to);

#if defined(__x86_64__)
asm(R"(
.text
.globl cuemu_switch
.hidden cuemu_switch
.type cuemu_switch,@function
cuemu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuemu_switch,.-cuemu_switch
)");

static void* first_context(char* top, void (*body)()) {
  void** s = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--s = nullptr;  // a return address that is never used: keeps the alignment a call would have
  *--s = reinterpret_cast<void*>(body);
  for (int i = 0; i < 6; i++) *--s = nullptr;
  return s;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl cuemu_switch
.hidden cuemu_switch
.type cuemu_switch,%function
cuemu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cuemu_switch,.-cuemu_switch
)");

static void* first_context(char* top, void (*body)()) {
  char* s = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15}) - 160;
  memset(s, 0, 160);
  memcpy(s + 88, &body, sizeof body);  // x30: where `ret` goes
  return s;
}
#else
#error "the emulator has no context switch for this processor: add one to fibers.cc"
#endif

namespace cuemu {

Thread threads[kMaxThreads];
Thread* current = nullptr;
char* stacks = nullptr;
static std::vector<int> free_stacks;
static void* host_stack_pointer;

// One mapping for all; the lowest page of each stack is closed, so that an overflow is noticed.
void make_stacks() {
  if (stacks) return;
  const size_t bytes = kStackBytes * kMaxThreads;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) abort();
  stacks = static_cast<char*>(memory);
}

// Closed when first used: a closed page costs two of the 65,530 mappings that a process may have,
// and every library brings stacks of its own.
static void close_below(int stack) {
  static int closed = 0;
  for (; closed <= stack; closed++)
    mprotect(stacks + static_cast<size_t>(closed) * kStackBytes, page_bytes(), PROT_NONE);
}

void free_all_stacks() {
  free_stacks.clear();
  for (int i = kMaxThreads; i-- > 0;) free_stacks.push_back(i);
}

// Threads that finish hand their stack on: most kernels touch only one.
void start_thread(Thread& thread, void (*body)()) {
  thread.stack = free_stacks.back();
  free_stacks.pop_back();
  close_below(thread.stack);
  char* top = stacks + static_cast<size_t>(thread.stack + 1) * kStackBytes;
  thread.stack_pointer = first_context(top, body);
}

void free_stack(Thread& thread) { free_stacks.push_back(thread.stack); }

void switch_to(Thread& thread) {
  current = &thread;
  thread.state = State::kRunning;
  cuemu_switch(&host_stack_pointer, thread.stack_pointer);
  current = nullptr;
}

void give_way() {
  Thread* self = current;
  cuemu_switch(&self->stack_pointer, host_stack_pointer);
}

void leave() {
  stopped = true;
  current->state = State::kDone;
  give_way();
  abort();
}

}  // namespace cuemu
