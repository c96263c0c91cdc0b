// SPDX-License-Identifier: Apache-2.0
// The drawn walk: edges of a row follow from a probability and a seed, and are stored nowhere.
// `brainevent/_edge/random.py` tells the model; this is its text on numbers of 64 bits, and gives
// the same bits.
#pragma once
#include "product.cuh"

namespace be {

namespace drawn {

constexpr uint64_t GAMMA = 0x9E3779B97F4A7C15u;
constexpr uint64_t LN2 = 2977044472u;  // log(2) in units of 2^-32
constexpr uint64_t LOW = 0xFFFFFFFFu;

__device__ __forceinline__ uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Output i of the generator that starts from a key.
__device__ __forceinline__ uint64_t draw(uint64_t key, uint64_t i) {
  return mix(key + (i + 1) * GAMMA);
}

// -log(1 - v / 2) for a fraction of 32 bits, in units of 2^-32; the table holds value and slope.
__device__ __forceinline__ uint64_t log_part(const uint32_t* table, uint64_t v) {
  const uint32_t* entry = table + 2 * (v >> 22);
  const uint64_t y = (entry[1] * (v & ((1u << 22) - 1))) >> 22;
  return entry[0] + ((y + ((y * y) >> 43)) >> 10);
}

// What a probability means for gaps.
struct Rule {
  uint64_t mantissa, shift, width, rest;

  // The number of positions that are passed over before an edge.
  __device__ __forceinline__ uint64_t gap(const uint32_t* table, uint64_t key) const {
    const uint64_t zeros = __ffsll(static_cast<long long>(key | (LOW + 1))) - 1;
    const uint64_t near = ((zeros * LN2 + log_part(table, key >> 32)) * mantissa) >> shift;
    if (rest == 0) return near;  // a group of positions, and the position in the group
    return near << rest | draw(key, 2) >> (64 - rest);
  }
};

// The rule of a probability, given by the bits of a float32.
__device__ inline Rule rule_of(uint64_t bits, const uint32_t* table) {
  if (bits < 0x23000000u || bits > 0x7F800000u) return {0, 0, 31, 0};
  if (bits >= 0x3F800000u) return {0, 63, 6, 0};
  const uint64_t down = 126 - (bits >> 23);
  const uint64_t fraction = ((bits & 0x7FFFFFu) | 0x800000u) << 8;
  const uint64_t p = fraction >> (down < 31 ? down : 31);
  uint64_t digits, scale;
  if (down >= 4) {
    uint64_t series = 0;
    for (uint64_t k = 8; k > 1; k--) series = (p * (series + (LOW + 1) / k)) >> 32;
    uint64_t rate = fraction >> 1;
    rate += (rate * series) >> 32;
    const uint64_t up = __clzll(static_cast<long long>(rate)) - 32;
    digits = rate << up;
    scale = 31 + up + down;
  } else {
    const uint64_t zeros = __clzll(static_cast<long long>(p ^ LOW)) - 32;
    const uint64_t rest = ((LOW + 1 - p) << zeros) & LOW;
    const uint64_t rate = zeros * LN2 + log_part(table, ((LOW + 1 - rest) << 1) & LOW);
    scale = __clzll(static_cast<long long>(rate));
    digits = (rate << scale) >> 32;
  }
  const uint64_t mantissa = ((uint64_t{1} << 59) / digits + 1) >> 1, shift = 90 - scale;
  const uint64_t width = shift < 58 ? 64 - shift : 6;
  const uint64_t rest = shift >= 37 ? 0 : shift > 12 ? 43 - shift : 31;  // rare edges
  return {mantissa, shift + rest, width < 31 ? width : 31, rest};
}

}  // namespace drawn

// Rows whose edges are drawn. The arrays are the bits of the probability, the seed as two words,
// and the table of logarithms; the tag of an edge is its key.
struct Drawn {
  static constexpr int ARRAYS = 3;
  const uint32_t *bits, *seed, *table;
  Extents extents;
  uint64_t root = 0, blocks = 0;
  drawn::Rule rule{};

  Drawn(const BE::Tensor* s, const Call& call)
      : bits(static_cast<const uint32_t*>(s[0].data_ptr())),
        seed(static_cast<const uint32_t*>(s[1].data_ptr())),
        table(static_cast<const uint32_t*>(s[2].data_ptr())),
        extents(call.extents()) {}
  int64_t mean() const { return 32; }  // how many blocks a row has is known on the device only
  __device__ __forceinline__ void advance(const Levels& levels, int operand, int64_t sample) {
    bits += levels.offset(operand, sample);
    seed += levels.offset(operand + 1, sample);
  }
  __device__ __forceinline__ void begin() {
    rule = drawn::rule_of(bits[0], table);
    root = drawn::draw(static_cast<uint64_t>(seed[0]) << 32 | seed[1], 0);
    const uint64_t n = static_cast<uint64_t>(extents.others);
    blocks = rule.shift ? (n + (uint64_t{1} << rule.width) - 1) >> rule.width : 0;
  }
  template <class F>
  __device__ __forceinline__ void visit(int64_t line, int lane, int lanes, F&& f) const {
    const uint64_t stream = drawn::draw(root, static_cast<uint64_t>(line));
    for (uint64_t block = lane; block < blocks; block += lanes) {
      uint64_t state = drawn::draw(stream, block), place = block << rule.width;
      const uint64_t end = (block + 1) << rule.width, n = static_cast<uint64_t>(extents.others);
      const uint64_t last = end < n ? end : n;
      for (uint64_t step = 0;; step = 1) {
        state += drawn::GAMMA;
        const uint64_t key = drawn::mix(state);
        place += rule.gap(table, key) + step;
        if (place >= last) break;
        f(static_cast<int64_t>(place), static_cast<int64_t>(key));
      }
    }
  }
};

// ---- weights -----------------------------------------------------------------------------------

// The real numbers that belong to a type of sums.
template <class A>
struct Real {
  using type = A;
};
template <class R>
struct Real<Complex<R>> {
  using type = R;
};
template <class R>
__device__ __forceinline__ Complex<R> operator*(Complex<R> a, R b) {
  return {a.re * b, a.im * b};
}
template <class R>
__device__ __forceinline__ Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}

template <class A>
struct Constant {
  using Value = A;
  const A* params;

  Constant(const BE::Tensor& w, int) : params(static_cast<const A*>(w.data_ptr())) {}
  __device__ __forceinline__ A at(int64_t) const { return params[0]; }
  __device__ __forceinline__ void advance(int64_t n) { params += n; }
  template <class Walk>
  __device__ __forceinline__ void begin(const Walk&) {}
};

// Between a low and a high end.
template <class A>
struct Uniform : Constant<A> {
  using Constant<A>::Constant;
  using R = typename Real<A>::type;
  __device__ __forceinline__ A at(int64_t key) const {
    const uint32_t word = static_cast<uint32_t>(drawn::draw(static_cast<uint64_t>(key), 0) >> 32);
    const R number = static_cast<R>(word) * static_cast<R>(1.0 / 4294967296.0);
    return this->params[0] + (this->params[1] - this->params[0]) * number;
  }
};

namespace drawn {

template <class R>
__device__ __forceinline__ R polynomial(const double (&c)[8], R x) {
  R total = static_cast<R>(c[7]);
#pragma unroll
  for (int k = 6; k >= 0; k--) total = total * x + static_cast<R>(c[k]);
  return total;
}

// A standard normal number by inversion: Wichura's algorithm AS 241. The word is a sign and 31
// bits of a distance from the centre; tails are found from what is left to the end.
template <class R>
__device__ inline R gauss(uint64_t key, const uint32_t* table) {
  constexpr double CENTRE[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
       1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
       3.3430575583588128105e4, 2.5090809287301226727e3},
      {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
       2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
       5.2264952788528545610e3}};
  constexpr double TAIL[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
       3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
       2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
       1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
       1.05075007164441684324e-9}};
  constexpr R SCALE = static_cast<R>(1.0 / 4294967296.0);
  const uint64_t word = draw(key, 0) >> 32;
  const bool minus = word < 0x80000000u;
  const uint64_t size = minus ? 0x7FFFFFFFu - word : word - 0x80000000u;
  const R near = (static_cast<R>(static_cast<int64_t>(size)) + static_cast<R>(0.5)) * SCALE;
  R value;
  if (near <= static_cast<R>(0.425)) {
    const R x = static_cast<R>(0.180625) - near * near;
    value = near * polynomial(CENTRE[0], x) / polynomial(CENTRE[1], x);
  } else {
    const uint64_t odd = ((0x7FFFFFFFu - size) << 1) | 1;
    const uint64_t zeros = __clzll(static_cast<long long>(odd)) - 32;
    const uint64_t v = (((odd << zeros) ^ LOW) << 1) & LOW;
    const uint64_t log = (zeros + 1) * LN2 + log_part(table, v);
    const R whole = static_cast<R>(static_cast<int64_t>(log >> 32));
    const R rest = static_cast<R>(static_cast<int64_t>(log & LOW)) * SCALE;
    const R x = sqrt(whole + rest) - static_cast<R>(1.6);
    value = polynomial(TAIL[0], x) / polynomial(TAIL[1], x);
  }
  return minus ? -value : value;
}

}  // namespace drawn

// Of a location and a scale.
template <class A>
struct Normal : Constant<A> {
  using Constant<A>::Constant;
  using R = typename Real<A>::type;
  const uint32_t* table = nullptr;

  __device__ __forceinline__ void begin(const Drawn& walk) { table = walk.table; }
  __device__ __forceinline__ A at(int64_t key) const {
    const R number = drawn::gauss<R>(static_cast<uint64_t>(key), table);
    return this->params[0] + this->params[1] * number;
  }
};

}  // namespace be
