// SPDX-License-Identifier: Apache-2.0
// The emulated device: its memory, the running block and its threads, and what was found.
//
// One copy of all this lives in each emulated library. The FFI wrapper holds `guard` for the length
// of a call, so calls may come from any thread. A launch runs its threads one at a time on the
// thread that called, each on a stack of its own; they give way to each other only where they meet
// (rendezvous.cc) or where the schedule says so (checker.cc).
//
// Built without instrumentation, in one unit: see all.cc.
#pragma once
#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#define CUEMU_RUNTIME_ITSELF
#include "../include/cuemu/runtime.h"

namespace cuemu {

using Address = uintptr_t;

constexpr unsigned kWarp = 32, kMaxThreads = 1024;
constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kStaticShared = 48 << 10, kMostShared = 227 << 10;  // what hardware allows a block
constexpr unsigned char kGarbage = 0xCB;  // fills memory that nobody has written

inline size_t page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// ---- memory -------------------------------------------------------------------------------------

// Who touched a cell last: which block, after how many of its barriers, at which time of the
// thread's own clock (see `ordered` in checker.cc), and which bytes of the cell.
struct Touch {
  uint32_t block, epoch, clock;
  uint16_t thread;
  bool atomic;
  uint8_t bytes;
};
// What is known about one element. Two readers are kept: a third is forgotten, so a race may be
// missed, but none is invented.
struct Cell {
  Touch write, read, older_read;
  uint8_t written;  // the bytes that hold a value
};
// A buffer or a shared variable: every access has to lie inside one.
struct Region {
  Address begin, end;
  unsigned shift;  // a cell has 1 << shift bytes
  int use;         // CUEMU_READ_ONLY, ...
  size_t count;    // of cells
  Cell* cells;     // null when nothing is checked
  std::string name;

  size_t cell_of(Address a) const { return (a - begin) >> shift; }
};

Region* find_region(Address a);
void drop_shared();  // shared variables of the last launch
void add_dynamic_shared(size_t bytes);
void spoil_dynamic_shared();
std::string describe(const Region& region, Address a);

extern std::vector<Region> regions;  // buffers first, then the shared variables of the launch
extern size_t buffer_count;          // how many of them are buffers

inline bool is_shared(const Region& region) {
  return static_cast<size_t>(&region - regions.data()) >= buffer_count;
}

// ---- threads ------------------------------------------------------------------------------------

enum class State : uint8_t { kNew, kReady, kRunning, kAtBarrier, kAtWarpOperation, kDone };

struct Thread {
  void* stack_pointer;
  int stack;
  State state;
  bool queued;
  uint3 index;
  uint16_t number, warp, lane;
  uint32_t epoch;         // barriers of the block so far
  uint32_t clock[kWarp];  // what this thread knows of the clocks of its warp; [lane] is its own

  // Where it waits, and what it brought and gets.
  int kind, predicate, a, b;
  unsigned mask, bytes;
  const char* file;
  int line;
  unsigned char given[8], received[8];
};

extern Thread threads[kMaxThreads];
extern Thread* current;  // null while no kernel runs
extern char* stacks;

// Whether the caller is a thread of a kernel. Other threads of the host may run checked code at the
// same time, so it is the stack that tells, not `current`.
inline bool in_kernel() {
  const Address here = reinterpret_cast<Address>(__builtin_frame_address(0));
  return here - reinterpret_cast<Address>(stacks) < kStackBytes * kMaxThreads;
}

void make_stacks();
void start_thread(Thread& thread, void (*body)());
void free_all_stacks();
void free_stack(Thread& thread);
void switch_to(Thread& thread);  // returns when it gives way
void give_way();                 // the current thread, to the block's loop
[[noreturn]] void leave();       // the same, for ever: the launch is over

// ---- the running launch and block ---------------------------------------------------------------

struct Block {
  uint3 index;
  uint32_t number;  // counts on over all launches of the process
  unsigned threads, done, at_barrier;
};
struct Launch {
  cuemu_launch_t with;
  uint32_t first_block;  // the touches of earlier blocks happened before this launch
  uint64_t accesses_left;
  Address module_begin, module_end;  // the library with the kernel: its constants
};

extern Block block;
extern Launch launch;
extern std::recursive_mutex guard;
extern pthread_t guard_owner;  // who is in a call
extern bool checked;  // the kernel file was compiled in mode check

// ---- schedule -----------------------------------------------------------------------------------

enum class Order { kForward, kReverse, kRandom };
struct Schedule {
  Order order = Order::kForward;
  unsigned preempt = 0;  // switch away before one of so many accesses; 0: never
  std::mt19937 random;
};
extern Schedule schedule;
extern std::deque<Thread*> ready;

void read_schedule();  // from the environment
void make_ready(std::vector<Thread*>& them);
void run_block();
bool release_block();
bool release_warp(unsigned warp, int kind, unsigned mask);
const char* name_of_meeting(const Thread& thread);

// ---- findings -----------------------------------------------------------------------------------

extern bool stopped;     // nothing more can be run in this call
extern bool incomplete;  // something was not run: results may lack for that reason
extern int api_error;    // what cudaGetLastError returns

std::string place(const char* file, int line);
inline std::string place(const Thread& thread) { return place(thread.file, thread.line); }
std::string place(void* return_address);
bool first_time(int rule, void* return_address);
void find(const char* kind, const std::string& at, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

}  // namespace cuemu
