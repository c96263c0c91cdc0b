// SPDX-License-Identifier: Apache-2.0
// Launches: blocks one after another, the threads of a block in the order of the schedule.
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <numeric>

#include "machine.h"

namespace cuemu {

Block block;
Launch launch = [] {
  Launch none{};
  none.with.kernel = "";
  return none;
}();
std::recursive_mutex guard;
pthread_t guard_owner;
Schedule schedule;
std::deque<Thread*> ready;
static uint32_t next_block = 1;
static size_t shared_limit = kStaticShared;

// ---- schedule -----------------------------------------------------------------------------------

static bool is_number(const char* text) {
  return *text && strspn(text, "0123456789") == strlen(text);
}

// forward | reverse | random[:seed] | preempt[:seed]; each launch starts the numbers anew, so that
// a finding can be had again.
void read_schedule() {
  const char* variable = getenv("BRAINEVENT_CUDA_EMULATOR_SCHEDULE");
  const std::string text = variable && *variable ? variable : "forward";
  const size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool seeded = colon != std::string::npos;
  const bool random = name == "random" || name == "preempt";
  schedule.order = random ? Order::kRandom : name == "reverse" ? Order::kReverse : Order::kForward;
  schedule.preempt = name == "preempt" ? 4 : 0;
  schedule.random.seed(seeded ? strtoul(&text[colon + 1], nullptr, 10) : 1);
  if (random ? seeded && !is_number(&text[colon + 1]) : text != "reverse" && text != "forward")
    find("host-api", "", "BRAINEVENT_CUDA_EMULATOR_SCHEDULE is %s: forward, reverse, random[:seed] "
         "or preempt[:seed]", text.c_str());
}

void make_ready(std::vector<Thread*>& them) {
  if (schedule.order == Order::kReverse) std::reverse(them.begin(), them.end());
  if (schedule.order == Order::kRandom) std::shuffle(them.begin(), them.end(), schedule.random);
  for (Thread* t : them) {
    ready.push_back(t);
    t->queued = true;
  }
}

// ---- a block ------------------------------------------------------------------------------------

static void thread_body() {
  bool threw = false;
  try {
    launch.with.thread(launch.with.arguments);
  } catch (const std::exception& e) {  // a check that throws on the host and traps on a device
    find("trap", "", "the kernel throws: %s", e.what());
    threw = true;
  }
  if (threw) leave();
  current->state = State::kDone;
  give_way();
  abort();
}

static void make_threads() {
  static std::vector<Thread*> all;
  all.clear();
  uint3 index{0, 0, 0};
  const dim3& extent = launch.with.block;
  for (unsigned i = 0; i < block.threads; i++) {
    Thread& t = threads[i];
    t.state = State::kNew;
    t.number = static_cast<uint16_t>(i);
    t.warp = static_cast<uint16_t>(i / kWarp);
    t.lane = static_cast<uint16_t>(i % kWarp);
    t.index = index;
    t.epoch = 0;
    memset(t.clock, 0, sizeof t.clock);
    t.clock[t.lane] = 1;
    if (++index.x == extent.x) {
      index.x = 0;
      if (++index.y == extent.y) index.y = 0, index.z++;
    }
    all.push_back(&t);
  }
  ready.clear();
  make_ready(all);
}

// A thread that ends may be the last one that others waited for.
static void retire(Thread& t) {
  block.done++;
  free_stack(t);
  const unsigned first = t.warp * kWarp, end = std::min(block.threads, first + kWarp);
  for (unsigned i = first; i < end; i++) {
    const Thread& other = threads[i];
    if (other.state == State::kAtWarpOperation && (other.mask >> t.lane & 1) &&
        release_warp(t.warp, other.kind, other.mask))
      break;
  }
  release_block();
}

static void report_deadlock() {
  std::string who;
  int told = 0;
  for (unsigned i = 0; i < block.threads && told < 6; i++) {
    const Thread& t = threads[i];
    if (t.state == State::kDone) continue;
    who += (told++ ? "; thread " : " thread ") + std::to_string(i) + " waits in " +
           name_of_meeting(t) + " at " + place(t);
  }
  find("deadlock", "", "%u threads wait for ever:%s", block.threads - block.done, who.c_str());
  stopped = true;
}

void run_block() {
  block.done = block.at_barrier = 0;
  block.threads = launch.with.block.x * launch.with.block.y * launch.with.block.z;
  spoil_dynamic_shared();
  free_all_stacks();
  make_threads();
  while (!ready.empty()) {
    Thread& t = *ready.front();
    ready.pop_front();
    t.queued = false;
    if (t.state == State::kNew) start_thread(t, thread_body);
    switch_to(t);
    if (stopped) return;
    if (t.state == State::kDone) {
      retire(t);
    } else if (t.state == State::kReady && !t.queued) {  // it gave way in mid-run
      ready.push_back(&t);
      t.queued = true;
    }
  }
  if (block.done < block.threads) report_deadlock();
}

// ---- a launch -----------------------------------------------------------------------------------

static bool is_valid(const cuemu_launch_t& l) {
  const dim3 g = l.grid, b = l.block;
  const uint64_t count = static_cast<uint64_t>(b.x) * b.y * b.z;
  const std::string at = place(l.file, l.line);
  const bool grid = g.x >= 1 && g.y >= 1 && g.z >= 1 && g.x <= 0x7fffffffu && g.y <= 65535 &&
                    g.z <= 65535;
  if (!grid || count < 1 || count > kMaxThreads || b.x > 1024 || b.y > 1024 || b.z > 64) {
    find("bad-launch", at, "grid (%u,%u,%u) with block (%u,%u,%u) is no valid configuration", g.x,
         g.y, g.z, b.x, b.y, b.z);
    api_error = 9;
    return false;
  }
  if (l.shared > shared_limit) {
    find("bad-launch", at, "%zu bytes of dynamic shared memory, of %zu allowed", l.shared,
         shared_limit);
    api_error = 1;
    return false;
  }
  return true;
}

// The stretch of addresses of the library that holds an instruction.
static int library_of(dl_phdr_info* info, size_t, void* data) {
  Launch& l = *static_cast<Launch*>(data);
  const Address code = reinterpret_cast<Address>(l.with.thread);
  Address begin = ~Address{0}, end = 0;
  for (int k = 0; k < info->dlpi_phnum; k++) {
    const auto& part = info->dlpi_phdr[k];
    if (part.p_type != PT_LOAD) continue;
    begin = std::min<Address>(begin, info->dlpi_addr + part.p_vaddr);
    end = std::max<Address>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  if (code < begin || code >= end) return 0;
  l.module_begin = begin;
  l.module_end = end;
  return 1;
}

static uint64_t access_limit() {
  const char* variable = getenv("BRAINEVENT_CUDA_EMULATOR_LIMIT");
  if (!variable || !*variable) return 200'000'000;
  const uint64_t limit = is_number(variable) ? strtoull(variable, nullptr, 10) : 0;
  if (!limit)
    find("host-api", "", "BRAINEVENT_CUDA_EMULATOR_LIMIT is %s: a positive number of memory "
         "accesses", variable);
  return limit ? limit : 200'000'000;
}

// Random order visits the blocks by a stride that has no factor in common with their number.
static void run_blocks() {
  const dim3 grid = launch.with.grid;
  const uint64_t count = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
  uint64_t stride = 1, offset = 0;
  if (schedule.order == Order::kRandom && count > 2) {
    offset = schedule.random() % count;
    do stride = 1 + schedule.random() % count;
    while (std::gcd(stride, count) != 1);
  }
  for (uint64_t i = 0; i < count && !stopped; i++) {
    const uint64_t k =
        schedule.order == Order::kReverse ? count - 1 - i : (offset + i * stride) % count;
    block.index = {static_cast<unsigned>(k % grid.x), static_cast<unsigned>(k / grid.x % grid.y),
                   static_cast<unsigned>(k / grid.x / grid.y)};
    block.number = next_block++;
    run_block();
  }
}

}  // namespace cuemu

using namespace cuemu;

extern "C" {

uint3 cuemu_thread_index(void) { return current->index; }
uint3 cuemu_block_index(void) { return block.index; }
uint3 cuemu_block_extent(void) {
  return {launch.with.block.x, launch.with.block.y, launch.with.block.z};
}
uint3 cuemu_grid_extent(void) {
  return {launch.with.grid.x, launch.with.grid.y, launch.with.grid.z};
}

int cuemu_in_kernel(void) { return in_kernel(); }

void cuemu_lock(int on) {
  if (on) {
    guard.lock();
    guard_owner = pthread_self();
  } else {
    guard_owner = pthread_t{};
    guard.unlock();
  }
}

// Called instead of __cxa_throw, by a flag of the linker. A launcher that throws refuses the call:
// its error is what counts, not the results that lack for it.
[[noreturn]] void __real___cxa_throw(void* thrown, void* type, void (*destructor)(void*));
[[noreturn]] void __wrap___cxa_throw(void* thrown, void* type, void (*destructor)(void*)) {
  if (!in_kernel() && pthread_equal(pthread_self(), guard_owner)) incomplete = true;
  __real___cxa_throw(thrown, type, destructor);
}

int cuemu_shared_limit(int bytes, const char* file, int line) {
  if (bytes < 0 || static_cast<size_t>(bytes) > kMostShared) {
    find("bad-launch", place(file, line), "cudaFuncSetAttribute asks for %d bytes of dynamic "
         "shared memory, of %zu allowed", bytes, kMostShared);
    return api_error = 1;
  }
  shared_limit = std::max<size_t>(shared_limit, static_cast<size_t>(bytes));
  return 0;
}

int cuemu_launch(const cuemu_launch_t* l) {
  std::lock_guard<std::recursive_mutex> hold(guard);
  if (stopped) return 700;
  launch.with = *l;
  if (!is_valid(*l)) {
    incomplete = true;
    return api_error;
  }
  read_schedule();
  make_stacks();
  drop_shared();
  add_dynamic_shared(l->shared);
  if (!launch.module_end) dl_iterate_phdr(library_of, &launch);
  launch.first_block = next_block;
  launch.accesses_left = access_limit();
  run_blocks();
  drop_shared();
  return stopped ? 700 : 0;
}
}
