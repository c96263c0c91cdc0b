# SPDX-License-Identifier: Apache-2.0
"""Index conversions between coordinate lists, rows (CSR) and columns (CSC).

Every conversion is one stable sort of the entries by row or by column. NumPy arrays and concrete
JAX arrays on the CPU are sorted on the host, in time proportional to the entries; traced arrays and
arrays on an accelerator are sorted where they are, by the same rules.

Concrete ids outside the shape raise. Traced ones cannot be looked at: entries whose group is
outside go to the end, beyond ``indptr[-1]``, and other ids outside become one that no matrix has.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import canonical_dtype, is_tracer
from brainevent._edge.intake import on_host, signed_ids
from brainevent._edge.layout import PADDING
from brainevent._error import BackendError, DtypeError, IndexRangeError, ShapeError, expect, listed
from brainevent._format.host_sort import in_order, stable_order
from brainevent._keywords import also_named

__all__ = [
    'coo2csr',
    'coo_to_csc_index',
    'csc_to_csr_index',
    'csr_to_coo_index',
    'csr_to_csc_index',
]

Index: TypeAlias = Any  # jax.Array or np.ndarray

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
METHODS = ('coo', 'numpy', 'gpu_column_block')


def csr_to_coo_index(indptr: Any, indices: Any) -> tuple[Index, Index]:
    """Row and column of every entry of a CSR structure.

    Parameters
    ----------
    indptr : array_like of int, shape (m + 1,)
        Where each row begins and the last one ends.
    indices : array_like of int, shape (nse,)
        Column of each entry.

    Returns
    -------
    row, col : Array or ndarray of int32, shape (nse,)
        JAX arrays if an argument is one, else NumPy arrays; int64 where int32 does not suffice.

    Raises
    ------
    ShapeError
        If an argument has not one axis, or ``indptr`` is empty.
    DtypeError
        If an argument does not hold integers.
    IndexRangeError
        If a concrete ``indptr`` does not rise from 0 to ``nse``, or a concrete index is negative.

    Examples
    --------
    >>> import numpy as np
    >>> import brainevent as be
    >>> row, col = be.csr_to_coo_index(np.array([0, 2, 2, 3]), np.array([0, 3, 1]))
    >>> row.tolist(), col.tolist()
    ([0, 0, 2], [0, 3, 1])
    """
    where = 'csr_to_coo_index'
    indptr, indices = _ids(where, 'indptr', indptr), _ids(where, 'indices', indices)
    expect(
        indptr.size > 0,
        ShapeError,
        where,
        '`indptr` is empty.',
        expected='one entry more than there are rows',
        got='shape (0,)',
    )
    row, col = _rows(where, indptr, indices.size), indices
    if not is_tracer(indices):
        col = _fewest_bits(np.asarray(indices))
        _check_range(where, 'indices', col, INT64_MAX)
    return _as_given((row, col), indptr, indices)


def coo2csr(row_ids: Any, col_ids: Any, *, shape: Sequence[int]) -> tuple[Index, Index, Index]:
    """Sort the entries of a coordinate list by row, in their order within a row.

    Parameters
    ----------
    row_ids, col_ids : array_like of int, shape (nse,)
        Row and column of each entry, in any order; pairs may repeat.
    shape : sequence of int
        Rows and columns.

    Returns
    -------
    indptr : Array or ndarray of int32, shape (shape[0] + 1,)
        Where each row begins and the last one ends.
    col_indices : Array or ndarray of int32, shape (nse,)
        Columns, row by row.
    order : Array or ndarray of int32, shape (nse,)
        ``data[order]`` brings weights into the new order.

    Raises
    ------
    ShapeError
        If the ids have not one axis or differ in length, or ``shape`` is not two sizes.
    DtypeError
        If the ids are not integers.
    IndexRangeError
        If a concrete id is negative or outside ``shape``.

    Notes
    -----
    The results are JAX arrays if an argument is one, else NumPy arrays; int64 where int32 does not
    suffice. Under ``jax.jit`` entries with a row outside ``shape`` end up beyond ``indptr[-1]``.

    Examples
    --------
    >>> import numpy as np
    >>> import brainevent as be
    >>> indptr, indices, order = be.coo2csr(np.array([2, 0, 2]), np.array([1, 0, 0]), shape=(3, 2))
    >>> indptr.tolist(), indices.tolist(), order.tolist()
    ([0, 1, 1, 3], [0, 1, 0], [1, 0, 2])
    """
    where = 'coo2csr'
    rows, cols = _coordinates(where, ('row_ids', row_ids), ('col_ids', col_ids))
    n_rows, n_cols = _sizes(where, shape)
    return _group(where, ('row_ids', rows, n_rows), ('col_ids', cols, n_cols))


def coo_to_csc_index(
    pre_ids: Any, indices: Any, *, shape: Sequence[int]
) -> tuple[Index, Index, Index]:
    """Sort the entries of a coordinate list by column, in their order within a column.

    Parameters
    ----------
    pre_ids, indices : array_like of int, shape (nse,)
        Row and column of each entry, in any order; pairs may repeat.
    shape : sequence of int
        Rows and columns.

    Returns
    -------
    indptr : Array or ndarray of int32, shape (shape[1] + 1,)
        Where each column begins and the last one ends.
    row_indices : Array or ndarray of int32, shape (nse,)
        Rows, column by column.
    perm : Array or ndarray of int32, shape (nse,)
        ``data[perm]`` brings weights into the new order.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError
        As `coo2csr`.

    See Also
    --------
    coo2csr : the same by row; see there for the kind of arrays and for ids outside ``shape``.

    Examples
    --------
    >>> import numpy as np
    >>> import brainevent as be
    >>> pre, post = np.array([0, 1, 1]), np.array([1, 0, 1])
    >>> indptr, row, perm = be.coo_to_csc_index(pre, post, shape=(2, 2))
    >>> indptr.tolist(), row.tolist(), perm.tolist()
    ([0, 1, 3], [1, 0, 1], [1, 0, 2])
    """
    where = 'coo_to_csc_index'
    rows, cols = _coordinates(where, ('pre_ids', pre_ids), ('indices', indices))
    n_rows, n_cols = _sizes(where, shape)
    return _group(where, ('indices', cols, n_cols), ('pre_ids', rows, n_rows))


@also_named(indptr='csr_indptr', indices='csr_indices')
def csr_to_csc_index(
    csr_indptr: Any,
    csr_indices: Any,
    *,
    shape: Sequence[int],
    include_perm: bool = True,
    method: str = 'coo',
    column_block_size: int = 4096,
) -> tuple[Index, Index, Index | None]:
    """Turn a row structure into the column structure of the same matrix.

    Parameters
    ----------
    csr_indptr : array_like of int, shape (shape[0] + 1,)
        Where each row begins and the last one ends.
    csr_indices : array_like of int, shape (nse,)
        Column of each entry.
    shape : sequence of int
        Rows and columns.
    include_perm : bool
        Whether to return the permutation, too.
    method : {'coo', 'numpy', 'gpu_column_block'}
        Accepted for old callers; all give the same result in the same way.
    column_block_size : int
        Accepted for old callers and not needed.

    Returns
    -------
    indptr : Array or ndarray of int32, shape (shape[1] + 1,)
        Where each column begins and the last one ends.
    row_indices : Array or ndarray of int32, shape (nse,)
        Rows, column by column, in the order of the rows.
    perm : Array or ndarray of int32, shape (nse,), or None
        ``data[perm]`` brings weights into the new order; None without ``include_perm``.

    Raises
    ------
    ShapeError
        If ``csr_indptr`` does not fit ``shape``, or an argument has not one axis.
    DtypeError
        If an argument does not hold integers.
    IndexRangeError
        If a concrete ``csr_indptr`` does not rise from 0 to ``nse``, or a concrete index is
        outside.
    BackendError
        If ``method`` is unknown. It is a ``ValueError``.

    See Also
    --------
    csc_to_csr_index : the way back.

    Examples
    --------
    >>> import numpy as np
    >>> import brainevent as be
    >>> indptr, indices = np.array([0, 1, 3]), np.array([1, 0, 1])
    >>> indptr, row, perm = be.csr_to_csc_index(indptr, indices, shape=(2, 2))
    >>> indptr.tolist(), row.tolist(), perm.tolist()
    ([0, 1, 3], [1, 0, 1], [1, 0, 2])
    """
    n_rows, n_cols = _sizes('csr_to_csc_index', shape)
    _check_method('csr_to_csc_index', method)
    ptr, ids, perm = _turn('csr_to_csc_index', csr_indptr, csr_indices, n_rows, n_cols)
    return ptr, ids, perm if include_perm else None


@also_named(indptr='csc_indptr', indices='csc_indices')
def csc_to_csr_index(
    csc_indptr: Any,
    csc_indices: Any,
    *,
    shape: Sequence[int],
    include_perm: bool = True,
    method: str = 'coo',
    column_block_size: int = 4096,
) -> tuple[Index, Index, Index | None]:
    """Turn a column structure into the row structure of the same matrix.

    Parameters
    ----------
    csc_indptr : array_like of int, shape (shape[1] + 1,)
        Where each column begins and the last one ends.
    csc_indices : array_like of int, shape (nse,)
        Row of each entry.
    shape : sequence of int
        Rows and columns.
    include_perm, method, column_block_size
        As in `csr_to_csc_index`.

    Returns
    -------
    indptr : Array or ndarray of int32, shape (shape[0] + 1,)
        Where each row begins and the last one ends.
    col_indices : Array or ndarray of int32, shape (nse,)
        Columns, row by row, in the order of the columns.
    perm : Array or ndarray of int32, shape (nse,), or None
        ``data[perm]`` brings weights into the new order; None without ``include_perm``.

    Raises
    ------
    ShapeError, DtypeError, IndexRangeError, BackendError
        As `csr_to_csc_index`.

    See Also
    --------
    csr_to_csc_index : the way back.

    Examples
    --------
    >>> import numpy as np
    >>> import brainevent as be
    >>> indptr, indices = np.array([0, 1, 3]), np.array([1, 0, 1])
    >>> indptr, col, perm = be.csc_to_csr_index(indptr, indices, shape=(2, 2))
    >>> indptr.tolist(), col.tolist(), perm.tolist()
    ([0, 1, 3], [1, 0, 1], [1, 0, 2])
    """
    n_rows, n_cols = _sizes('csc_to_csr_index', shape)
    _check_method('csc_to_csr_index', method)
    ptr, ids, perm = _turn('csc_to_csr_index', csc_indptr, csc_indices, n_cols, n_rows)
    return ptr, ids, perm if include_perm else None


# The work. A "group" is a row or a column: entries are sorted by group, each has a `member` id.


def _turn(
    where: str, indptr: Any, indices: Any, n_old: int, n_new: int
) -> tuple[Index, Index, Index]:
    indptr, indices = _ids(where, 'indptr', indptr), _ids(where, 'indices', indices)
    expect(
        indptr.size == n_old + 1,
        ShapeError,
        where,
        '`indptr` does not fit `shape`.',
        expected=lambda: f'shape ({n_old + 1},)',
        got=lambda: f'shape {indptr.shape}',
    )
    old = _rows(where, indptr, indices.size)
    return _group(where, ('indices', indices, n_new), ('indptr', old, n_old))


def _rows(where: str, indptr: Index, nse: int) -> Index:
    """Group of each of ``nse`` entries; beyond ``indptr[-1]`` the id after the last group."""
    n = indptr.size - 1
    dtype = _index_dtype(n)
    if not is_tracer(indptr):
        known = np.asarray(indptr)
        _check_indptr(where, known, nse)
        groups = np.repeat(np.arange(n, dtype=dtype), known[1:] - known[:-1])
        return _as_given((groups,), indptr)[0]
    passed = jnp.zeros(nse, _fitting(dtype)).at[indptr[1:]].add(1, mode='drop')
    return jnp.cumsum(passed, dtype=passed.dtype)


def sorted_entries(
    groups: Index, n_groups: int, members: Index, n_members: int
) -> tuple[Index, Index, Index]:
    """Sort the entries of a matrix, of which some may be padding, by row or by column.

    Parameters
    ----------
    groups, members : Array of int, shape (nse,)
        By what to sort, and the other end of each entry. An id outside belongs to padding.
    n_groups, n_members : int
        Numbers of rows and columns, in that order.

    Returns
    -------
    indptr, members, order : Array of int
        As `coo2csr` has them; padding comes last, behind ``indptr[-1]``.
    """
    group, member = ('groups', groups, n_groups), ('members', members, n_members)
    return _group('sorted_entries', group, member, padding=True)


def is_whole(indptr: Index, indices: Index, n: int) -> bool:
    """Return whether a structure is known on this host, is sound, and holds no padding."""
    if is_tracer(indptr) or is_tracer(indices) or not (_near_host(indptr) and _near_host(indices)):
        return False
    offsets, ids = np.asarray(indptr), np.asarray(indices)
    whole = offsets[0] == 0 and offsets[-1] == ids.size and (np.diff(offsets) >= 0).all()
    return bool(whole and (not ids.size or (ids.min() >= 0 and ids.max() < n)))


def _group(
    where: str,
    group: tuple[str, Index, int],
    member: tuple[str, Index, int],
    padding: bool = False,
) -> tuple[Index, Index, Index]:
    """Sort entries by group: where each begins, the member ids in order, and the order."""
    (group_name, groups, n_groups), (member_name, members, n_members) = group, member
    concrete = not (is_tracer(groups) or is_tracer(members))
    near = concrete and _near_host(groups) and _near_host(members)
    as_jax = isinstance(groups, jax.Array) or isinstance(members, jax.Array)
    # known ids stay known while a function around us is traced
    with jax.ensure_compile_time_eval() if concrete else nullcontext():
        if near:
            groups, members = np.asarray(groups), np.asarray(members)
        if not padding:
            _check_range(where, group_name, groups, n_groups)
            _check_range(where, member_name, members, n_members)
        if not near:
            return _group_in_jax(jnp.asarray(groups), n_groups, jnp.asarray(members), n_members)
        indptr, ids, order = _group_on_host(groups, n_groups, members, n_members)
        made = (indptr, ids, order)  # nobody else holds these arrays
        return tuple(jax.device_put(_that_fits(x)) for x in made) if as_jax else made


def _group_on_host(
    groups: np.ndarray, n_groups: int, members: np.ndarray, n_members: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    groups = _moved_outside(groups, n_groups, n_groups)
    members = _moved_outside(members, n_members, PADDING)
    order = stable_order(groups, n_groups + 1).astype(_index_dtype(groups.size), copy=False)
    indptr = np.zeros(n_groups + 1, _index_dtype(groups.size))
    counts = np.bincount(groups.astype(np.int64, copy=False), minlength=n_groups + 1)
    np.cumsum(counts[:n_groups], out=indptr[1:])
    return indptr, in_order(members, order).astype(_index_dtype(n_members), copy=False), order


def _moved_outside(ids: np.ndarray, n: int, outside: int) -> np.ndarray:
    """Give ids outside another value; without any, which is common, nothing is copied."""
    if not ids.size or (ids.min() >= 0 and ids.max() < n):
        return ids
    return np.where((ids < 0) | (ids >= n), outside, ids)


def _group_in_jax(
    groups: jax.Array, n_groups: int, members: jax.Array, n_members: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    groups, members = _inside(groups, n_groups, n_groups), _inside(members, n_members, PADDING)
    dtype = _fitting(_index_dtype(groups.size))
    order = jnp.argsort(groups, stable=True).astype(dtype)
    # group g counts at g + 1; the id after the last group falls off the end
    counts = jnp.zeros(n_groups + 1, dtype).at[groups + 1].add(1, mode='drop')
    return jnp.cumsum(counts, dtype=dtype), members[order], order


def _inside(ids: jax.Array, n: int, outside: int) -> jax.Array:
    """Ids in the smallest dtype for ``n``, with another one for those outside."""
    inside = ids >= 0
    if n <= np.iinfo(ids.dtype).max:
        inside &= ids < n
    dtype = _fitting(_index_dtype(n))
    outside = outside if outside < np.iinfo(dtype).max else PADDING
    return jnp.where(inside, ids.astype(dtype), jnp.asarray(outside, dtype))


# Dtypes and kinds of arrays


def _index_dtype(largest: int) -> np.dtype:
    return np.dtype(np.int32 if largest < INT32_MAX else np.int64)


def _fitting(dtype: np.dtype) -> np.dtype:
    """Dtype that JAX has for ``dtype`` at present: int32 for int64 without x64."""
    return canonical_dtype(dtype)


def _fewest_bits(ids: np.ndarray) -> np.ndarray:
    return ids.astype(_index_dtype(int(ids.max()) if ids.size else 0), copy=False)


def _near_host(x: Index) -> bool:
    return isinstance(x, np.ndarray) or all(d.platform == 'cpu' for d in x.devices())


def _as_given(outs: tuple[Any, ...], *inputs: Index) -> tuple[Any, ...]:
    """Return the results as JAX arrays if an input is one."""
    if not any(isinstance(x, jax.Array) for x in inputs):
        return outs
    with jax.ensure_compile_time_eval():
        return tuple(map(_to_jax, outs))


def _to_jax(out: Index) -> jax.Array:
    return jnp.asarray(_that_fits(out))


def _that_fits(out: Index) -> Index:
    """Return an index in a dtype that JAX has at present."""
    if isinstance(out, np.ndarray) and _fitting(out.dtype) != out.dtype:
        out = _fewest_bits(out)
        expect(
            _fitting(out.dtype) == out.dtype,
            IndexRangeError,
            'index conversion',
            'a result does not fit into 32 bits.',
            expected='64-bit integers in JAX, or NumPy arrays as arguments',
            got=lambda: f'{out.max()} with jax_enable_x64 off',
            remedy="jax.config.update('jax_enable_x64', True), or pass NumPy arrays only",
        )
    return out


# Checks at the door


def _ids(where: str, name: str, ids: Any) -> Index:
    if not isinstance(ids, jax.Array):
        ids = ids.__jax_array__() if hasattr(ids, '__jax_array__') else on_host(where, name, ids)
    if isinstance(ids, np.ndarray) and ids.size == 0:
        ids = ids.astype(np.int32)  # an empty list has no dtype of its own
    expect(
        ids.ndim == 1,
        ShapeError,
        where,
        f'`{name}` is not a vector.',
        expected='one axis',
        got=lambda: f'shape {ids.shape}',
    )
    expect(
        np.issubdtype(ids.dtype, np.integer),
        DtypeError,
        where,
        f'`{name}` does not hold integers.',
        expected='an integer dtype',
        got=lambda: ids.dtype,
    )
    return ids if ids.dtype in (np.int32, np.int64) else signed_ids(ids)


def _coordinates(
    where: str, first: tuple[str, Any], second: tuple[str, Any]
) -> tuple[Index, Index]:
    a, b = _ids(where, *first), _ids(where, *second)
    expect(
        a.size == b.size,
        ShapeError,
        where,
        f'`{first[0]}` and `{second[0]}` differ in length.',
        expected='one row and one column for each entry',
        got=lambda: f'shapes {a.shape} and {b.shape}',
    )
    return a, b


def _sizes(where: str, shape: Sequence[int]) -> tuple[int, int]:
    sizes = tuple(shape)
    ok = len(sizes) == 2 and all(isinstance(n, int | np.integer) and n >= 0 for n in sizes)
    expect(
        ok,
        ShapeError,
        where,
        '`shape` is not the shape of a matrix.',
        expected='two sizes, none of them negative',
        got=lambda: f'{shape!r}',
    )
    return int(sizes[0]), int(sizes[1])


def _check_method(where: str, method: str) -> None:
    expect(
        method in METHODS,
        BackendError,
        where,
        '`method` is unknown.',
        expected=lambda: f'one of {listed(METHODS)}',
        got=lambda: f'{method!r}',
    )


def _check_range(where: str, name: str, ids: Index, n: int) -> None:
    if is_tracer(ids) or ids.size == 0:
        return
    with jax.ensure_compile_time_eval():
        low, high = int(ids.min()), int(ids.max())
        if high == PADDING and n <= PADDING:
            high = int(ids.max(initial=-1, where=ids != PADDING))
    expect(
        low >= 0 and high < n,
        IndexRangeError,
        where,
        f'`{name}` points outside the matrix.',
        expected=lambda: f'ids from 0 to {n - 1}' if n else 'no entries, because that side is 0',
        got=lambda: f'ids from {low} to {high}',
    )


def _check_indptr(where: str, indptr: np.ndarray, nse: int) -> None:
    rises = bool((indptr[1:] >= indptr[:-1]).all())
    expect(
        rises and indptr[0] == 0 and indptr[-1] == nse,
        IndexRangeError,
        where,
        '`indptr` does not partition the entries.',
        expected=lambda: f'a rise from 0 to {nse}, the number of indices',
        got=lambda: f'{indptr[0]} to {indptr[-1]}' + ('' if rises else ', falling in between'),
    )
