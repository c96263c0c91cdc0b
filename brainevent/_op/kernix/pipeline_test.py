# SPDX-License-Identifier: Apache-2.0
"""The loaders from end to end: real compilers, real files, and never stale code."""

import re
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

import brainevent as be
from brainevent._op.kernix import pipeline, runtime
from brainevent._op.kernix.nvcc import Nvcc

X = np.arange(3, dtype=np.float32)
OUT = jax.ShapeDtypeStruct(X.shape, X.dtype)
ADD = """
#include "brainevent/common.h"
#ifndef BY
#define BY 1.0f
#endif
// @BE add
void add(const BE::Tensor x, BE::Tensor y) {
  for (int64_t i = 0; i < x.numel(); ++i)
    y.data_ptr<float>()[i] = x.data_ptr<float>()[i] + BY;
}
"""
CUDA_ADD = """
#include "brainevent/common.h"
__global__ void add_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + BY;
}
"""


@pytest.fixture
def isolated(folder, compiler):
    """Use an empty cache that no other test can have filled, and a real compiler."""
    return folder


@pytest.fixture
def unoptimised(monkeypatch):
    """Compile fast: what is tested here is not how fast the code is."""
    made = pipeline._options

    def quick(request, *more):
        return made(pipeline.replace(request, optimization=0), *more)

    monkeypatch.setattr(pipeline, '_options', quick)


@pytest.fixture
def emulated(monkeypatch, tmp_path):
    """Put a toolchain that compiles C++ in nvcc's place, as an emulator does."""
    (tmp_path / 'emulator').mkdir()
    (tmp_path / 'emulator' / 'toolchain.py').write_text(
        'from brainevent._op.kernix.toolchain import HostCxx\n'
        'class Plain(HostCxx):\n'
        '    name = "plain"\n'
        'def toolchain():\n'
        '    return Plain()\n'
    )
    monkeypatch.setenv('BRAINEVENT_CUDA_EMULATOR', str(tmp_path / 'emulator'))


def called(target):
    return jax.ffi.ffi_call(target, OUT)(X).tolist()


def by(number):
    return ADD.replace('1.0f', f'{number}.0f')


pytestmark = pytest.mark.usefixtures('unoptimised')


# --- stale code never runs ----------------------------------------------------------------------


def test_changed_source_under_a_live_name_is_refused(isolated):
    module = be.load_cpp_inline('kx_live', ADD)
    assert called('kx_live.add') == [1, 2, 3]
    for changes in ({}, {'replace': True}, {'force_rebuild': True}):
        with pytest.raises(be.KernelRegistrationError):
            be.load_cpp_inline('kx_live', by(5), **changes)
        assert called('kx_live.add') == [1, 2, 3]
    again = be.load_cpp_inline('kx_live', ADD, force_rebuild=True, replace=True)
    assert again.content_hash == module.content_hash


def test_edited_source_runs_at_once_through_the_callables(isolated):
    def run(module):
        add = module['add']
        return add(X, outs=OUT).tolist(), jax.jit(lambda x: add(x, outs=OUT))(X).tolist()

    first = be.load_cpp_inline('kx_edited', ADD)
    assert run(first) == ([1, 2, 3], [1, 2, 3])
    traced = jax.jit(lambda x: first['add'](x, outs=OUT))
    assert traced(X).tolist() == [1, 2, 3]
    second = be.load_cpp_inline('kx_edited', by(5), auto_register=False)
    assert run(second) == ([5, 6, 7], [5, 6, 7])
    assert run(first) == ([1, 2, 3], [1, 2, 3])
    assert traced(X).tolist() == called('kx_edited.add') == [1, 2, 3]
    assert first.path != second.path


def test_the_remedies_of_the_refusal(isolated):
    be.load_cpp_inline('kx_remedy', ADD)
    be.load_cpp_inline('kx_remedy', by(5), target_prefix='kx_remedy_2')
    assert called('kx_remedy_2.add') == [5, 6, 7]
    be.load_cpp_inline('kx_remedy_3', by(6))
    assert called('kx_remedy_3.add') == [6, 7, 8]
    assert {'kx_remedy.add', 'kx_remedy_2.add'} <= set(be.list_registered_targets())


def test_one_function_first_and_two_later(isolated):
    both = ADD + by(7).replace('add', 'more').replace('BY', 'BY2')
    be.load_cpp_inline('kx_more', both, ['add'])
    module = be.load_cpp_inline('kx_more', both, ['add', 'more'])  # the library has more symbols
    assert module.function_names == ['add', 'more']
    assert called('kx_more.add') == [1, 2, 3]
    assert called('kx_more.more') == [7, 8, 9]


def test_flags_and_headers_are_part_of_the_code(isolated, tmp_path):
    def run(**options):
        module = be.load_cpp_inline('kx_flags', source, auto_register=False, **options)
        return module['add'](X, outs=OUT).tolist()

    source = '#include "by.h"\n' + ADD
    header = tmp_path / 'by.h'
    for number in (2, 3):
        header.write_text(f'#define BY {number}.0f\n')
        assert run(extra_include_paths=[tmp_path]) == [number, number + 1, number + 2]
    header.write_text('')
    assert run(extra_include_paths=[tmp_path], extra_cflags=['-DBY=4']) == [4, 5, 6]


def test_a_library_from_the_cache_is_not_compiled(isolated, monkeypatch):
    path = be.load_cpp_inline('kx_cached', by(23), auto_register=False).path
    monkeypatch.setattr(runtime, '_libraries', {})
    monkeypatch.setattr(pipeline.HostCxx, 'compile', None)
    module = be.load_cpp_inline('kx_cached', by(23), auto_register=False)
    assert module.path == path
    assert module['add'](X, outs=OUT).tolist() == [23, 24, 25]


def test_a_library_that_cannot_be_loaded_is_built_anew(isolated, monkeypatch):
    built = pipeline.build
    jobs = []

    def breaks(job):
        path = built(job)
        jobs.append(job.force)
        if not job.force:
            path.write_text('for another machine')
        return path

    monkeypatch.setattr(pipeline, 'build', breaks)
    module = be.load_cpp_inline('kx_broken', by(21), auto_register=False)
    assert module['add'](X, outs=OUT).tolist() == [21, 22, 23]
    assert jobs == [False, True]
    monkeypatch.setattr(pipeline, 'build', lambda job: isolated / 'gone.so')
    with pytest.raises(be.KernelLoadError):
        be.load_cpp_inline('kx_broken_2', by(22), auto_register=False)


# --- what is told when it fails -----------------------------------------------------------------


def test_messages_point_at_the_line_of_the_source(isolated):
    with pytest.raises(be.CompilationError) as caught:
        be.load_cpp_inline('kx_bad', ADD.replace('+ BY', '+ NO_SUCH_NAME'))
    error = caught.value
    file, line = re.search(r'(\S+\.cpp):(\d+):\d+: error: .NO_SUCH_NAME', str(error)).groups()
    assert isolated in Path(file).parents
    assert 'NO_SUCH_NAME' in Path(file).read_text().splitlines()[int(line) - 1]
    assert 'NO_SUCH_NAME' in error.source
    assert be.load_cpp_inline('kx_bad', ADD).function_names == ['add']


def test_messages_point_at_the_users_file(isolated, tmp_path):
    (tmp_path / 'mine.h').write_text('#define BY nowhere\n')
    (tmp_path / 'mine.cpp').write_text('#include "mine.h"\n' + ADD)
    with pytest.raises(be.CompilationError, match=rf'{tmp_path}/mine\.cpp:10:\d+:') as caught:
        be.load_cpp_file(tmp_path / 'mine.cpp')
    assert f'{tmp_path}/mine.h:1:' in str(caught.value)
    (tmp_path / 'mine.h').write_text('#define BY 8.0f\n')
    module = be.load_cpp_file(str(tmp_path / 'mine.cpp'), name='kx_file')
    assert called('kx_file.add') == [8, 9, 10]
    assert module.name == 'kx_file'


@pytest.mark.parametrize('name', ['', 'a/b', '../x', 'a b', '-x', 'x' * 101, '日' * 40, None])
def test_names_that_cannot_be_used(name):
    with pytest.raises(be.KernelError, match='name of the module'):
        be.load_cpp_inline(name, ADD)


@pytest.mark.usefixtures('compiler')
def test_sources_that_cannot_be_read(tmp_path):
    with pytest.raises(be.KernelLoadError, match='the source cannot be read'):
        be.load_cpp_file(tmp_path / 'none.cpp')
    (tmp_path / 'latin.cpp').write_bytes(b'// \xe9')
    with pytest.raises(be.KernelLoadError, match='a text file'):
        be.load_cpp_file(tmp_path / 'latin.cpp')
    for nothing in (None, b'void f();', [Path('f.cpp')], 'void f();  // \udc80'):
        with pytest.raises(be.KernelError, match='the source is no text'):
            be.load_cpp_inline('kx_none', nothing)
    with pytest.raises(be.KernelError, match='there is no function to call'):
        be.load_cpp_inline('kx_none', 'void f();')
    with pytest.raises(be.KernelError, match=r'none in .*') as caught:
        be.load_cuda_dir(tmp_path)
    assert 'expected: files *.cu' in str(caught.value)
    with pytest.raises(be.KernelError, match='got:      no folder /'):
        be.load_cuda_dir(tmp_path / 'none')


@pytest.mark.usefixtures('unoptimised')
def test_byte_order_marks_and_attributes_with_names_of_the_wrapper(isolated, tmp_path):
    text = '\ufeff' + ADD.replace('BE::Tensor y)', 'BE::Tensor y, int call, int frame, int self)')
    (tmp_path / 'marked.cpp').write_text(text, encoding='utf-8')
    file = be.load_cpp_file(tmp_path / 'marked.cpp', name='kx_marked', auto_register=False)
    for module in (file, be.load_cpp_inline('kx_marked', text, auto_register=False)):
        added = module.function('add')(X, outs=OUT, call=1, frame=2, self=3)
        assert added.tolist() == [1, 2, 3]


def test_options_that_are_none(compiler, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(be.OptionError, match='0, 1, 2 or 3'):
        be.load_cpp_inline('kx_level', ADD, optimization_level=4)
    with pytest.raises(TypeError):
        be.load_cpp_file(__file__, no_such_option=1)


def test_the_build_directory(isolated, tmp_path):
    module = be.load_cpp_inline('kx_there', ADD, build_directory=tmp_path / 'there')
    names = {path.name for path in (tmp_path / 'there').iterdir()}
    assert {'kx_there.cpp', Path(module.path).name} <= names
    assert isolated in Path(module.path).parents


# --- other texts --------------------------------------------------------------------------------


def test_several_texts(isolated):
    parts = [ADD, ADD.replace('add', 'add_more').replace('+ BY', '+ 2 * BY')]
    module = be.load_cpp_inline('kx_texts', parts)
    assert module.function_names == ['add', 'add_more']
    assert called('kx_texts.add_more') == [2, 3, 4]


def test_cuda_sources_go_to_the_emulator(isolated, emulated, tmp_path):
    folder = tmp_path / 'kernels'
    folder.mkdir()
    (folder / 'b.cu').write_text(
        '// @BE second\nvoid second(const BE::Tensor x, BE::Tensor y) { add(x, y); }'
    )
    (folder / 'a.cu').write_text(ADD)
    (folder / 'c.cpp').write_text('not for nvcc')
    module = be.load_cuda_dir(folder, name='kx_dir')
    assert (module.platform, module.is_emulated) == ('cpu', True)
    assert called('kx_dir.second') == [1, 2, 3]
    be.register_ffi_target('kx_dir.own', module, 'add')  # the default is CUDA
    assert called('kx_dir.own') == [1, 2, 3]
    named = be.load_cuda_file(folder / 'a.cu', auto_register=False)
    assert named.name == 'a'
    assert be.load_cuda_dir(folder, auto_register=False).name == 'kernels'
    with pytest.raises(TypeError):
        be.load_cuda_inline('kx', ADD, extra_cflags=[])


def parts(folder, patterns=None):
    return [Path(part.label).relative_to(folder) for part in pipeline.read_folder(folder, patterns)]


def test_patterns_of_a_folder(tmp_path):
    for name in ('b.cu', 'a.cu', 'a.cuh', 'z.cpp', 'below/c.cu', 'below/a.cu', '.hidden.cu'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / 'folder.cu').mkdir()
    (tmp_path / 'gone.cu').symlink_to(tmp_path / 'nowhere')
    for patterns, names in (
        (None, '.hidden.cu a.cu b.cu'),
        (['*.cu'], '.hidden.cu a.cu b.cu'),
        ('a*', 'a.cu a.cuh'),
        (['**/*.cu'], '.hidden.cu a.cu b.cu below/a.cu below/c.cu'),
        (['b.cu', '[ab].cu', 'below/c.cu'], 'a.cu b.cu below/c.cu'),
    ):
        assert list(map(str, parts(tmp_path, patterns))) == names.split(), patterns
    for patterns in (['*.CU'], ['nothing*'], ['folder.cu'], ['below']):
        with pytest.raises(be.KernelError, match='no source file was found') as caught:
            pipeline.read_folder(tmp_path, patterns)
        assert f'expected: files {patterns[0]}' in str(caught.value)
    for patterns in ([''], [f'{tmp_path}/*.cu'], [3], [None]):
        with pytest.raises(be.OptionError, match='holds what is no pattern'):
            pipeline.read_folder(tmp_path, patterns)


def test_names_that_no_target_can_have(isolated):
    for prefix in ('', 'a b', 'a\0b', 'brainevent_kernix', '\n'):
        bad = be.load_cpp_inline('kx_prefix', ADD, target_prefix=prefix, auto_register=False)
        assert bad['add'](X, outs=OUT).tolist() == [1, 2, 3]
        if prefix == '':
            continue  # '.add' is odd, but a name
        with pytest.raises(be.KernelRegistrationError, match="module 'kx_prefix': not a name for"):
            be.load_cpp_inline('kx_prefix', ADD, target_prefix=prefix)


def test_a_c_driver_in_place_of_the_compiler(isolated, monkeypatch):
    driver = shutil.which('gcc')
    if driver is None:
        pytest.skip('no gcc')
    monkeypatch.setenv('CXX', driver)
    try:
        be.load_cpp_inline('kx_driver', ADD, auto_register=False)
    except be.KernelLoadError as error:  # but where Python itself has the C++ library it is found
        assert 'CXX must name a C++ compiler (g++, not gcc)' in str(error)


def test_what_nvcc_is_asked(isolated, monkeypatch, toy):
    seen = []

    class Asked(toy):
        platform = 'CUDA'

        def compile(self, source, folder, output, options):
            seen.append((source, options))
            raise be.CompilationError('enough')

    monkeypatch.setattr(pipeline, 'cuda_toolchain', lambda archs: Asked(*archs))
    text = ADD.replace('BE::Tensor y', 'BE::Tensor y, int64_t stream')
    for graph in (True, False):
        with pytest.raises(be.CompilationError):
            be.load_cuda_inline(
                'kx_asked',
                text,
                extra_cuda_cflags=['-DX'],
                extra_ldflags=['-lcublas'],
                compute_capability=['9.0'],
                use_fast_math=True,
                allow_cuda_graph=graph,
            )
    (first, options), (second, _) = seen
    assert (options.flags, options.link_flags) == (('-DX',), ('-lcublas',))
    assert (options.fast_math, options.source_name) == (True, 'kx_asked')
    assert 'add(be_call.arg(0), be_call.ret(0), be_call.stream());' in first
    assert 'true};' in first and 'false};' in second


def test_there_is_a_class_for_nvcc():
    assert Nvcc.platform == 'CUDA'
