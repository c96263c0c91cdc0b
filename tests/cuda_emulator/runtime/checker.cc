// SPDX-License-Identifier: Apache-2.0
// The checker: g++ -fsanitize=thread calls a hook before each access; the hooks keep CUDA's rules.
//
// Neither libtsan nor libubsan is linked, so nothing needs to be loaded before Python, and what is
// checked is CUDA's memory model and not that of C++.
#include <algorithm>

#include "machine.h"

namespace cuemu {

enum Rule { kInput, kUnwritten, kWrittenByOther, kReadByOther, kHost };

// Whether an earlier touch happened before whatever the current thread does now: it belongs to an
// earlier launch; or to this block, and is its own, or lies before a barrier of the block, or
// before a __syncwarp that both took part in. Blocks of one launch are never ordered.
static inline bool ordered(const Touch& t) {
  if (t.block < launch.first_block) return true;
  if (t.block != block.number) return false;
  return t.thread == current->number || t.epoch < current->epoch ||
         (t.thread / kWarp == current->warp && current->clock[t.thread % kWarp] >= t.clock);
}

static void out_of_bounds(Address a, size_t bytes, bool write, void* from) {
  const Region* nearest = nullptr;
  Address least = ~Address{0};
  for (const Region& r : regions) {
    const bool shared = &r >= &regions[buffer_count];
    const Address reach = Address{1} << (shared ? 23 : 36);  // farther away is no mistaken index
    const Address distance = a >= r.end ? a - r.end : a < r.begin ? r.begin - a : 0;
    if (distance < std::min(reach, least)) least = distance, nearest = &r;
  }
  const char* what = write ? "write" : "read";
  if (nearest) {
    const long long element = static_cast<long long>(a - nearest->begin) >> nearest->shift;
    find("out-of-bounds", place(from), "%s of %zu bytes: element %lld of %s, which has %zu", what,
         bytes, element, nearest->name.c_str(), nearest->count);
  } else {
    find("out-of-bounds", place(from), "%s of %zu bytes: address %p is in no buffer of the call",
         what, bytes, reinterpret_cast<void*>(a));
  }
  leave();
}

static const char* verb(bool write, bool atomic) {
  return atomic ? "atomic update" : write ? "write" : "read";
}

static void race(const Region& r, Address a, const char* now, const char* before, const Touch& t,
                 void* from) {
  find("race", place(from), "%s of %s races with %s by thread %u of %s block", now,
       describe(r, a).c_str(), before, t.thread, t.block == block.number ? "this" : "another");
}

// Parts of one element that a thread touches one after the other are one touch.
static void remember(Touch& last, const Touch& me) {
  const bool same = last.block == me.block && last.thread == me.thread &&
                    last.epoch == me.epoch && last.clock == me.clock && last.atomic == me.atomic;
  const uint8_t earlier = same ? last.bytes : 0;
  last = me;
  last.bytes |= earlier;
}

// One cell of an access: was it written, who else touched these bytes, and remember this touch.
static void touch(Region& r, size_t c, const Touch& me, bool write, void* from) {
  Cell& cell = r.cells[c];
  const Address a = r.begin + (c << r.shift);
  const char* now = verb(write, me.atomic);
  if ((!write || me.atomic) && !(r.use & CUEMU_WRITTEN) && (me.bytes & ~cell.written)) {
    cell.written |= me.bytes;  // told once
    if (first_time(kUnwritten, from))
      find("uninitialized", place(from), "%s of %s before anything was written there", now,
           describe(r, a).c_str());
  }
  const Touch& w = cell.write;
  if ((w.bytes & me.bytes) && !ordered(w) && !(me.atomic && w.atomic) &&
      first_time(kWrittenByOther, from))
    race(r, a, now, w.atomic ? "an atomic update" : "a write", w, from);
  if (!write) {
    if (cell.read.block != me.block || cell.read.thread != me.thread) cell.older_read = cell.read;
    remember(cell.read, me);
    return;
  }
  for (const Touch* t : {&cell.read, &cell.older_read})
    if ((t->bytes & me.bytes) && !ordered(*t) && first_time(kReadByOther, from))
      race(r, a, now, "a read", *t, from);
  remember(cell.write, me);
  cell.written |= me.bytes;
}

// Memory that only one thread knows, and memory that nobody writes.
static bool is_private(Address a, void* from) {
  const Address offset = a - reinterpret_cast<Address>(stacks);
  if (offset < kStackBytes * kMaxThreads) {
    if (offset / kStackBytes == static_cast<size_t>(current->stack)) return true;
    find("out-of-bounds", place(from), "access to the local memory of another thread");
    leave();
  }
  return a - reinterpret_cast<Address>(launch.with.arguments) < launch.with.argument_bytes ||
         (a >= launch.module_begin && a < launch.module_end);
}

// Launchers see the addresses of a device, not what lies there.
static void access_of_host(Address a, bool write, void* from) {
  if (!pthread_equal(pthread_self(), guard_owner)) return;  // another call, which has to wait
  const Region* r = find_region(a);
  if (r && first_time(kHost, from))
    find("host-api", place(from), "the launcher %ss %s: this is memory of the device",
         verb(write, false), describe(*r, a).c_str());
}

// What is known of an access besides its place.
enum Kind { kPlain = 0, kWrite = 1, kAtomic = 2, kAligned = 4, kVolatile = 8 };

static void access(const volatile void* p, size_t bytes, int kind, void* from) {
  const bool write = kind & kWrite;
  bool atomic = kind & kAtomic;
  if (!checked) return;
  const Address a = reinterpret_cast<Address>(p);
  if (!in_kernel()) return access_of_host(a, write, from);
  if (is_private(a, from)) return;
  if (--launch.accesses_left == 0) {
    find("runaway", place(from), "more memory accesses in one launch than "
         "BRAINEVENT_CUDA_EMULATOR_LIMIT allows");
    leave();
  }
  if (schedule.preempt && schedule.random() % schedule.preempt == 0) {
    current->state = State::kReady;
    give_way();
  }
  Region* r = find_region(a);
  if (!r || a + bytes > r->end) out_of_bounds(r ? r->end : a, bytes, write, from);
  // CUDA's memory model takes a volatile access for a relaxed atomic one: no race, and no order. In
  // shared memory it is the mark of old code that counts on lanes in lockstep, so it stays plain.
  atomic |= (kind & kVolatile) && !is_shared(*r);
  if ((kind & kAligned) && a % bytes) {
    find("undefined", place(from), "misaligned: %s of %zu bytes at %s", verb(write, atomic), bytes,
         describe(*r, a).c_str());
    leave();
  }
  if (write && (r->use & CUEMU_READ_ONLY) && first_time(kInput, from))
    find("write-to-input", place(from), "write to %s", describe(*r, a).c_str());
  Touch me{block.number, current->epoch, current->clock[current->lane], current->number, atomic, 0};
  const size_t width = size_t{1} << r->shift;
  for (size_t c = r->cell_of(a); c <= r->cell_of(a + bytes - 1); c++) {
    const Address cell = r->begin + (c << r->shift);
    const size_t low = a > cell ? a - cell : 0;
    const size_t high = a + bytes < cell + width ? a + bytes - cell : width;
    me.bytes = static_cast<uint8_t>((1u << high) - (1u << low));
    touch(*r, c, me, write, from);
  }
}

}  // namespace cuemu

using namespace cuemu;

#define FROM __builtin_return_address(0)
#define HOOKS(N)                                                                          \
  void __tsan_read##N(void* p) { access(p, N, kAligned, FROM); }                          \
  void __tsan_write##N(void* p) { access(p, N, kWrite | kAligned, FROM); }                \
  void __tsan_unaligned_read##N(void* p) { access(p, N, kPlain, FROM); }                  \
  void __tsan_unaligned_write##N(void* p) { access(p, N, kWrite, FROM); }                 \
  void __tsan_volatile_read##N(void* p) { access(p, N, kAligned | kVolatile, FROM); }     \
  void __tsan_volatile_write##N(void* p) {                                                \
    access(p, N, kWrite | kAligned | kVolatile, FROM);                                    \
  }

extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* p, size_t bytes) { access(p, bytes, kPlain, FROM); }
void __tsan_write_range(void* p, size_t bytes) { access(p, bytes, kWrite, FROM); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_init() { checked = true; }  // called when an instrumented library is loaded
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
// Guards of static variables in functions of the host.
uint8_t __tsan_atomic8_load(const volatile uint8_t* p, int) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
// Copies that remained calls; see include/cuemu/language.h.
void* cuemu_memcpy_call(void* to, const void* from, size_t bytes) {
  if (in_kernel() && bytes) {
    access(from, bytes, kPlain, FROM);
    access(to, bytes, kWrite, FROM);
  }
  return memcpy(to, from, bytes);
}
void* cuemu_memmove_call(void* to, const void* from, size_t bytes) {
  if (in_kernel() && bytes) {
    access(from, bytes, kPlain, FROM);
    access(to, bytes, kWrite, FROM);
  }
  return memmove(to, from, bytes);
}
void* cuemu_memset_call(void* to, int value, size_t bytes) {
  if (in_kernel() && bytes) access(to, bytes, kWrite, FROM);
  return memset(to, value, bytes);
}
void cuemu_touch_atomic(const void* p, unsigned bytes, void* from) {
  access(p, bytes, kWrite | kAtomic | kAligned, from);
}
}
