// SPDX-License-Identifier: Apache-2.0
// What the text pass makes of launches and of shared variables.
//
//     k<T><<<grid, block, shared, stream>>>(a, b)
//       cuemu::launch("k<T>", {grid, block, shared, stream}, [=](auto... x) { k<T>(x...); }, a, b)
//     __shared__ float s[32];
//       auto& s = cuemu::shared<float[32]>("s", [] {});
//     extern __shared__ float s[];
//       float* s = cuemu::dynamic_shared<float>();
#pragma once
#include "cuemu/runtime.h"

namespace cuemu {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  const char* file;
  int line;
  Configuration(dim3 grid_, dim3 block_, size_t shared_ = 0, const void* = nullptr,
                const char* at = __builtin_FILE(), int line_ = __builtin_LINE())
      : grid(grid_), block(block_), shared(shared_), file(at), line(line_) {}
};

// A kernel and its arguments, which every thread copies: as on a GPU, they are values.
template <class Kernel, class... A>
struct Bound {
  Kernel kernel;
  std::tuple<A...> arguments;
  static CUEMU_QUIET void run(void* self) {
    static_cast<Bound*>(self)->call(std::index_sequence_for<A...>());
  }
  template <size_t... I>
  CUEMU_QUIET void call(std::index_sequence<I...>) {
    kernel(std::get<I>(arguments)...);
  }
};

template <class Kernel, class... A>
void launch(const char* name, Configuration c, Kernel kernel, A... arguments) {
  using B = Bound<Kernel, A...>;
  B bound{kernel, std::tuple<A...>(arguments...)};
  const cuemu_launch_t l{name, c.file, c.line, c.grid, c.block, c.shared, &B::run, &bound,
                         sizeof bound};
  cuemu_launch(&l);
}

// One object for each block and declaration. A closure has a type of its own, also in each
// instance of a template: the address of its tag tells the declarations apart.
template <class T, class Closure>
struct Tag {
  static const char key;
};
template <class T, class Closure>
const char Tag<T, Closure>::key = 0;

template <class T, class Closure>
T& shared(const char* name, Closure) {
  return *static_cast<T*>(cuemu_shared(&Tag<T, Closure>::key, name, sizeof(T), alignof(T)));
}

// Always the same place, so that it may be declared outside functions too.
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(cuemu_dynamic_shared());
}

}  // namespace cuemu
