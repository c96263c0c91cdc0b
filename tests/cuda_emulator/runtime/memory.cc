// SPDX-License-Identifier: Apache-2.0
// Device memory: guarded copies of operands and results, shared variables, and what they hold.
//
// Each buffer lies alone in a wide stretch of addresses, its end at an unmapped page: an index that
// is wrong by any amount, also one that wrapped around at 2^31, meets no other buffer.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "machine.h"

namespace cuemu {

std::vector<Region> regions;
size_t buffer_count = 0;
bool checked = false;

struct Mapping {
  char* first;
  size_t bytes;
};
static std::vector<Mapping> mappings;

static Mapping map(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? Mapping{nullptr, 0} : Mapping{static_cast<char*>(p), bytes};
}

static Mapping must_map(size_t bytes, int protection) {
  const Mapping m = map(bytes, protection);
  if (!m.first) {
    fprintf(stderr, "CUDA emulator: no address space for %zu bytes\n", bytes);
    abort();
  }
  return m;
}

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// ---- regions ------------------------------------------------------------------------------------

static Region* last_found = nullptr;

Region* find_region(Address a) {
  if (last_found && a >= last_found->begin && a < last_found->end) return last_found;
  for (Region& r : regions)
    if (a >= r.begin && a < r.end) return last_found = &r;
  return nullptr;
}

// Cells of up to 8 bytes: one element. Wider elements have several cells.
static void add_region(Address begin, size_t bytes, size_t element, int use, const char* name) {
  Region r{begin, begin + bytes, 0, use, 0, nullptr, name};
  while (r.shift < 3 && (size_t{1} << r.shift) < element) r.shift++;
  r.count = round_up(bytes, size_t{1} << r.shift) >> r.shift;
  if (checked && r.count)
    r.cells = reinterpret_cast<Cell*>(
        must_map(r.count * sizeof(Cell), PROT_READ | PROT_WRITE).first);
  regions.push_back(r);
  last_found = nullptr;
}

static void drop_regions(size_t keep) {
  while (regions.size() > keep) {
    const Region& r = regions.back();
    if (r.cells) munmap(r.cells, r.count * sizeof(Cell));
    regions.pop_back();
  }
  last_found = nullptr;
}

std::string describe(const Region& region, Address a) {
  return "element " + std::to_string(region.cell_of(a)) + " of " + region.name + " (of " +
         std::to_string(region.count) + ")";
}

// ---- buffers ------------------------------------------------------------------------------------

// 64 GiB apart where the system gives so much, else as far as it does.
static Mapping map_alone(size_t bytes) {
  static size_t apart = size_t{64} << 30;
  for (; apart / 2 > bytes + 2 * page_bytes(); apart /= 2) {
    const Mapping m = map(apart, PROT_NONE);
    if (m.first) return m;
  }
  return must_map(2 * round_up(bytes + 2 * page_bytes(), page_bytes()), PROT_NONE);
}

static void mark_written(Region& r, Address begin, size_t bytes) {
  if (!r.cells || !bytes) return;
  for (size_t c = r.cell_of(begin); c <= r.cell_of(begin + bytes - 1); c++)
    r.cells[c].written = 0xff;
}

static bool is_written(const Region& r, Address begin, size_t bytes) {
  if (!r.cells || (r.use & CUEMU_WRITTEN)) return true;
  for (size_t c = r.cell_of(begin); c <= r.cell_of(begin + bytes - 1); c++)
    if (!r.cells[c].written) return false;
  return true;
}

static void check_results() {
  for (const Region& r : regions) {
    if (!(r.use & CUEMU_RESULT) || (r.use & CUEMU_WRITTEN) || !r.cells) continue;
    const uint8_t whole = static_cast<uint8_t>((1u << (1u << r.shift)) - 1);
    size_t missing = 0, first = 0;
    for (size_t c = 0; c < r.count; c++)
      if ((r.cells[c].written & whole) != whole && missing++ == 0) first = c;
    if (missing)
      find("not-written", "", "%zu of %zu elements of %s were never written, the first is %zu",
           missing, r.count, r.name.c_str(), first);
  }
}

// ---- shared memory ------------------------------------------------------------------------------

constexpr size_t kSharedSpace = 8 << 20, kSharedGap = 4096, kAlignment = 256;

struct Variable {
  const void* key;
  size_t region;
  uint32_t block;  // for which it was cleared
};
static std::vector<Variable> variables;
static Address shared_top;

// Dynamic shared memory comes first, and always at the same place.
static Address shared_space() {
  static const Address begin = kSharedGap + reinterpret_cast<Address>(
      must_map(kSharedSpace, PROT_READ | PROT_WRITE).first);
  return begin;
}

void drop_shared() {
  drop_regions(buffer_count);
  variables.clear();
  shared_top = shared_space();
}

// Raw bytes are mostly used as words: cells of four keep the checker fast.
void add_dynamic_shared(size_t bytes) {
  add_region(shared_top, bytes, 4, 0, "the words of dynamic shared memory");
  shared_top += bytes;
}

// A new block finds garbage, whatever the last one left.
static void spoil(Region& region) {
  memset(reinterpret_cast<void*>(region.begin), kGarbage, region.end - region.begin);
  if (region.cells) memset(static_cast<void*>(region.cells), 0, region.count * sizeof(Cell));
}

void spoil_dynamic_shared() { spoil(regions[buffer_count]); }

static void expect_room(size_t bytes) {
  for (const Variable& v : variables) bytes += regions[v.region].end - regions[v.region].begin;
  if (bytes <= kStaticShared) return;
  find("bad-launch", "", "%zu bytes of __shared__ variables, of %zu allowed", bytes, kStaticShared);
  leave();
}

static void* variable(const void* key, const char* name, size_t bytes, size_t element) {
  auto v = std::find_if(variables.begin(), variables.end(),
                        [&](const Variable& x) { return x.key == key; });
  if (v == variables.end()) {
    expect_room(bytes);
    const Address begin = round_up(shared_top + kSharedGap, kAlignment);
    shared_top = begin + bytes;
    add_region(begin, bytes, element, 0, name);
    variables.push_back({key, regions.size() - 1, 0});
    v = variables.end() - 1;
  }
  Region& region = regions[v->region];
  if (v->block != block.number) {
    v->block = block.number;
    spoil(region);
  }
  return reinterpret_cast<void*>(region.begin);
}

}  // namespace cuemu

using namespace cuemu;

extern "C" {

// A place for an operand or a result of the call; `use` is a sum of CUEMU_READ_ONLY (an operand),
// CUEMU_RESULT (all of it must be written), CUEMU_WRITTEN (it has a value; the caller copies it
// in), CUEMU_SPARSE (too large to be filled with garbage).
void* cuemu_alloc(size_t bytes, size_t element, int use, const char* name) {
  std::lock_guard<std::recursive_mutex> hold(guard);
  const Mapping m = map_alone(bytes);
  mappings.push_back(m);
  char* end = m.first + m.bytes / 2;
  char* begin = end - round_up(bytes, kAlignment);  // XLA aligns to no more
  if (bytes) {
    char* page = m.first + (begin - m.first) / page_bytes() * page_bytes();
    mprotect(page, end - page, PROT_READ | PROT_WRITE);
  }
  if (!(use & CUEMU_SPARSE)) memset(begin, kGarbage, bytes);
  drop_regions(buffer_count);
  add_region(reinterpret_cast<Address>(begin), bytes, element, use, name ? name : "a buffer");
  buffer_count = regions.size();
  return begin;
}

// The call is over: look for results that lack, and give everything back.
void cuemu_release(void) {
  std::lock_guard<std::recursive_mutex> hold(guard);
  if (!stopped && !incomplete) check_results();
  buffer_count = 0;
  drop_regions(0);
  for (const Mapping& m : mappings) munmap(m.first, m.bytes);
  mappings.clear();
}

void* cuemu_shared(const void* key, const char* name, size_t bytes, size_t element) {
  if (!in_kernel()) {
    find("trap", "", "__shared__ variable %s is used outside a kernel", name);
    return nullptr;
  }
  return variable(key, name, bytes, element);
}

void* cuemu_dynamic_shared(void) { return reinterpret_cast<void*>(shared_space()); }

static Region* range(void* p, size_t bytes, const char* call, const std::string& at) {
  Region* r = find_region(reinterpret_cast<Address>(p));
  if (r && reinterpret_cast<Address>(p) + bytes <= r->end) return r;
  find("host-api", at, "%s of %zu bytes reaches outside its buffer", call, bytes);
  incomplete = true;
  api_error = 1;
  return nullptr;
}

int cuemu_memset(void* to, int value, size_t bytes, const char* file, int line) {
  std::lock_guard<std::recursive_mutex> hold(guard);
  if (bytes == 0) return 0;
  const std::string at = place(file, line);
  Region* r = range(to, bytes, "cudaMemsetAsync", at);
  if (!r) return 1;
  if (r->use & CUEMU_READ_ONLY)
    find("write-to-input", at, "cudaMemsetAsync on %s", r->name.c_str());
  mark_written(*r, reinterpret_cast<Address>(to), bytes);
  memset(to, value, bytes);
  return 0;
}

int cuemu_memcpy(void* to, const void* from, size_t bytes, const char* file, int line) {
  std::lock_guard<std::recursive_mutex> hold(guard);
  if (bytes == 0) return 0;
  const std::string at = place(file, line);
  Region* target = range(to, bytes, "cudaMemcpyAsync", at);
  Region* source = target ? range(const_cast<void*>(from), bytes, "cudaMemcpyAsync", at) : nullptr;
  if (!source) return 1;
  if (target->use & CUEMU_READ_ONLY)
    find("write-to-input", at, "cudaMemcpyAsync to %s", target->name.c_str());
  if (!is_written(*source, reinterpret_cast<Address>(from), bytes))
    find("uninitialized", at, "cudaMemcpyAsync from %s, part of which nothing has written",
         source->name.c_str());
  mark_written(*target, reinterpret_cast<Address>(to), bytes);
  memcpy(to, from, bytes);
  return 0;
}
}
