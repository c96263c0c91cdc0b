// SPDX-License-Identifier: Apache-2.0
// Every launcher once on a small matrix, without JAX, for compute-sanitizer: allocations are exact,
// so that an access one element too far is seen. Results are compared with loops on the host.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "pick.cuh"
#include "sample.cuh"
#include "scale.cuh"
#include "update.cuh"

namespace {

int failures = 0;

void ok(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(code));
  std::exit(2);
}

// An array in device memory, of exactly its size.
template <class T>
struct Device {
  std::vector<T> host;
  T* data = nullptr;

  explicit Device(std::vector<T> values) : host(std::move(values)) {
    if (host.empty()) return;
    ok(cudaMalloc(&data, host.size() * sizeof(T)), "cudaMalloc");
    ok(cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  }
  ~Device() { cudaFree(data); }
  Device(const Device&) = delete;

  BE::Tensor tensor(BE::DType dtype, std::vector<int64_t> shape) const {
    return BE::Tensor(data, dtype, static_cast<int>(shape.size()), shape.data());
  }
  const std::vector<T>& fetch() {
    ok(cudaDeviceSynchronize(), "kernel");
    ok(cudaMemcpy(host.data(), data, host.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return host;
  }
};

float number() { return static_cast<float>(std::rand() % 9 - 4) / 4; }

std::vector<float> numbers(size_t n) {
  std::vector<float> x(n);
  for (float& one : x) one = number();
  return x;
}

void compare(const char* what, const std::vector<float>& got, const std::vector<double>& want) {
  for (size_t i = 0; i < want.size(); i++) {
    if (std::fabs(got[i] - want[i]) > 1e-3 * (1 + std::fabs(want[i]))) {
      std::printf("%s: element %zu is %g, not %g\n", what, i, got[i], want[i]);
      failures++;
      return;
    }
  }
}

// A random matrix of `rows` by `cols` with about `mean` edges a row, in all the ways it is stored.
struct Matrix {
  int rows, cols;
  std::vector<int> row, indices, indptr{0}, back, back_ptr, tags;
  std::vector<float> weights;

  Matrix(int rows_, int cols_, int mean) : rows(rows_), cols(cols_), back_ptr(cols_ + 1) {
    for (int i = 0; i < rows; i++) {
      const int edges = i % 5 == 1 ? 0 : 1 + std::rand() % (2 * mean);
      for (int k = 0; k < edges; k++) {
        row.push_back(i);
        indices.push_back(std::rand() % cols);
      }
      indptr.push_back(static_cast<int>(indices.size()));
    }
    weights = numbers(indices.size());
    for (int j = 0; j < cols; j++) {
      for (size_t e = 0; e < indices.size(); e++) {
        if (indices[e] != j) continue;
        back.push_back(row[e]);
        tags.push_back(static_cast<int>(e));
      }
      back_ptr[j + 1] = static_cast<int>(back.size());
    }
  }
  int64_t edges() const { return static_cast<int64_t>(indices.size()); }
};

constexpr auto F32 = BE::DType::Float32;
constexpr auto I32 = BE::DType::Int32;
using Floats = be::Types<float>;

// Products in both directions, for vectors and batches, of numbers and of spikes.
void products(const Matrix& m, bool transpose, int columns, bool spikes, bool split) {
  const int in = transpose ? m.rows : m.cols, out = transpose ? m.cols : m.rows;
  const int side = columns ? columns : 1;
  Device<float> w(m.weights), x(numbers(static_cast<size_t>(in) * side));
  Device<float> y(std::vector<float>(static_cast<size_t>(out) * side, NAN));
  std::vector<unsigned char> on;
  for (float one : x.host) on.push_back(one > 0);
  Device<unsigned char> bits(on);
  Device<int> indices(m.indices), indptr(m.indptr), back(m.back), back_ptr(m.back_ptr);
  Device<int> tags(m.tags), row(m.row);
  Device<double> wide(std::vector<double>(split ? y.host.size() : 0));
  std::vector<double> want(y.host.size());
  for (int64_t e = 0; e < m.edges(); e++) {
    const int s = transpose ? m.row[e] : m.indices[e], t = transpose ? m.indices[e] : m.row[e];
    for (int c = 0; c < side; c++) {
      const float one = x.host[s * side + c];
      want[t * side + c] += m.weights[e] * (spikes ? one > 0 : one);
    }
  }
  const auto shaped = [&](int n) {
    return columns ? std::vector<int64_t>{n, columns} : std::vector<int64_t>{n};
  };
  const auto input = spikes ? bits.tensor(BE::DType::Bool, shaped(in)) : x.tensor(F32, shaped(in));
  const auto result = y.tensor(F32, shaped(out));
  const auto room = wide.tensor(BE::DType::UInt32, {2 * static_cast<int64_t>(wide.host.size())});
  const auto weights = w.tensor(F32, {m.edges()});
  const auto ids = indices.tensor(I32, {m.edges()}), tag = tags.tensor(I32, {m.edges()});
  const auto ptr = indptr.tensor(I32, {m.rows + 1});
  be::Call call{spikes ? 1 : 0, 0, transpose, false, m.rows, m.cols};
  be::product<be::Compressed, Floats>(weights, {ids, ptr}, input, result, room, call, 0);
  compare("compressed", y.fetch(), want);
  be::product<be::Pairs, Floats>(weights, {row.tensor(I32, {m.edges()}), ids}, input, result, room,
                                 call, 0);
  compare("pairs", y.fetch(), want);
  call.along_columns = true;
  be::product<be::Tagged, Floats>(
      weights, {back.tensor(I32, {m.edges()}), back_ptr.tensor(I32, {m.cols + 1}), tag}, input,
      result, room, call, 0);
  compare("tagged", y.fetch(), want);
}

// Sample, scale, update and pick along rows.
void others(const Matrix& m) {
  const int64_t n = m.edges();
  Device<float> w(m.weights), x(numbers(m.rows)), y(numbers(m.cols)), out(numbers(n));
  Device<int> indices(m.indices), indptr(m.indptr), asked({m.rows - 1, 0, 2, m.rows - 1, m.rows});
  Device<float> lines(std::vector<float>(5 * static_cast<size_t>(m.cols), NAN));
  std::vector<unsigned char> on;
  for (float one : x.host) on.push_back(one > 0);
  Device<unsigned char> bits(on);
  const auto weights = w.tensor(F32, {n}), result = out.tensor(F32, {n});
  const auto xs = x.tensor(F32, {m.rows}), ys = y.tensor(F32, {m.cols});
  const auto fired = bits.tensor(BE::DType::Bool, {m.rows}), which = asked.tensor(I32, {5});
  const std::initializer_list<BE::Tensor> arrays{indices.tensor(I32, {n}),
                                                 indptr.tensor(I32, {m.rows + 1})};
  be::Call call{0, 0, true, false, m.rows, m.cols};
  std::vector<double> sampled(n), scaled(n), learned(n), picked(lines.host.size());
  for (int64_t e = 0; e < n; e++) {
    const float trace = y.host[m.indices[e]], spike = x.host[m.row[e]];
    sampled[e] = spike * trace;
    scaled[e] = m.weights[e] * trace;
    learned[e] = m.weights[e] + (spike > 0 ? trace : 0);
    for (int k = 0; k < 5; k++)
      if (asked.host[k] == m.row[e]) picked[k * m.cols + m.indices[e]] += m.weights[e];
  }
  be::sample<be::Compressed, Floats>(arrays, xs, ys, result, call, 0);
  compare("sample", out.fetch(), sampled);
  be::scale<be::Compressed, Floats>(weights, arrays, ys, result, call, 0);
  compare("scale", out.fetch(), scaled);
  be::pick<be::Compressed, Floats>(weights, arrays, which, which,
                                   lines.tensor(F32, {5, m.cols}), call, false, false, 0);
  compare("pick", lines.fetch(), picked);
  call.event = 1;
  be::update<be::Compressed, Floats>(arrays, fired, ys, ys, weights, call, false, 0);
  compare("update", w.fetch(), learned);
}

}  // namespace

int main() {
  const int shapes[][3] = {{40, 30, 3}, {33, 70, 20}, {3, 900, 2500}, {1, 1, 1}};
  for (const auto& s : shapes) {
    const Matrix m(s[0], s[1], s[2]);
    for (int transpose = 0; transpose < 2; transpose++)
      for (int columns : {0, 1, 5, 40})
        for (int spikes = 0; spikes < 2; spikes++)
          products(m, transpose, columns, spikes, columns == 5);
    others(m);
  }
  std::printf("%s\n", failures ? "FAILED" : "all results are right");
  return failures ? 1 : 0;
}
