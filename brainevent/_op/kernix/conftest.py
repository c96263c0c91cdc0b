# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests of run-time compilation: one compiled module for all, and toys."""

import shutil

import pytest

from brainevent._op import cache
from brainevent._op.kernix import load_cpp_inline

SHARED = r"""
#include "brainevent/common.h"
#include <stdexcept>
#include <complex>

// @BE scale
void scale(const BE::Tensor x, BE::Tensor y, float factor) {
  BE_CHECK(x.numel() == y.numel()) << "x is " << x << ", y is " << y;
  for (int64_t i = 0; i < x.numel(); ++i)
    y.data_ptr<float>()[i] = factor * x.data_ptr<float>()[i];
}

// @BE typed arg:float32[2] ret:float32[1]
void typed(const BE::Tensor& x, BE::Tensor& y) {
  for (int64_t i = 0; i < x.size(0); ++i) {
    y.data_ptr<float>()[i] = 0;
    for (int64_t j = 0; j < x.size(1); ++j)
      y.data_ptr<float>()[i] += x.data_ptr<float>()[i * x.stride(0) + j * x.stride(1)];
  }
}

// Everything an attribute can be, written into one vector.
// @BE every arg ret attr.a attr.b attr.d attr.e attr.f attr.g attr.h:bfloat16 attr.i attr.j stream
void every(const BE::Tensor, BE::Tensor y, bool a, int8_t b, long long d,
           double e, size_t f, BE::float16_t g, uint16_t h, std::complex<float> i,
           BE::complex128_t j, int64_t stream) {
  const double all[] = {double(a), double(b), double(d), e, double(f), double(g.bits),
                        double(h), i.real(), i.imag(), j.re, j.im, double(stream)};
  for (int k = 0; k < 12; ++k) y.data_ptr<float>()[k] = float(all[k]);
}

// @BE fails
void fails(const BE::Tensor, BE::Tensor, int32_t how) {
  BE_CHECK(how != 0) << "how is " << how;
  if (how == 1) throw std::runtime_error("thrown");
  if (how == 2) throw 42;
  if (how == 3) throw std::runtime_error("\xff, which is no text");
}

// @BE kinds
void kinds(BE::Tensor x) {
  BE_DISPATCH_ALL(x.dtype(), T, { memset(x.data_ptr<T>(), sizeof(T), x.nbytes()); });
}

// @BE shifted
void shifted(const BE::Tensor x, BE::Tensor y, const BE::Tensor index) {
  BE_CHECK_CSR_INDICES_INT32(index);
  BE_DISPATCH_SIGNED_INDEX_PAIR(index.dtype(), x.dtype(), I, J, {
    y.data_ptr<J>()[0] = J(x.data_ptr<J>()[index.data_ptr<I>()[0]]);
  });
}

// @BE narrowing ret attr.a:int64 attr.b:int32 attr.c:uint64 attr.d:int64 attr.e:float64
void narrowing(BE::Tensor y, int8_t a, uint64_t b, int32_t c, double d, float e) {
  auto* out = y.data_ptr<double>();
  out[0] = a, out[1] = static_cast<double>(b), out[2] = c, out[3] = d, out[4] = e;
}
"""


@pytest.fixture(scope='session')
def shared(tmp_path_factory):
    """Return one compiled module with functions of every sort."""
    if not any(map(shutil.which, ('g++', 'c++', 'clang++'))):
        pytest.skip('no C++ compiler on this machine')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, '_ready', None)
        patch.setattr(cache, '_chosen', tmp_path_factory.mktemp('shared') / 'kernels')
        flags = ['-Wall', '-Wextra', '-Werror', '-O1']
        return load_cpp_inline('kernix_shared', SHARED, extra_cflags=flags)


@pytest.fixture
def compiler():
    """Skip where there is no C++ compiler."""
    if not any(map(shutil.which, ('g++', 'c++', 'clang++'))):
        pytest.skip('no C++ compiler on this machine')


@pytest.fixture
def toy():
    """Return a toolchain that compiles nothing; calls of it are counted."""
    return Toy


class Toy:
    """A toolchain that writes the source in capitals in place of a library."""

    name, platform = 'toy', 'cpu'

    def __init__(self, *words):
        self.words, self.calls = words, 0

    def identity(self):
        return (self.name, *self.words)

    def compile(self, source, folder, output, options):
        self.calls += 1
        self.seen = source, folder, options
        output.write_text(source.upper())
