# SPDX-License-Identifier: Apache-2.0
"""Ways between formats, and between this package's matrices and those of SciPy, JAX and brainunit.

All of them lead through coordinates. Repeated entries stay apart, one weight for all entries stays
one, units are kept. Structure may be traced.
"""

import contextlib
import sys
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse as jax_sparse

from brainevent._compat import is_concrete, is_tracer
from brainevent._edge.layout import PADDING, within
from brainevent._edge.operands import as_array, split_unit
from brainevent._error import DtypeError, OptionError, ShapeError, UnitError, expect, listed
from brainevent._format.host_sort import in_order
from brainevent._typing import Array

__all__ = ['FORMATS', 'Bridge', 'as_sparse', 'known', 'reordered', 'show_shortage']

FORMATS: dict[str, Any] = {}
"""Formats by the names of their classes, so that each can turn into any other."""

_COMPRESSED = {'CSR': 'CSR', 'BCSR': 'CSR', 'csr': 'CSR', 'CSC': 'CSC', 'csc': 'CSC'}


class Bridge:
    """Conversions of a stored matrix."""

    structure: ClassVar[tuple[str, ...]]
    flipped: ClassVar[bool]
    shape: tuple[int, int]
    data: Any
    backend: str | None

    # ---- to other formats -----------------------------------------------------------------------

    def tocoo(self) -> Any:
        """Convert to coordinates.

        Returns
        -------
        COO
            With the entries in the order of the weights; a matrix in coordinates itself.
        """
        kind = FORMATS['COO']
        with known(self.arrays):  # type: ignore[attr-defined]
            if isinstance(self, kind):
                return self
            row, col = self.edges()  # type: ignore[attr-defined]
        data = self.data if self.data.ndim < 2 else self.data.reshape(-1)
        return kind(
            data, row, col, shape=self.shape, backend=self.backend, buffers=self.buffers,  # type: ignore[attr-defined]
            check_structure=False,
        )  # fmt: skip

    def tocsr(self) -> Any:
        """Convert to compressed rows.

        Returns
        -------
        CSR
            The entries of a row keep their order; a matrix in compressed rows itself.
        """
        return self._as('CSR')

    def tocsc(self) -> Any:
        """Convert to compressed columns.

        Returns
        -------
        CSC
            The entries of a column keep their order; a matrix in compressed columns itself.
        """
        return self._as('CSC')

    def _as(self, name: str) -> Any:
        kind = FORMATS[name]
        self._check_leaves(self.data)  # type: ignore[attr-defined]
        return self if isinstance(self, kind) else kind._fromcoo(self.tocoo())

    @classmethod
    def _fromcoo(cls, coo: Any) -> Any:
        """Build the matrix of coordinates that are known to be sound, or traced."""
        raise NotImplementedError

    # ---- from dense -----------------------------------------------------------------------------

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = jnp.int32,
        backend: str | None = None,
        precompute_weight_indices: bool = False,
        **options: Any,
    ) -> Self:
        """Store the entries of a dense matrix that are not zero.

        Parameters
        ----------
        mat : array_like or Quantity, shape (m, n)
            The dense matrix, in any unit.
        nse : int, optional
            Number of entries to store, needed where ``mat`` is traced. Entries that are left over
            are padding: they belong to no row, whatever is done to the matrix. If there is too
            little room, the weights of a traced matrix are NaN.
        index_dtype : dtype
            Of the stored indices, int32 or int64.
        backend : str, optional
            Demand a backend for every product of the matrix.
        precompute_weight_indices : bool
            Build the mirror, too, see `with_mirror`.
        **options
            For the format: ``indptr_dtype`` of compressed rows and columns, ``num_conn`` of a
            fixed number of connections.

        Returns
        -------
        Matrix

        Raises
        ------
        ShapeError
            If ``mat`` does not have two axes, or ``nse`` is less than its number of entries.
        DtypeError
            If ``mat`` is traced and holds whole numbers, which cannot be NaN.
        OptionError
            If ``nse`` is missing, or ``index_dtype`` is not available.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.CSR.fromdense(jnp.array([[0., 2., 0.], [1., 0., 3.]]))
        >>> A.data, A.indices, A.indptr
        (Array([2., 1., 3.], dtype=float32), Array([1, 0, 2], dtype=int32),
         Array([0, 1, 3], dtype=int32))
        """
        where = f'{cls.__name__}.fromdense'
        available = ('int32', 'int64') if jax.config.jax_enable_x64 else ('int32',)
        expect(
            np.dtype(index_dtype).name in available,
            OptionError,
            where,
            '`index_dtype` is not available.',
            expected=lambda: listed(available),
            got=np.dtype(index_dtype).name,
        )
        number, unit = split_unit(mat)
        number = as_array(where, 'mat', number)
        expect(
            number.ndim == 2,
            ShapeError,
            where,
            '`mat` is no matrix.',
            expected='two axes',
            got=lambda: f'shape {number.shape}',
        )
        data, row, col = _entries(where, number, nse)
        data = data if unit is None else u.Quantity(data, unit=unit)
        coo = FORMATS['COO'](
            data,
            row,
            col,
            shape=number.shape,
            backend=backend,
            buffers=options.pop('buffers', None),
            check_structure=False,
        )
        new = cls._fromcoo(coo, **options)
        ids = [name for name in cls.structure if name != 'indptr']
        new = new._with(**{name: getattr(new, name).astype(index_dtype) for name in ids})
        return new.with_mirror() if precompute_weight_indices else new  # type: ignore[no-any-return]

    # ---- from and to other packages -------------------------------------------------------------

    @classmethod
    def fromscipy(cls, mat: Any, *, backend: str | None = None) -> Self:
        """Take over a sparse matrix of SciPy; one of JAX or brainunit will do as well.

        Parameters
        ----------
        mat : scipy.sparse matrix or array, JAX or brainunit sparse matrix
            Of two axes. Padding beyond the shape, as JAX has it, is left out.
        backend : str, optional
            Demand a backend for every product of the matrix.

        Returns
        -------
        Matrix

        Raises
        ------
        DtypeError
            If ``mat`` is no sparse matrix, or not one of numbers.
        ShapeError
            If it does not have two axes.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp, scipy.sparse
        >>> A = brainevent.CSR.fromscipy(scipy.sparse.eye_array(3, format='coo'))
        >>> A @ jnp.array([1., 2., 3.])
        Array([1., 2., 3.], dtype=float32)
        """
        ours = as_sparse(mat)
        expect(
            ours is not None,
            DtypeError,
            f'{cls.__name__}.fromscipy',
            '`mat` is no sparse matrix that is known here.',
            expected='a matrix of scipy.sparse, jax.experimental.sparse or brainunit.sparse',
            got=type(mat).__name__,
            remedy=f'use {cls.__name__}.fromdense for an array',
        )
        new = ours if isinstance(ours, cls) else cls._fromcoo(ours.tocoo())
        return new._with(backend=backend)  # type: ignore[no-any-return, union-attr]

    @classmethod
    def frombcoo(cls, mat: Any, *, backend: str | None = None) -> Self:
        """Take over a ``BCOO`` matrix of JAX.

        Parameters
        ----------
        mat : jax.experimental.sparse.BCOO
            Of two sparse axes. Padding beyond the shape is left out.
        backend : str, optional
            Demand a backend for every product of the matrix.

        Returns
        -------
        Matrix

        See Also
        --------
        fromscipy : the same for all sparse matrices of other packages.
        """
        return cls.fromscipy(mat, backend=backend)

    def tobcoo(self) -> jax_sparse.BCOO:
        """Convert to a ``BCOO`` matrix of JAX.

        Returns
        -------
        jax.experimental.sparse.BCOO
            With a weight for each entry, in the order of the weights.

        Raises
        ------
        UnitError
            If the weights have a unit, which such a matrix cannot hold.
        """
        coo = self.tocoo()
        values = jnp.broadcast_to(_plain(self, 'tobcoo').reshape(-1), coo.row.shape)
        return jax_sparse.BCOO((values, jnp.stack([coo.row, coo.col], 1)), shape=self.shape)

    def toscipy(self) -> Any:
        """Convert to a sparse array of SciPy.

        Returns
        -------
        scipy.sparse.csr_array, csc_array or coo_array
            Compressed as this matrix is, or else in coordinates; repeated entries stay apart.
            Numbers of 16 bits, which SciPy does not multiply, become float32.

        Raises
        ------
        UnitError
            If the weights have a unit, which such an array cannot hold.
        OptionError
            If the matrix is traced.
        ImportError
            If SciPy is not installed.
        """
        import scipy.sparse  # optional, and slow to import

        number = _plain(self, 'toscipy')
        arrays = [getattr(self, name) for name in self.structure]
        expect(
            all(map(is_concrete, (number, *arrays))),
            OptionError,
            f'{type(self).__name__}.toscipy',
            'a traced matrix has no values yet.',
            expected='a matrix outside of jit and other transformations',
            got='traced arrays',
        )
        wide = number.astype(jnp.float32) if number.dtype in (jnp.float16, jnp.bfloat16) else number
        values = np.broadcast_to(np.asarray(wide).reshape(-1), self.nse).copy()  # type: ignore[attr-defined]
        if self.structure == ('indices', 'indptr'):
            kind = scipy.sparse.csc_array if self.flipped else scipy.sparse.csr_array
            indices, indptr = (np.array(a) for a in arrays)
            end = indptr[-1]  # padding follows
            return kind((values[:end], indices[:end], indptr), shape=self.shape)
        row, col = (np.array(ids) for ids in self.edges())  # type: ignore[attr-defined]
        inside = (row < self.shape[0]) & (col < self.shape[1])
        ends = row[inside], col[inside]
        return scipy.sparse.coo_array((values[inside], ends), shape=self.shape)


def reordered(data: Any, order: Any) -> Any:
    """Return the weights in another order; one for all entries is in every order."""
    if data.size == 1:
        return data
    number, unit = split_unit(data)
    if is_concrete(number) and is_concrete(order):  # on the host, where no size is compiled
        with jax.ensure_compile_time_eval():
            number = jax.device_put(in_order(np.asarray(number), np.asarray(order)))
    else:
        number = number[order]
    return number if unit is None else u.Quantity(number, unit=unit)


def known(arrays: Any) -> contextlib.AbstractContextManager[Any]:
    """Let what follows from known arrays be known, too, while a function around us is traced."""
    if any(map(is_tracer, arrays)):
        return contextlib.nullcontext()
    return jax.ensure_compile_time_eval()


def _plain(matrix: Any, call: str) -> Array:
    number, unit = split_unit(matrix._own)
    expect(
        unit is None,
        UnitError,
        f'{type(matrix).__name__}.{call}',
        'the weights have a unit.',
        expected='plain numbers',
        got=lambda: f'weights in {unit}',
        remedy='convert A.with_data(A.data.mantissa), and keep the unit apart',
    )
    return number  # type: ignore[no-any-return]


def _entries(where: str, number: Array, nse: int | None) -> tuple[Any, Any, Any]:
    """Return weight, row and column of what is not zero in a dense matrix, row by row."""
    if nse is None:
        expect(
            is_concrete(number),
            OptionError,
            where,
            'how many entries are not zero is not known in a traced matrix.',
            expected='the number of entries to store',
            got='nse=None',
            remedy='pass nse=, or convert outside of jit and other transformations',
        )
        host = np.asarray(number)
        ends = np.nonzero(host)
        with jax.ensure_compile_time_eval():
            return jnp.asarray(host[ends]), *ends
    m, n = number.shape
    nse = 0 if 0 in (m, n) else nse
    with known([number]):
        count = (number != 0).sum()
        expect(
            not is_concrete(count) or count <= nse,
            ShapeError,
            where,
            'there is not room for all entries.',
            expected=lambda: f'nse={count} at least',
            got=lambda: f'nse={nse}',
        )
        # padding lies outside the matrix, so that no operation meets it
        row, col = jnp.nonzero(number, size=nse, fill_value=PADDING)
        data = number.at[row, col].get(mode='fill', fill_value=0)
        return (data if is_concrete(count) else show_shortage(where, data, count > nse)), row, col


def show_shortage(where: str, data: Array, short: Array) -> Array:
    """Return weights that are NaN if a traced matrix has more entries than there is room for.

    Raises
    ------
    DtypeError
        If they cannot be NaN.
    """
    expect(
        jnp.issubdtype(data.dtype, jnp.inexact),
        DtypeError,
        where,
        'whole numbers cannot show that there was too little room in a traced matrix.',
        expected='weights of a floating dtype',
        got=data.dtype,
        remedy='convert the matrix to float, or convert it outside of jit',
    )
    return jnp.where(jnp.any(short), jnp.nan, data).astype(data.dtype)


def as_sparse(x: Any) -> Any:
    """Take over a sparse matrix of another package.

    Parameters
    ----------
    x : object

    Returns
    -------
    CSR, CSC, COO or None
        A matrix of this package as it is, one of SciPy, JAX or brainunit in the format nearest to
        its own, and None for everything else.

    Raises
    ------
    ShapeError
        If it has batch axes, or not two.
    """
    if isinstance(x, Bridge):
        return x
    scipy_sparse = sys.modules.get('scipy.sparse')
    if scipy_sparse is not None and scipy_sparse.issparse(x):
        _check_axes(x, x.ndim)
        kind = _COMPRESSED.get(x.format, 'COO')
        x = x if kind != 'COO' else x.tocoo()
    elif isinstance(x, jax_sparse.JAXSparse):
        _check_axes(x, getattr(x, 'n_sparse', x.ndim) if x.ndim == 2 else x.ndim)
        kind = _COMPRESSED.get(type(x).__name__, 'COO')
    elif isinstance(x, u.sparse.COO | u.sparse.CSR | u.sparse.CSC):
        kind = _COMPRESSED.get(type(x).__name__, 'COO')
    else:
        return None
    return _coordinates(x) if kind == 'COO' else _compressed(x, kind)


def _check_axes(x: Any, axes: int) -> None:
    expect(
        axes == 2,
        ShapeError,
        type(x).__name__,
        'the sparse array is no matrix.',
        expected='two sparse axes, no others',
        got=lambda: f'shape {x.shape}, {axes} sparse axes',
    )


def _compressed(x: Any, kind: str) -> Any:
    """Take over compressed rows or columns; what is beyond the last offset is padding."""
    data, indices, indptr = x.data, x.indices, x.indptr
    if is_concrete(indptr):
        end = int(indptr[-1])
        indices = indices[:end]
        data = data if data.size == 1 else data[:end]
    return FORMATS[kind](data, indices, indptr, shape=tuple(x.shape))


def _coordinates(x: Any) -> Any:
    """Take over coordinates; known ones that are outside are padding."""
    m, n = shape = tuple(x.shape)
    row, col = (x.indices[:, 0], x.indices[:, 1]) if hasattr(x, 'indices') else (x.row, x.col)
    data = x.data
    if is_concrete(row) and is_concrete(col):
        row, col = np.asarray(row), np.asarray(col)
        inside = within(row, m) & within(col, n)  # type: ignore[arg-type]
        if not inside.all():
            (keep,) = np.nonzero(inside)
            row, col, data = row[keep], col[keep], (data if data.size == 1 else data[keep])
    return FORMATS['COO'](data, row, col, shape=shape)
