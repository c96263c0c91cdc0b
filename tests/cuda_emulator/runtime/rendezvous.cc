// SPDX-License-Identifier: Apache-2.0
// Rendezvous: barriers of a block, and shuffles, votes and __syncwarp of a warp.
//
// A thread that meets others says where it is and gives way. The last one to come finds the meeting
// complete, computes what everybody gets, and makes all of them ready.
#include <algorithm>

#include "machine.h"

namespace cuemu {

static const char* const kMeetings[] = {
    "?",           "__syncwarp",       "__shfl_sync",     "__shfl_up_sync", "__shfl_down_sync",
    "__shfl_xor_sync", "a vote (ballot, any, all)", "__match_any_sync", "__reduce_sync"};

const char* name_of_meeting(const Thread& thread) {
  return thread.state == State::kAtBarrier ? "a barrier of the block" : kMeetings[thread.kind];
}

static bool same_place(const Thread& a, const Thread& b) {
  return a.line == b.line && strcmp(a.file, b.file) == 0;
}

// ---- the block ----------------------------------------------------------------------------------

bool release_block() {
  if (block.at_barrier == 0 || block.at_barrier + block.done < block.threads) return false;
  std::vector<Thread*> here;
  int count = 0;
  for (unsigned i = 0; i < block.threads; i++) {
    Thread& t = threads[i];
    if (t.state != State::kAtBarrier) continue;
    here.push_back(&t);
    count += t.predicate;
    if (!same_place(t, *here[0]) || t.kind != here[0]->kind)
      find("divergent-barrier", place(t), "threads of a block wait at different barriers "
           "(another is %s)", place(*here[0]).c_str());
  }
  if (block.done)
    find("divergent-barrier", place(*here[0]), "%u of %u threads have left before the barrier",
         block.done, block.threads);
  for (Thread* t : here) {
    const int result = t->kind == CUEMU_SYNC_COUNT ? count
                       : t->kind == CUEMU_SYNC_AND ? count == static_cast<int>(here.size())
                                                   : count > 0;
    memcpy(t->received, &result, sizeof result);
    t->state = State::kReady;
    t->epoch++;
  }
  block.at_barrier = 0;
  make_ready(here);
  return true;
}

// ---- the warp -----------------------------------------------------------------------------------

using Lanes = std::vector<Thread*>;

// The lane that a shuffle reads from; beyond its segment, a lane reads itself.
static int source_lane(const Thread& t) {
  const int lane = t.lane, width = t.b, first = lane & ~(width - 1), last = first + width - 1;
  switch (t.kind) {
    case CUEMU_SHUFFLE: return first + (t.a & (width - 1));
    case CUEMU_SHUFFLE_UP: return lane - t.a < first ? lane : lane - t.a;
    case CUEMU_SHUFFLE_DOWN: return lane + t.a > last ? lane : lane + t.a;
    default: return (lane ^ t.a) > last ? lane : lane ^ t.a;
  }
}

static void shuffle(Thread& t) {
  const int source = source_lane(t);
  const unsigned number = t.warp * kWarp + (static_cast<unsigned>(source) & (kWarp - 1));
  const Thread& other = threads[number];
  const bool exists = source >= 0 && number < block.threads && (t.mask >> other.lane & 1);
  if (exists && other.state == State::kAtWarpOperation) {  // all of the mask that are left wait
    memcpy(t.received, other.given, t.bytes);
    return;
  }
  memset(t.received, kGarbage, sizeof t.received);
  Thread* const keep = current;
  current = &t;  // the finding is about this thread
  find("warp-inactive", place(t), "%s reads lane %d, which takes no part", kMeetings[t.kind],
       source);
  current = keep;
}

template <class Number>
static Number pick(int operation, Number a, Number b) {
  switch (operation) {
    case CUEMU_MIN: return std::min(a, b);
    case CUEMU_MAX: return std::max(a, b);
    case CUEMU_AND: return a & b;
    case CUEMU_OR: return a | b;
    case CUEMU_XOR: return a ^ b;
    default: return static_cast<Number>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
}

static uint32_t reduce(const Lanes& here) {
  const int operation = here[0]->a % CUEMU_SIGNED;
  uint32_t result = 0;
  for (const Thread* t : here) {
    uint32_t x;
    memcpy(&x, t->given, sizeof x);
    if (t == here[0]) {
      result = x;
    } else if (here[0]->a >= CUEMU_SIGNED) {
      result = static_cast<uint32_t>(
          pick(operation, static_cast<int32_t>(result), static_cast<int32_t>(x)));
    } else {
      result = pick(operation, result, x);
    }
  }
  return result;
}

static uint32_t ballot(const Lanes& here) {
  uint32_t result = 0;
  for (const Thread* t : here) {
    int predicate;
    memcpy(&predicate, t->given, sizeof predicate);
    if (predicate) result |= 1u << t->lane;
  }
  return result;
}

static uint32_t match(const Thread& t, const Lanes& here) {
  uint32_t result = 0;
  for (const Thread* other : here)
    if (memcmp(t.given, other->given, t.bytes) == 0) result |= 1u << other->lane;
  return result;
}

static void exchange(Thread& t, const Lanes& here) {
  uint32_t result = 0;
  switch (t.kind) {
    case CUEMU_SYNCWARP: return;
    case CUEMU_BALLOT: result = ballot(here); break;
    case CUEMU_MATCH: result = match(t, here); break;
    case CUEMU_REDUCE: result = reduce(here); break;
    default: shuffle(t); return;
  }
  memcpy(t.received, &result, sizeof result);
}

// Only __syncwarp orders memory: everybody learns what anybody knew, and time goes on.
static void join_clocks(const Lanes& here) {
  uint32_t all[kWarp] = {};
  for (const Thread* t : here)
    for (unsigned k = 0; k < kWarp; k++) all[k] = std::max(all[k], t->clock[k]);
  for (Thread* t : here) {
    memcpy(t->clock, all, sizeof all);
    t->clock[t->lane]++;
  }
}

bool release_warp(unsigned warp, int kind, unsigned mask) {
  static Lanes here;  // kept, because this is called for every lane
  here.clear();
  for (unsigned i = 0; i < kWarp && warp * kWarp + i < block.threads; i++) {
    Thread& t = threads[warp * kWarp + i];
    if (!(mask >> i & 1) || t.state == State::kDone) continue;
    if (t.state != State::kAtWarpOperation || t.kind != kind || t.mask != mask) return false;
    here.push_back(&t);
  }
  if (here.empty()) return false;
  for (const Thread* t : here)
    if (!same_place(*t, *here[0]))
      find("divergent-warp", place(*t), "lanes meet in %s at different lines (another is %s)",
           kMeetings[kind], place(*here[0]).c_str());
  for (Thread* t : here) exchange(*t, here);
  if (kind == CUEMU_SYNCWARP) join_clocks(here);
  for (Thread* t : here) t->state = State::kReady;
  make_ready(here);
  return true;
}

}  // namespace cuemu

using namespace cuemu;

extern "C" {

int cuemu_block_meet(int kind, int predicate, const char* file, int line) {
  Thread& self = *current;
  self.kind = kind;
  self.predicate = predicate;
  self.file = file;
  self.line = line;
  self.state = State::kAtBarrier;
  block.at_barrier++;
  release_block();
  give_way();
  int result;
  memcpy(&result, self.received, sizeof result);
  return result;
}

void cuemu_warp_meet(int kind, unsigned mask, const void* in, void* out, unsigned bytes, int a,
                     int b, const char* file, int line) {
  Thread& self = *current;
  self.file = file;
  self.line = line;
  if (!(mask >> self.lane & 1)) {
    find("warp-mask", place(self), "a lane calls %s with a mask (0x%08x) that leaves it out",
         kMeetings[kind], mask);
    leave();
  }
  const bool moves = kind >= CUEMU_SHUFFLE && kind <= CUEMU_SHUFFLE_XOR;
  if (moves && (b < 1 || b > static_cast<int>(kWarp) || (b & (b - 1)))) {
    find("warp-mask", place(self), "%s with a width of %d: not a power of two up to 32",
         kMeetings[kind], b);
    leave();
  }
  self.kind = kind;
  self.mask = mask;
  self.bytes = bytes;
  self.a = a;
  self.b = b;
  self.state = State::kAtWarpOperation;
  if (in) memcpy(self.given, in, bytes);
  release_warp(self.warp, kind, mask);
  give_way();
  if (out) memcpy(out, self.received, moves ? bytes : 4);
}
}
