// SPDX-License-Identifier: Apache-2.0
// What the self-test calls. `fault` is a number of faults.cuh.
#include "brainevent/common.h"
#include "other.cuh"
#include "semantics.cuh"
#include "sparse.cuh"

using BE::Tensor;

static Fault planted(int32_t number) { return static_cast<Fault>(number); }
static cudaStream_t on(int64_t stream) { return reinterpret_cast<cudaStream_t>(stream); }
template <class T>
static T* of(const Tensor& t) {
  return static_cast<T*>(const_cast<void*>(static_cast<const void*>(t.data_ptr())));
}

template <class W>
static void scatter_as(const Tensor& w, const Tensor& indices, const Tensor& indptr,
                       const Tensor& events, const Tensor& y, Fault fault, cudaStream_t s) {
  const int m = (int)events.numel(), n = (int)y.numel();
  if (events.dtype() == BE::DType::Bool)
    sparse::launch_scatter(of<W>(w), of<int>(indices), of<int>(indptr), of<bool>(events), of<W>(y),
                           m, n, fault, s);
  else
    sparse::launch_scatter(of<W>(w), of<int>(indices), of<int>(indptr), of<float>(events),
                           of<W>(y), m, n, fault, s);
}

// @BE scatter
void scatter(const Tensor w, const Tensor indices, const Tensor indptr, const Tensor events,
             Tensor y, int32_t fault, int64_t stream) {
  const auto go = [&](auto* kind) {
    using W = std::remove_pointer_t<decltype(kind)>;
    scatter_as<W>(w, indices, indptr, events, y, planted(fault), on(stream));
  };
  switch (w.dtype()) {
    case BE::DType::Float32: go((float*)nullptr); break;
    case BE::DType::Float64: go((double*)nullptr); break;
    case BE::DType::Float16: go((__half*)nullptr); break;
    case BE::DType::BFloat16: go((__nv_bfloat16*)nullptr); break;
    default: BE_CHECK(false) << "no weights of type " << w.dtype();
  }
}

// @BE gather
void gather(const Tensor w, const Tensor indices, const Tensor indptr, const Tensor events,
            Tensor y, int32_t fault, int64_t stream) {
  const int m = (int)y.numel();
  sparse::gather<<<sparse::blocks(m, 8, 4096), 256, 0, on(stream)>>>(
      of<float>(w), of<int>(indices), of<int>(indptr), of<bool>(events), of<float>(y), m,
      planted(fault));
}

// @BE block_sums
void block_sums(const Tensor x, Tensor out, int32_t fault, int64_t stream) {
  sparse::launch_block_sums(of<float>(x), of<float>(out), (int)x.numel(), (int)out.numel(),
                            planted(fault), on(stream));
}

// @BE compact
void compact(const Tensor events, Tensor found, Tensor count, int32_t fault, int64_t stream) {
  sparse::launch_compact(of<bool>(events), of<int>(found), of<int>(count), (int)events.numel(),
                         planted(fault), on(stream));
}

// @BE scale_rows
void scale_rows(const Tensor b, const Tensor rows, Tensor out, float factor, int64_t stream) {
  sparse::scale_rows<<<(unsigned)rows.numel(), 64, 0, on(stream)>>>(
      of<float>(out), of<int>(rows), (int)b.size(1), factor, none);
}

// Row 65537 of a float32 matrix of (65540, 32768): 8.6 GB of addresses, of which few are touched.
// @BE huge
void huge(const Tensor row, Tensor y, int32_t fault, int64_t stream) {
  const int columns = 32768;
  const size_t bytes = (size_t)65540 * columns * 4;
  float* matrix = static_cast<float*>(cuemu_alloc(bytes, 4, CUEMU_SPARSE, "matrix"));
  float* of_row = matrix + (size_t)65537 * columns;
  cudaMemsetAsync(of_row, 0, columns * sizeof(float), on(stream));
  sparse::scale_rows<<<1, 64, 0, on(stream)>>>(matrix, of<int>(row), columns, 2.f, planted(fault));
  cudaMemcpyAsync(of<float>(y), of_row, columns * sizeof(float), cudaMemcpyDeviceToDevice,
                  on(stream));
}

// @BE warp_operations
void warp_operations(const Tensor x, Tensor y, int64_t stream) {
  const int n = (int)x.numel();
  semantics::warp_operations<<<1, n, 0, on(stream)>>>(of<int>(x), of<int>(y), n);
}

// @BE three_dimensions
void three_dimensions(Tensor y, int64_t stream) {
  semantics::three_dimensions<<<dim3(2, 3, 2), dim3(4, 2, 3), 0, on(stream)>>>(
      semantics::Extents{1, 2, 3}, of<int>(y));
}

// @BE neighbours
void neighbours(const Tensor x, Tensor y, int32_t fault, int64_t stream) {
  semantics::neighbours<<<1, 64, 0, on(stream)>>>(of<float>(x), of<float>(y), planted(fault));
}

// @BE maximum
void maximum(const Tensor x, Tensor y, int32_t fault, int64_t stream) {
  const int n = (int)x.numel();
  cudaMemsetAsync(of<float>(y), 0, sizeof(float), on(stream));
  semantics::maximum<<<sparse::blocks(n, 32, 4096), 32, 0, on(stream)>>>(
      of<float>(x), of<float>(y), n, planted(fault));
}

// @BE fours
void fours(const Tensor x, Tensor y, int32_t fault, int64_t stream) {
  semantics::fours<<<1, (unsigned)(x.numel() / 4), 0, on(stream)>>>(of<float>(x), of<float>(y),
                                                                   (int)y.numel(), planted(fault));
  if (fault == host_waits) cudaStreamSynchronize(on(stream));  // <- host_waits
}

// @BE barriers
void barriers(const Tensor x, Tensor y, int32_t fault, int64_t stream) {
  semantics::barriers<<<1, 64, 0, on(stream)>>>(of<int>(x), of<int>(y), planted(fault));
}

// @BE complex_sum
void complex_sum(const Tensor x, Tensor y, int64_t stream) {
  using C = other::Complex<float>;
  cudaMemsetAsync(of<C>(y), 0, sizeof(C), on(stream));
  other::complex_sum<float, (32 > 16 ? 64 : 32)><<<1, 64, 64 * sizeof(C), on(stream)>>>(
      of<C>(x), of<C>(y), (int)x.numel());
}

// @BE squares
void squares(Tensor y, int64_t stream) {
  other::squares(of<int>(y), (int)y.numel(), on(stream));
}

// @BE faulty
void faulty(const Tensor x, Tensor y, int32_t fault, int64_t stream) {
  BE_CHECK(x.numel() == y.numel()) << "x and y differ in length";
  other::launch_faulty(of<float>(x), of<int>(y), (int)y.numel(), planted(fault), on(stream));
}
