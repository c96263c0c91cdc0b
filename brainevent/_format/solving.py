# SPDX-License-Identifier: Apache-2.0
"""What a square matrix is good for: adding to its diagonal, and solving linear systems with it.

Sparse systems are solved by the LU factorisation of SuperLU [1]_, which SciPy brings, on the host.

References
----------
.. [1] Li, An overview of SuperLU: algorithms, implementation, and user interface, ACM Transactions
   on Mathematical Software 31, 302 (2005).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge.doors import raise_level
from brainevent._edge.event import unwrap
from brainevent._edge.layout import within
from brainevent._edge.operands import as_array, split_unit, with_unit
from brainevent._edge.operator import batch_shape, struct
from brainevent._edge.update import in_unit, result_dtype
from brainevent._error import ShapeError, expect
from brainevent._format.bridge import FORMATS, known
from brainevent._keywords import also_named
from brainevent._op import XLACustomKernel
from brainevent._typing import Array

__all__ = ['Solving', 'sparse_solve_p']


class Solving:
    """``diag_add`` and ``solve`` of matrices with stored weights."""

    structure: ClassVar[tuple[str, ...]]
    data: Any
    shape: tuple[int, int]
    backend: str | None

    @also_named(d='other')
    def diag_add(self, other: Any) -> Any:
        """Add numbers to the diagonal.

        Parameters
        ----------
        other : number, Array or Quantity, shape () or (min(shape),)
            One number for the whole diagonal, or one for each place, in any unit that the weights
            can be measured in.

        Returns
        -------
        Matrix
            Of the same format, with a weight for each entry. Entries of the diagonal that were
            missing come in before the first entry beyond it, and at the end of a list of
            coordinates; with a mirror, if this matrix has one.

        Raises
        ------
        ShapeError
            If ``other`` does not fit the diagonal.
        UnitError
            If it measures something else than the weights.
        UnsupportedOperationError
            For tables of a fixed number of connections, which may have no room for the diagonal.

        Notes
        -----
        Which entries are missing is found out on the host. Where the structure is traced, the
        diagonal is added as entries of its own, beside those that are there. Differentiable in the
        weights and in ``other``.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.CSR(([1., 2.], [0, 0], [0, 1, 2]), shape=(2, 2))
        >>> A.diag_add(jnp.array([10., 20.])).todense()
        Array([[11.,  0.],
               [ 2., 20.]], dtype=float32)
        """
        where = f'{type(self).__name__}.diag_add'
        number, unit = split_unit(self._own)  # type: ignore[attr-defined]
        d = as_array(where, 'other', in_unit(where, 'other', unwrap(other)[0], unit))
        k = min(self.shape)
        expect(
            d.shape in ((), (k,)),
            ShapeError,
            where,
            '`d` does not fit the diagonal.',
            expected=lambda: f'one number, or shape ({k},)',
            got=lambda: f'shape {d.shape}',
        )
        dtype = result_dtype(number, d)
        new = self._plus_diagonal(
            number.astype(dtype), jnp.broadcast_to(d.astype(dtype), (k,)), unit
        )
        return new.with_mirror() if self.mirror else new  # type: ignore[attr-defined]

    def _plus_diagonal(self, number: Array, d: Array, unit: Any) -> Any:
        k = d.shape[0]
        if not self.structure:
            ids = jnp.arange(k)
            return self._with(data=_quantity(number.at[ids, ids].add(d), unit))  # type: ignore[attr-defined]
        if getattr(self, self.structure[0]).ndim == 2:
            return self._refuse('diag_add')  # type: ignore[attr-defined]
        with known(self.arrays):  # type: ignore[attr-defined]
            row, col = self.edges()  # type: ignore[attr-defined]
        number = jnp.broadcast_to(number.reshape(-1), row.shape)
        if not (is_concrete(row) and is_concrete(col)):
            ids = jnp.arange(k, dtype=row.dtype)
            row, col = (jnp.concatenate([ends, ids]) for ends in (row, col))
            return self._of_entries(jnp.concatenate([number, d]), unit, row, col)
        row, col = np.asarray(row), np.asarray(col)
        place = _diagonal(row, col, k)
        (missing,) = np.nonzero(place < 0)
        if not missing.size:
            return self._with(data=_quantity(number.at[place].add(d), unit))  # type: ignore[attr-defined]
        near, far = (col, row) if self.flipped else (row, col)  # type: ignore[attr-defined]
        sorted_ = 'indptr' in self.structure
        at = _beyond(near, far, missing) if sorted_ else np.full(missing.size, row.size)
        row, col = (np.insert(ends, at, missing) for ends in (row, col))
        old = np.insert(np.arange(number.shape[0]), at, number.shape[0])  # there, a zero
        number = jnp.pad(number, (0, 1))[old].at[_diagonal(row, col, k)].add(d)
        return self._of_entries(number, unit, row, col)

    def _of_entries(self, number: Array, unit: Any, row: Any, col: Any) -> Any:
        """Put together a matrix of this format of entries in order."""
        data, shape = _quantity(number, unit), self.shape
        how: dict[str, Any] = {'backend': self.backend, 'check_structure': False}
        coo = FORMATS['COO'](data, row, col, shape=shape, **how)
        return type(self)._fromcoo(coo)  # type: ignore[attr-defined]

    def solve(self, b: Any, tol: Any = None, reorder: Any = None) -> Any:
        """Solve ``A @ x == b``.

        Parameters
        ----------
        b : Array or Quantity, shape (n,) or (n, k)
            One right-hand side, or one in each column.
        tol, reorder : object, optional
            Accepted for old callers and not needed.

        Returns
        -------
        Array or Quantity
            In the shape of ``b``, and in the unit of ``b`` over that of the weights. If the matrix
            is singular, all of it is NaN.

        Raises
        ------
        ShapeError
            If the matrix is not square, or ``b`` does not fit.

        Notes
        -----
        A sparse matrix is factorised on the host, once for all columns and everything that `vmap`
        batches on the right-hand side; a dense one by `jax.numpy.linalg.solve`. Differentiable in
        the weights and in ``b``, to every order: a derivative is a solution of the same system, or
        of the transposed one.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.CSR(([2., 1., 4.], [0, 0, 1], [0, 1, 3]), shape=(2, 2))
        >>> A.solve(jnp.array([2., 9.]))
        Array([1., 2.], dtype=float32)
        """
        where, (m, n) = f'{type(self).__name__}.solve', self.shape
        expect(
            m == n,
            ShapeError,
            where,
            'the matrix is not square.',
            expected='as many rows as columns',
            got=lambda: f'shape {self.shape}',
        )
        (data, unit), (b, b_unit) = split_unit(self._own), split_unit(unwrap(b)[0])  # type: ignore[attr-defined]
        b = as_array(where, 'b', b)
        expect(
            b.ndim in (1, 2) and b.shape[0] == n,
            ShapeError,
            where,
            '`b` does not fit the matrix.',
            expected=lambda: f'shape ({n},), or ({n}, k)',
            got=lambda: f'shape {b.shape}',
        )
        kind = jnp.result_type(data, b)
        kind = kind if jnp.issubdtype(kind, jnp.inexact) else jnp.result_type(kind, jnp.float32)
        wide = jnp.float32 if kind in (jnp.float16, jnp.bfloat16) else kind
        x_unit = unit and unit**-1
        if 0 in b.shape:
            return with_unit(b.astype(kind), b_unit, x_unit)
        data, rhs = data.astype(wide), b.astype(wide).reshape(n, -1)
        x = jnp.linalg.solve(data, rhs) if not self.structure else self._solve(data, rhs)
        return with_unit(x.reshape(b.shape).astype(kind), b_unit, x_unit)

    def _solve(self, data: Array, b: Array) -> Array:
        n = b.shape[0]
        row, col = self.edges()  # type: ignore[attr-defined]
        inside = within(row, n) & within(col, n)
        row, col = (jnp.where(inside, ends, 0) for ends in (row, col))
        matrix = self._reweighted(data)  # type: ignore[attr-defined]
        each = jnp.where(inside, jnp.broadcast_to(data.reshape(-1), row.shape), 0)

        def direct(_: Any, b: Array, transpose: bool) -> Array:
            return _bind(each, row, col, b, transpose=transpose, levels=0)

        x: Array = jax.lax.custom_linear_solve(
            lambda x: matrix @ x,
            b,
            partial(direct, transpose=False),
            partial(direct, transpose=True),
        )
        return x


def _quantity(number: Array, unit: Any) -> Any:
    return number if unit is None else u.Quantity(number, unit=unit)


def _diagonal(row: Any, col: Any, k: int) -> Any:
    """Return where each place of the diagonal has its first entry; -1 where it has none."""
    (on,) = np.nonzero((row == col) & (row < k))  # padding lies beyond
    ids, first = np.unique(row[on], return_index=True)
    place = np.full(k, -1)
    place[ids] = on[first]
    return place


def _beyond(near: Any, far: Any, lines: Any) -> Any:
    """Return for some lines where the first edge beyond the diagonal is, or else the line's end."""
    (over,) = np.nonzero(far > near)
    at = np.searchsorted(near, lines, side='right')
    ids, first = np.unique(near[over], return_index=True)
    _, mine, theirs = np.intersect1d(lines, ids, return_indices=True)
    at[mine] = over[first[theirs]]
    return at


# ---- the factorisation, as an operator: solutions are linear in the right-hand side, and who asks
# ---- for derivatives gets them from `jax.lax.custom_linear_solve` around it ---------------------

sparse_solve_p = XLACustomKernel('sparse_solve')


def _bind(data: Any, row: Any, col: Any, b: Any, *, transpose: bool, levels: int) -> Array:
    lead = batch_shape((data, row, col, b), levels)
    out = struct((*lead, *b.shape[levels:]), b.dtype)
    (x,) = sparse_solve_p(data, row, col, b, outs=[out], transpose=transpose, levels=levels)
    return x  # type: ignore[no-any-return]


def _batch(
    operands: Sequence[Array], axes: Sequence[Any], *, transpose: bool, levels: int, **_: Any
) -> tuple[list[Array], list[int]]:
    raised = raise_level(operands, axes)
    return [_bind(*raised, transpose=transpose, levels=levels + 1)], [0]


def _on_host(*, transpose: bool, levels: int, outs: Any, **_: Any) -> Callable[..., list[Array]]:
    host = partial(_factorise_and_solve, transpose, levels)
    return lambda *operands: [jax.pure_callback(host, outs[0], *operands)]


def _factorise_and_solve(
    transpose: bool, levels: int, data: Any, row: Any, col: Any, b: Any
) -> np.ndarray[Any, Any]:
    """Solve for all places of a batch; places with the same matrix share its factors."""
    matrix, b = [np.asarray(x) for x in (data, row, col)], np.asarray(b)
    shape = np.broadcast_shapes(*(x.shape[:levels] for x in (*matrix, b)))
    x = np.full((*shape, *b.shape[levels:]), np.nan, b.dtype)
    factors: dict[Any, Any] = {}
    for place in np.ndindex(shape):
        of = tuple(_at(m, place) for m in matrix)
        if of not in factors:
            factors[of] = _factors([m[at] for m, at in zip(matrix, of, strict=True)], b.shape[-2])
        if factors[of] is not None:
            x[place] = factors[of].solve(b[_at(b, place)], 'T' if transpose else 'N')
    return x


def _at(x: np.ndarray[Any, Any], place: tuple[int, ...]) -> tuple[int, ...]:
    """Return a place of a batch in an operand, of which some axes have length one."""
    return tuple(0 if n == 1 else k for n, k in zip(x.shape, place, strict=False))


def _factors(entries: Sequence[Any], n: int) -> Any:
    """Factorise a matrix given by weights, rows and columns; None if it is singular, or empty."""
    from scipy.sparse import csc_array  # slow to import
    from scipy.sparse.linalg import splu

    data, row, col = entries
    if n == 0 or not np.isfinite(data).all():
        return None
    try:
        return splu(csc_array((data, (row, col)), shape=(n, n)))
    except RuntimeError:  # 'Factor is exactly singular'
        return None


for _platform in ('cpu', 'gpu', 'tpu'):
    sparse_solve_p.def_kernel('jax_raw', _platform, _on_host)
sparse_solve_p.def_batching_rule(_batch)
sparse_solve_p.def_tags('solve')
