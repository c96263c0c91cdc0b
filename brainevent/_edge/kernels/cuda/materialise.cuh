// SPDX-License-Identifier: Apache-2.0
// Drawn matrices put into memory: dense, or as the list of their edges.
#pragma once
#include "drawn.cuh"

namespace be {

template <class Walk, class Weight>
struct Filled {
  Walk walk;
  Weight weight;
  typename Weight::Value* out;

  __device__ __forceinline__ Filled at(const Levels& levels, int64_t sample) const {
    Filled p = *this;
    if (levels.axes > 0) {
      p.weight.advance(levels.offset(0, sample));
      p.walk.advance(levels, 1, sample);
      p.out += levels.offset(Walk::ARRAYS + 1, sample);
    }
    p.walk.begin();
    p.weight.begin(p.walk);
    return p;
  }
};

// A warp fills a row.
template <class P>
__global__ void fill_rows(Levels levels, P whole) {
  share<32>(levels, whole, whole.walk.extents.lines, [&](const P& p, int64_t row) {
    p.walk.visit(row, threadIdx.x & 31, 32, [&](int64_t col, int64_t tag) {
      p.out[row * p.walk.extents.others + col] = p.weight.at(tag);
    });
  });
}

// out[row, col] = the weight of every edge, zero elsewhere.
template <class Walk, class List, template <class> class Weight>
void dense(const BE::Tensor& w, std::initializer_list<BE::Tensor> arrays, const BE::Tensor& out,
           const Call& call, int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  clear(out, stream);
  if (out.numel() == 0) return;
  const Walk walk(arrays.begin(), call);
  const Levels levels = levels_of(call.levels, w, arrays, out);
  constexpr int T = Limits::THREADS;
  with_type(List{}, w, [&](auto type) {
    using A = typename decltype(type)::type;
    const Filled<Walk, Weight<A>> p{walk, Weight<A>(w, call.levels),
                                    static_cast<A*>(out.data_ptr())};
    fill_rows<<<grid_for<32>(call.rows, levels), T, 0, stream>>>(levels, p);
  });
  BE_CHECK_KERNEL_LAUNCH();
}

// Where the list of edges goes: a thread counts a row, and puts columns and keys where it begins.
template <class Walk>
struct Listing {
  Walk walk;
  const int32_t* ptr;
  int32_t *count, *col;
  uint32_t *high, *low;
  int64_t size, keys;  // keys may be left out

  __device__ __forceinline__ Listing at(const Levels& levels, int64_t sample) const {
    Listing p = *this;
    if (levels.axes > 0) {
      p.walk.advance(levels, 0, sample);
      p.ptr += levels.offset(Walk::ARRAYS, sample);
      p.count += levels.offset(Walk::ARRAYS + 1, sample);
      p.col += levels.offset(Walk::ARRAYS + 2, sample);
      p.high += levels.offset(Walk::ARRAYS + 2, sample);
      p.low += levels.offset(Walk::ARRAYS + 2, sample);
    }
    p.walk.begin();
    return p;
  }
};

template <class P>
__global__ void list_rows(Levels levels, P whole) {
  share<1>(levels, whole, whole.walk.extents.lines, [&](const P& p, int64_t row) {
    const int64_t first = p.ptr[row];
    int64_t at = first;
    p.walk.visit(row, 0, 1, [&](int64_t col, int64_t key) {
      if (inside(at, p.size)) p.col[at] = static_cast<int32_t>(col);
      if (inside(at, p.keys)) {
        p.high[at] = static_cast<uint32_t>(static_cast<uint64_t>(key) >> 32);
        p.low[at] = static_cast<uint32_t>(static_cast<uint64_t>(key) & drawn::LOW);
      }
      at++;
    });
    p.count[row] = static_cast<int32_t>(at - first);
  });
}

// The number of edges of every row; column and key of the edges that the list has room for.
template <class Walk>
void listing(std::initializer_list<BE::Tensor> arrays, const BE::Tensor& ptr,
             const BE::Tensor& count, const BE::Tensor& col, const BE::Tensor& high,
             const BE::Tensor& low, const Call& call, int64_t stream_) {
  const auto stream = reinterpret_cast<cudaStream_t>(stream_);
  for (const BE::Tensor* t : {&col, &high, &low}) clear(*t, stream);
  if (count.numel() == 0) return;
  const Levels levels = levels_of(call.levels, arrays, ptr, count, col);
  const Listing<Walk> p{Walk(arrays.begin(), call), ptr.data_ptr<int32_t>(),
                        count.data_ptr<int32_t>(), col.data_ptr<int32_t>(),
                        high.data_ptr<uint32_t>(), low.data_ptr<uint32_t>(),
                        col.size(call.levels), high.size(call.levels)};
  list_rows<<<grid_for<1>(call.rows, levels), Limits::THREADS, 0, stream>>>(levels, p);
  BE_CHECK_KERNEL_LAUNCH();
}

}  // namespace be
