// SPDX-License-Identifier: Apache-2.0
// The tensor product on a GPU. A thread takes one term of one sample and adds what it is worth to
// the outputs; so they are cleared first, on the same stream: XLA hands out memory as it was left.
#include "brainevent/common.h"

using BE::Tensor;

namespace {

// What all three operators are given, and the widths of its rows.
template <class T>
struct Operands {
  const int32_t* places;  // four rows of `terms`: columns in x, y, w, z
  const T *c, *x, *y, *w;
  int64_t terms, samples, nx, ny, nw, nz;
  bool shared;  // one row of weights for all samples
};

// One term of one sample: its coefficient, and where it reads and writes.
template <class T>
struct Term {
  T c;
  int64_t x, y, w, z;
};

template <class T>
__device__ Term<T> term_of(const Operands<T>& of, int64_t number) {
  const int64_t b = number / of.terms, t = number % of.terms;
  const int32_t* p = of.places + t;
  return {of.c[t], b * of.nx + p[0], b * of.ny + p[of.terms],
          (of.shared ? 0 : b) * of.nw + p[2 * of.terms], b * of.nz + p[3 * of.terms]};
}

__device__ int64_t thread_number() { return blockIdx.x * (int64_t)blockDim.x + threadIdx.x; }

template <class T>
__global__ void forward_kernel(Operands<T> of, T* z) {
  if (thread_number() >= of.terms * of.samples) return;
  const Term<T> t = term_of(of, thread_number());
  atomicAdd(z + t.z, t.c * of.x[t.x] * of.y[t.y] * of.w[t.w]);
}

template <class T>
__global__ void backward_kernel(Operands<T> of, const T* g, T* gx, T* gy, T* gw) {
  if (thread_number() >= of.terms * of.samples) return;
  const Term<T> t = term_of(of, thread_number());
  const T x = of.x[t.x], y = of.y[t.y], w = of.w[t.w], cg = t.c * g[t.z];
  atomicAdd(gx + t.x, cg * y * w);
  atomicAdd(gy + t.y, cg * x * w);
  atomicAdd(gw + t.w, cg * x * y);
}

template <class T>
__global__ void double_backward_kernel(Operands<T> of, const T* g, const T* dxs, const T* dys,
                                       const T* dws, T* gx, T* gy, T* gw, T* gg) {
  if (thread_number() >= of.terms * of.samples) return;
  const Term<T> t = term_of(of, thread_number());
  const T x = of.x[t.x], y = of.y[t.y], w = of.w[t.w], cg = t.c * g[t.z];
  const T dx = dxs[t.x], dy = dys[t.y], dw = dws[t.w];
  atomicAdd(gx + t.x, cg * (dy * w + y * dw));
  atomicAdd(gy + t.y, cg * (dx * w + x * dw));
  atomicAdd(gw + t.w, cg * (dx * y + x * dy));
  atomicAdd(gg + t.z, t.c * (dx * y * w + x * dy * w + x * y * dw));
}

constexpr int THREADS = 256;

template <class T>
unsigned blocks(const Operands<T>& of) {
  return (unsigned)(1 + of.terms * of.samples / THREADS);
}

template <class T>
Operands<T> operands(const Tensor& places, const Tensor& c, const Tensor& x, const Tensor& y,
                     const Tensor& w, int64_t nz) {
  BE_CHECK(places.dtype() == BE::DType::Int32 && c.dtype() == x.dtype())
      << "places of " << places.dtype() << ", coefficients of " << c.dtype();
  return {places.data_ptr<int32_t>(), c.data_ptr<T>(), x.data_ptr<T>(), y.data_ptr<T>(),
          w.data_ptr<T>(), c.size(0), x.size(0), x.size(1), y.size(1), w.size(1), nz,
          w.size(0) == 1};
}

cudaStream_t on(int64_t stream) { return reinterpret_cast<cudaStream_t>(stream); }

void clear(const Tensor& out, int64_t stream) {
  BE_CUDA_CHECK(cudaMemsetAsync(out.data_ptr(), 0, out.nbytes(), on(stream)));
}

}  // namespace

// @BE forward
void forward(const Tensor places, const Tensor c, const Tensor x, const Tensor y, const Tensor w,
             Tensor z, int64_t stream) {
  clear(z, stream);
  BE_DISPATCH_FLOATING(x.dtype(), T, {
    const Operands<T> of = operands<T>(places, c, x, y, w, z.size(1));
    forward_kernel<T><<<blocks(of), THREADS, 0, on(stream)>>>(of, z.data_ptr<T>());
  });
}

// @BE backward
void backward(const Tensor places, const Tensor c, const Tensor x, const Tensor y, const Tensor w,
              const Tensor g, Tensor gx, Tensor gy, Tensor gw, int64_t stream) {
  for (const Tensor& out : {gx, gy, gw}) clear(out, stream);
  BE_DISPATCH_FLOATING(x.dtype(), T, {
    const Operands<T> of = operands<T>(places, c, x, y, w, g.size(1));
    backward_kernel<T><<<blocks(of), THREADS, 0, on(stream)>>>(
        of, g.data_ptr<T>(), gx.data_ptr<T>(), gy.data_ptr<T>(), gw.data_ptr<T>());
  });
}

// @BE double_backward
void double_backward(const Tensor places, const Tensor c, const Tensor x, const Tensor y,
                     const Tensor w, const Tensor g, const Tensor dx, const Tensor dy,
                     const Tensor dw, Tensor gx, Tensor gy, Tensor gw, Tensor gg, int64_t stream) {
  for (const Tensor& out : {gx, gy, gw, gg}) clear(out, stream);
  BE_DISPATCH_FLOATING(x.dtype(), T, {
    const Operands<T> of = operands<T>(places, c, x, y, w, g.size(1));
    double_backward_kernel<T><<<blocks(of), THREADS, 0, on(stream)>>>(
        of, g.data_ptr<T>(), dx.data_ptr<T>(), dy.data_ptr<T>(), dw.data_ptr<T>(),
        gx.data_ptr<T>(), gy.data_ptr<T>(), gw.data_ptr<T>(), gg.data_ptr<T>());
  });
}
