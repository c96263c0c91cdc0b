# SPDX-License-Identifier: Apache-2.0
"""Selection: the order of choice, what is passed over and said, and when caches are cleared."""

import re
import threading
import warnings

import jax
import jax.numpy as jnp
import pytest

from brainevent import config, errors
from brainevent._op import Backend, Prefer, XLACustomKernel, register_backend, selection, soften
from brainevent._op.selection import effective_change

OUT = [jax.ShapeDtypeStruct((3,), jnp.float32)]


def plus(c):
    return lambda **static: lambda x: [x + c]


@pytest.fixture
def x(cpu):
    return jax.device_put(jnp.arange(3.0), cpu)


@pytest.fixture
def op():
    """An operator with backends one and two, which add 1 and 2."""
    op = XLACustomKernel('selection_op')
    op.def_kernel('one', 'cpu', plus(1))
    op.def_kernel('two', 'cpu', plus(2))
    return op


@pytest.fixture
def clears(monkeypatch):
    """Count clearings of JAX's caches for the operators of this test, and do clear them."""
    calls, clear = [], jax.clear_caches
    clear()
    monkeypatch.setattr(selection, '_tables', {})
    monkeypatch.setattr(jax, 'clear_caches', lambda: (calls.append(1), clear()))
    return calls


def added(op, x, **kwargs):
    """What the kernel that serves the call adds."""
    return int((op(x, outs=OUT, **kwargs)[0] - x)[0])


# --- order ----------------------------------------------------------------------------------


def test_first_registered_is_the_default(op, x):
    assert op.get_default('cpu') == 'one'
    assert added(op, x) == 1


def test_call_beats_scope_beats_process_beats_default(x):
    op = XLACustomKernel('selection_order')
    for number, name in enumerate(['first', 'default', 'process', 'scope', 'call', 'rule']):
        op.def_kernel(name, 'cpu', plus(number), asdefault=name == 'default')
    assert added(op, x) == 1
    config.set_backend('cpu', 'process')
    assert added(op, x) == 2
    with config.use_backend('scope'):
        assert added(op, x) == 3
        assert added(op, x, backend='call') == 4
        assert added(op, x, backend=Prefer('rule')) == 5
    assert added(op, x) == 2


def test_the_latest_kernel_that_supports_the_call_wins(x):
    op = XLACustomKernel('selection_supports')
    op.def_kernel('one', 'cpu', plus(1))
    op.def_kernel('one', 'cpu', plus(2), supports=lambda *, big=False, **_: big or 'it is small')
    op.def_kernel('one', 'cpu', plus(3), supports=lambda *, odd=False, **_: odd or 'it is even')
    assert added(op, x) == 1
    assert added(op, x, big=True) == 2
    assert added(op, x, big=True, odd=True) == 3


def test_soften():
    assert soften('numba') == Prefer('numba')
    assert soften(Prefer('numba')) == Prefer('numba')
    assert soften(None) is None


# --- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize('backend', ['', 3])
def test_a_backend_is_a_name(op, x, backend):
    with pytest.raises((ValueError, TypeError), match='backend'):
        op(x, outs=OUT, backend=backend)


def test_an_unknown_backend_is_refused_before_anything_is_traced(op, x):
    with pytest.raises(errors.KernelNotAvailableError, match="'no_such'.*\n.*'one', 'two'"):
        jax.eval_shape(lambda x: op(x, outs=OUT, backend='no_such'), x)


def test_a_backend_of_another_platform_is_refused_with_what_there_is(op, x):
    op.def_kernel('jax_raw', 'gpu', plus(3))
    with pytest.raises(errors.KernelNotAvailableError) as caught:
        op(x, outs=OUT, backend='jax_raw')
    assert str(caught.value) == (
        "selection_op: backend 'jax_raw' is not available on platform 'cpu': "
        "it is not registered for platform 'cpu'.\n"
        "    expected: one of 'one', 'two'\n"
        "    got:      backend='jax_raw'\n"
        '    remedy:   leave `backend` out, or pass one of these'
    )


def test_a_demand_that_supports_refuses_raises_with_the_reason(x):
    op = XLACustomKernel('selection_refuses')
    op.def_kernel('one', 'cpu', plus(1))
    op.def_kernel('two', 'cpu', plus(2), supports=lambda **_: 'it is Sunday')
    with pytest.raises(errors.KernelNotAvailableError, match='it is Sunday'):
        op(x, outs=OUT, backend='two')


def test_no_kernel_for_the_platform_names_those_that_have(x):
    op = XLACustomKernel('selection_gpu_only')
    op.def_kernel('cuda_raw', 'gpu', plus(1))
    with pytest.raises(errors.KernelFallbackExhaustedError) as caught:
        op(x, outs=OUT)
    assert str(caught.value) == (
        "selection_gpu_only: no kernel is registered for platform 'cpu'.\n"
        "    expected: a call on a platform with kernels: 'gpu' ('cuda_raw')\n"
        "    got:      platform 'cpu'\n"
        '    remedy:   move the inputs there with `jax.device_put`, or register a kernel with '
        "`def_kernel(backend, 'cpu', generator)`"
    )


def test_when_every_kernel_refuses_the_reasons_are_listed(x):
    op = XLACustomKernel('selection_all_refuse')
    op.def_kernel('one', 'cpu', plus(1), supports=lambda **_: 'too big')
    op.def_kernel('two', 'cpu', plus(1), supports=lambda **_: False)
    with pytest.raises(errors.KernelFallbackExhaustedError, match='one: too big; two: its `supp'):
        op(x, outs=OUT)


def test_set_default_refuses_unknown_names(op):
    with pytest.raises(errors.BackendError, match="one of 'one', 'two'"):
        op.set_default('cpu', 'no_such')
    with pytest.raises(ValueError, match="one of 'cpu', 'gpu', 'tpu'"):
        op.set_default('npu', 'one')
    assert op.defaults == {'cpu': 'one'}


# --- what is passed over --------------------------------------------------------------------


def test_a_preference_the_operator_lacks_is_passed_over_with_one_warning(op, x):
    config.set_backend('cpu', 'jax_raw')
    with pytest.warns(errors.BackendWarning) as caught:
        assert added(op, x) == 1
        assert added(op, x, k=2) == 1
    assert [str(w.message) for w in caught] == [
        "selection_op has no kernel 'jax_raw' for 'cpu', which `config.set_backend` asks for. "
        "Using 'one' instead."
    ]


def test_under_an_error_filter_a_passed_over_preference_raises_every_time(op, x):
    config.set_backend('cpu', 'jax_raw')
    for _ in range(2):
        with pytest.raises(errors.BackendWarning):
            op(x, outs=OUT)


def test_a_demand_says_nothing_about_preferences(op, x):
    config.set_backend('cpu', 'jax_raw')
    assert added(op, x, backend='two') == 2


def test_the_preference_of_a_rule_is_passed_over_in_silence(op, x):
    op.def_kernel('three', 'cpu', plus(3), supports=lambda **_: 'forward only')
    assert added(op, x, backend=Prefer('three')) == 1
    assert added(op, x, backend=Prefer('cuda_raw')) == 1


def test_a_default_that_refuses_the_call_is_passed_over_with_a_warning(x):
    op = XLACustomKernel('selection_default_refuses')
    op.def_kernel('one', 'cpu', plus(1), supports=lambda **_: 'no complex numbers')
    op.def_kernel('two', 'cpu', plus(2))
    with pytest.warns(errors.BackendWarning, match="'one' kernel.*no complex.*Using 'two'"):
        assert added(op, x) == 2


def test_a_missing_requirement_is_told_once_for_all_operators(x):
    register_backend(Backend('absent', ('cpu',), lambda: 'no compiler', 'install one'))
    ops = [XLACustomKernel(f'selection_absent{i}') for i in range(2)]
    for op in ops:
        op.def_kernel('absent', 'cpu', plus(1))
        op.def_kernel('two', 'cpu', plus(2))
        assert op.available_backends('cpu') == ['two']
    with pytest.warns(errors.BackendWarning) as caught:
        assert [added(op, x) for op in ops] == [2, 2]
    assert [str(w.message) for w in caught] == [
        "backend 'absent' is not available: no compiler (install one). Using 'two' instead."
    ]
    with pytest.raises(errors.KernelNotAvailableError, match=re.escape('no compiler (install on')):
        ops[0](x, outs=OUT, backend='absent')


def test_nothing_runs_in_place_of_a_kernel_that_cannot_be_made(op, x):
    op.def_kernel('three', 'cpu', lambda **_: 1 / 0, asdefault=True)
    with pytest.raises(errors.KernelCompilationError, match='ZeroDivisionError'):
        op(x, outs=OUT)


# --- caches ---------------------------------------------------------------------------------


def test_a_backend_switch_reaches_eager_and_compiled_calls(op, x):
    """The switch used to change brainevent's own table and leave JAX's caches alone."""
    jitted = jax.jit(lambda x: op(x, outs=OUT)[0])
    changes = [
        (lambda: op.set_default('cpu', 'two'), 2),
        (lambda: config.set_backend('cpu', 'one'), 1),
        (config.clear_backends, 2),
        (lambda: op.def_kernel('two', 'cpu', plus(7)), 7),
        (lambda: op.def_kernel('three', 'cpu', plus(3), asdefault=True), 3),
        (lambda: op.def_kernel('three', 'cpu', plus(4), supports=lambda **_: True), 4),
    ]
    for change, expected in changes:
        added(op, x), jitted(x)
        change()
        assert added(op, x) == expected
        assert int((jitted(x) - x)[0]) == expected


def test_a_demanded_kernel_that_is_registered_again_takes_effect(op, x):
    """The default was compared, so a kernel used only through ``backend=`` stayed the old one."""
    jitted = jax.jit(lambda x: op(x, outs=OUT, backend='two')[0])
    jitted(x)
    op.def_kernel('two', 'cpu', plus(20))
    assert int((jitted(x) - x)[0]) == 20
    assert added(op, x, backend='two') == 20


def test_caches_are_cleared_only_when_the_choice_changes(op, x, clears):
    added(op, x)
    op.set_default('cpu', 'one')
    config.set_backend('cpu', 'one')
    config.set_backend('cpu', 'jax_raw')
    config.set_backend('gpu', 'jax_raw')
    config.clear_backends()
    op.def_kernel('three', 'cpu', plus(3))
    op.def_kernel('jax_raw', 'gpu', plus(3))
    XLACustomKernel('selection_newcomer').def_kernel('one', 'cpu', plus(1))
    with config.use_backend('two'):
        pass
    assert not clears
    op.set_default('cpu', 'two')
    assert len(clears) == 1


def test_an_operator_that_nobody_called_changes_at_no_cost(op, clears):
    op.set_default('cpu', 'two')
    op.def_kernel('one', 'cpu', plus(9))
    assert not clears


def test_changes_nest(op, x, clears):
    added(op, x)
    with effective_change():
        op.set_default('cpu', 'two')
    assert added(op, x) == 2
    assert clears


# --- scopes ---------------------------------------------------------------------------------


def test_a_scope_is_part_of_the_cache_key_and_clears_nothing(op, x, clears):
    jitted = jax.jit(lambda x: op(x, outs=OUT)[0])
    for _ in range(2):
        assert int((jitted(x) - x)[0]) == 1
        with config.use_backend('two'):
            assert int((jitted(x) - x)[0]) == 2
            assert added(op, x) == 2
    assert jitted._cache_size() == 2
    assert not clears


def test_a_scope_reaches_the_bodies_of_control_flow(op, x):
    def body(carry, _):
        return op(carry, outs=OUT)[0], None

    def run(x):
        return int((jax.lax.scan(body, x, length=3)[0] - x)[0])

    assert run(x) == 3
    with config.use_backend('two'):
        assert run(x) == 6
    assert run(x) == 3


def test_a_scope_is_kept_by_what_was_bound_in_it(x):
    """The backward pass runs after the block has ended, and used to fall back to the default."""
    op = XLACustomKernel('selection_bound')
    for number, name in enumerate(['one', 'two'], 1):
        op.def_kernel(name, 'cpu', lambda number=number, **_: lambda x: [x * number])
    op.def_jvp_rule2(lambda dx, x, **params: op(dx, **params))
    op.def_transpose_rule(lambda cts, x, **params: op(cts[0], **params))
    with config.use_backend('two'):
        out, back = jax.vjp(lambda x: op(x, outs=OUT)[0], x)
    assert back(jnp.ones(3))[0][0] == 2


def test_scopes_of_threads_do_not_mix(op, x):
    seen = {}

    def work(name):
        jitted = jax.jit(lambda x: op(x, outs=OUT)[0])
        with config.use_backend(name):
            seen[name] = {int((jitted(x) - x)[0]) for _ in range(20)}

    crew = [threading.Thread(target=work, args=(name,)) for name in ('one', 'two')]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert seen == {'one': {1}, 'two': {2}}


def test_threads_that_register_and_call_at_once(x):
    op = XLACustomKernel('selection_threads')
    op.def_kernel('one', 'cpu', plus(1))
    failures = []

    def work(number):
        try:
            for _ in range(3):
                op.def_kernel(f'extra{number}', 'cpu', plus(5))
                assert added(op, x) == 1
                assert added(op, x, backend=f'extra{number}') == 5
        except Exception as error:
            failures.append(repr(error))

    crew = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert failures == []


def test_the_warning_points_at_the_call(op, x):
    config.set_backend('cpu', 'jax_raw')
    code = compile('\n\nop(x, outs=OUT)', 'user.py', 'exec')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        exec(code, {'op': op, 'x': x, 'OUT': OUT})
    assert (caught[0].filename, caught[0].lineno) == ('user.py', 3)
