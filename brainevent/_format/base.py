# SPDX-License-Identifier: Apache-2.0
"""What all matrices are: frozen values of weights and structure, multiplied from both sides."""

import abc
import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._edge import Products, unwrap
from brainevent._edge.event import active_list
from brainevent._edge.intake import is_array_like
from brainevent._edge.layout import within
from brainevent._edge.mirror import mirror
from brainevent._edge.operands import (
    as_array,
    as_index,
    check_structure,
    split_unit,
    with_unit,
)
from brainevent._error import (
    DtypeError,
    FrozenError,
    ShapeError,
    UnitError,
    UnsupportedOperationError,
    expect,
    explain,
)
from brainevent._format.algebra import Algebra
from brainevent._format.bridge import FORMATS, Bridge
from brainevent._format.buffers import Buffers
from brainevent._format.given import own_shape, refuse_sparse
from brainevent._format.indexing import Indexing
from brainevent._format.leaves import check_leaves
from brainevent._format.numpy_protocol import NumpyProtocol
from brainevent._format.plasticity import Plasticity
from brainevent._format.reductions import Extremes, Reductions
from brainevent._format.scaling import Scaling
from brainevent._format.solving import Solving
from brainevent._keywords import also_named
from brainevent._typing import Array

__all__ = ['DataRepresentation', 'Matrix', 'StoredMatrix']


class DataRepresentation(Buffers, u.sparse.SparseMatrix):  # type: ignore[misc]
    """Common base of everything that stands for a matrix.

    Parameters
    ----------
    args : tuple
        Arrays of the representation; a subclass keeps them as it likes.
    shape : sequence of int
        Rows and columns.
    buffers : dict, optional
        Named values carried along, see `register_buffer`.

    Notes
    -----
    A subclass defines what it needs of the protocol; what it leaves out raises
    `UnsupportedOperationError`.
    """

    __array_priority__ = 200

    def __init__(self, args: Any = (), *, shape: Sequence[int], buffers: Any = None) -> None:
        super().__init__(args, shape=shape)
        self.__dict__['_buffers'] = dict(buffers or {})

    def _refuse(self, what: str) -> Any:
        raise UnsupportedOperationError(
            explain(
                type(self).__name__,
                f'{what} is not defined for this representation.',
                expected='a representation that defines it',
                got=type(self).__name__,
                remedy='convert the matrix first, for example with tocsr()',
            )
        )

    @classmethod
    def fromdense(cls, mat: Any, **kwargs: Any) -> Any:
        """Build the representation from a dense array."""
        raise UnsupportedOperationError(f'{cls.__name__}.fromdense is not defined.')

    def tocoo(self) -> Any:
        """Convert to coordinates."""
        return self._refuse('tocoo')

    def tocsr(self) -> Any:
        """Convert to compressed rows."""
        return self._refuse('tocsr')

    def tocsc(self) -> Any:
        """Convert to compressed columns."""
        return self._refuse('tocsc')

    def solve(self, b: Any, tol: Any = None, reorder: Any = None) -> Any:
        """Solve a linear system."""
        return self._refuse('solve')

    def diag_add(self, other: Any) -> Any:
        """Add values to the diagonal."""
        return self._refuse('diag_add')

    def with_mirror(self) -> Any:
        """Build an index for the direction in which entries are not sorted."""
        return self._refuse('with_mirror')

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def dt2t(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Multiply a value for each entry by ``y_dim_arr`` at the entry's row."""
        return self._refuse('dt2t')

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def dt2t_transposed(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Multiply a value for each entry by ``y_dim_arr`` at the entry's column."""
        return self._refuse('dt2t_transposed')

    def update_on_pre(
        self, pre_spike: Any, post_trace: Any, w_min: Any = None, w_max: Any = None
    ) -> Any:
        """Add the trace of the columns to the weights of rows that fired."""
        return self._refuse('update_on_pre')

    def update_on_post(
        self, pre_trace: Any, post_spike: Any, w_min: Any = None, w_max: Any = None
    ) -> Any:
        """Add the trace of the rows to the weights of columns that fired."""
        return self._refuse('update_on_post')

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def yw_to_w(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Old name of `dt2t`."""
        return _renamed(self, 'yw_to_w', 'dt2t')(y_dim_arr, w_dim_arr)

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def yw_to_w_transposed(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Old name of `dt2t_transposed`."""
        return _renamed(self, 'yw_to_w_transposed', 'dt2t_transposed')(y_dim_arr, w_dim_arr)


def _renamed(owner: Any, old: str, new: str) -> Any:
    text = f'{type(owner).__name__}.{old} is now called {new}'
    warnings.warn(text, DeprecationWarning, stacklevel=4)
    return getattr(owner, new)


class Matrix(Reductions, NumpyProtocol, DataRepresentation, abc.ABC):
    """A matrix as a frozen value: weights and structure are pytree leaves, all else is static.

    A format defines `products`, `flipped`, `params`, `arrays`, `with_params` and `transpose`;
    products, transformations and the rest follow here.
    """

    flipped: ClassVar[bool] = False
    """Whether the layout holds the transpose of what the matrix stands for."""

    backend: str | None

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: a matrix is a value."""
        raise FrozenError(
            explain(
                type(self).__name__,
                f'a matrix is a value, `{name}` cannot be set.',
                expected='a new matrix made from this one',
                got=f'an assignment to `{name}`',
                remedy='use with_data(...), or build another matrix',
            )
        )

    def _set(self, **fields: Any) -> Self:
        """Fill in a matrix that is being made."""
        self.__dict__.update(fields)
        return self

    # ---- what a format defines --------------------------------------------------------------

    @property
    @abc.abstractmethod
    def products(self) -> Products:
        """The family of operators that multiplies this matrix."""

    @property
    @abc.abstractmethod
    def params(self) -> tuple[Any, ...]:
        """Differentiable parameters of the weights, with units."""

    @property
    @abc.abstractmethod
    def arrays(self) -> tuple[Array, ...]:
        """Structure arrays, as the layout names them."""

    @abc.abstractmethod
    def with_params(self, *params: Any) -> Self:
        """Return a matrix of the same structure with other weights."""

    @abc.abstractmethod
    def transpose(self, axes: Any = None) -> 'Matrix':
        """Return the transpose; nothing is moved."""

    # ---- what follows -----------------------------------------------------------------------

    @property
    def layout_shape(self) -> tuple[int, int]:
        """Shape of what the layout holds."""
        return self.shape[::-1] if self.flipped else self.shape

    def __matmul__(self, other: Any) -> Any:
        """Multiply by a vector ``(n,)`` or by vectors in columns ``(n, batch)``."""
        return self._multiply(other, left=False)

    def __rmatmul__(self, other: Any) -> Any:
        """Multiply a vector ``(m,)`` or vectors in rows ``(batch, m)`` by this matrix."""
        return self._multiply(other, left=True)

    def _multiply(self, other: Any, left: bool) -> Any:
        where = f'x @ {type(self).__name__}' if left else f'{type(self).__name__} @ x'
        value, event = unwrap(other)
        if not isinstance(value, (jax.Array, u.Quantity)):
            refuse_sparse(where, value)
            if not is_array_like(value):
                return NotImplemented
            value = as_array(where, 'x', value)
        return self.products(
            where,
            self.params,
            self.arrays,
            value,
            shape=self.layout_shape,
            transpose=left is not self.flipped,
            event=event,
            rows=left and value.ndim == 2,
            backend=self.backend,
            checked=True,
            active=active_list(other),
        )

    def __repr__(self) -> str:
        """Describe shape, dtype and number of entries; survives tracing and placeholders."""
        try:
            about = f'{self.dtype}{list(self.shape)}, nse={self.nse}'
        except (AttributeError, IndexError, TypeError, ShapeError):
            # leaves need not be arrays: `jax.tree.map(lambda x: x.sharding, A)` is printed too
            about = f'{", ".join(map(repr, jax.tree.leaves(self)))}, shape={self.shape}'
        return f'{type(self).__name__}({about})'

    @property
    def dtype(self) -> Any:
        """Dtype of the weights."""
        return jnp.result_type(*(split_unit(p)[0] for p in self.params))

    @property
    def nse(self) -> int:
        """Number of stored entries."""
        return self.products.layout.count(self.arrays, self.layout_shape)


def check_same_unit(where: str, old: Any, new: Any) -> None:
    """Refuse new weights that would lose the unit of the old ones, or measure something else."""
    unit, other = split_unit(old)[1], split_unit(new)[1]
    expect(
        unit is None or new is None or (other is not None and unit.has_same_dim(other)),
        UnitError,
        where,
        'the weights do not measure what those of the matrix do.',
        expected=lambda: f'weights in {unit}',
        got=lambda: f'weights in {other}' if other else 'weights without unit',
        remedy='give them a unit; `A / unit` is the matrix without it',
    )


class StoredMatrix(Algebra, Bridge, Extremes, Indexing, Plasticity, Scaling, Solving, Matrix):
    """A matrix with stored weights: one for all entries, or one each.

    A format names its structure arrays and the two families that multiply it: as it is stored,
    and with a mirror, an index for the other direction.
    """

    structure: ClassVar[tuple[str, ...]]
    static: ClassVar[tuple[str, ...]] = ('shape', 'backend')
    families: ClassVar[tuple[Products, Products]]

    data: Any
    mirror: tuple[Array, ...]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Enter the table of formats; a subclass elsewhere that has a name of ours stays out."""
        super().__init_subclass__(**kwargs)
        FORMATS.setdefault(cls.__name__, cls)

    def _fill(
        self,
        data: Any,
        structure: Sequence[Any],
        *,
        shape: Any,
        backend: str | None = None,
        buffers: Any = None,
        check: bool = True,
    ) -> None:
        """Check and take over what a constructor was given."""
        where = type(self).__name__
        ids = [as_index(where, n, a) for n, a in zip(self.structure, structure, strict=True)]
        self._set(shape=own_shape(where, shape), backend=backend, mirror=())
        self._set(_buffers=dict(buffers or {}), **dict(zip(self.structure, ids, strict=True)))
        layout = self.products.layout
        if check:
            check_structure(where, layout, ids, self.layout_shape)
        else:
            layout.check_shapes(where, tuple(ids), self.layout_shape)
        self._set(data=self._own_data(data))

    @property
    def products(self) -> Products:
        """The family of operators that multiplies this matrix."""
        return self.families[bool(self.mirror)]

    @property
    def params(self) -> tuple[Any, ...]:
        """The stored weights."""
        return (self.data,)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Structure arrays, and the mirror's if there is one, checked with the weights.

        Raises
        ------
        ShapeError
            If the leaves were changed after construction and do not fit the shape.
        """
        self._check_leaves(self.data)
        return self._structure_arrays

    @property
    def _structure_arrays(self) -> tuple[Array, ...]:
        return (*(getattr(self, name) for name in self.structure), *self.mirror)

    def _check_leaves(self, data: Any) -> None:
        """Check that structure arrays and weights fit the static shape, and each other.

        Transformations and libraries replace leaves without a constructor, so every operation
        starts here. Only shapes are read, which is free also for traced arrays.
        """
        where, arrays = type(self).__name__, self._structure_arrays

        def check() -> None:
            expect(
                all(np.dtype(a.dtype).name in ('int32', 'int64') for a in arrays),
                DtypeError,
                where,
                'a structure array was converted to another dtype.',
                expected='int32 or int64',
                got=lambda: ', '.join(str(a.dtype) for a in arrays),
            )
            self.products.layout.check_shapes(where, arrays, self.layout_shape)
            self._check_data(where, np.shape(split_unit(data)[0]))

        names = (*self.structure, *(f'mirror[{k}]' for k in range(len(self.mirror))))
        leaves = (('data', data), *zip(names, arrays, strict=True))
        check_leaves(where, self.shape, leaves, check)

    def _check_data(self, where: str, shape: tuple[int, ...]) -> None:
        """Check the shape of weights against the structure."""
        count = self.products.layout.count(self._structure_arrays, self.layout_shape)
        expect(
            len(shape) < 2 and math.prod(shape) in (1, count),
            ShapeError,
            where,
            '`data` does not fit the structure.',
            expected=lambda: f'one weight, or {count}: one for every entry',
            got=lambda: f'shape {shape}',
            remedy='give one weight for all entries or one for each',
        )

    def with_params(self, *params: Any) -> Self:
        """Return a matrix of the same structure with other weights."""
        (data,) = params
        return self.with_data(data)

    def with_data(self, data: Any) -> Self:
        """Return a matrix of the same structure with other weights.

        Parameters
        ----------
        data : array_like or Quantity
            One weight for all entries, or as many as there are entries.

        Returns
        -------
        Matrix
            Sharing the structure arrays; cheap, also inside transformations.

        Raises
        ------
        ShapeError
            If the number of weights does not fit.
        UnitError
            If these weights have a unit, and the others measure something else.
        """
        check_same_unit(f'{type(self).__name__}.with_data', self.data, data)
        return self._reweighted(data)

    def with_mirror(self) -> Self:
        """Return the same matrix with an index that makes the other direction event-driven.

        Returns
        -------
        Matrix
            With the structure in both orders: a product with an event vector then visits active
            entries only, from either side. The index costs two integers an entry.

        Notes
        -----
        Nothing is built behind the scenes: a matrix without a mirror stays without.
        """
        if self.mirror:
            return self
        layout = self.products.layout
        return self._with(mirror=mirror(layout, self.arrays, self.layout_shape))

    def build_weight_indices(self) -> Self:
        """Return the same matrix with a mirror; the older name of `with_mirror`."""
        return self.with_mirror()

    def _with(self, **fields: Any) -> Self:
        new = object.__new__(type(self))
        return new._set(**{**self.__dict__, **fields})

    def _turned(self, kind: 'type[StoredMatrix]', axes: Any) -> Any:
        """Read the same arrays as the transpose, held by the sister class."""
        expect(
            axes is None,
            UnsupportedOperationError,
            f'{type(self).__name__}.transpose',
            'axes cannot be chosen.',
            expected='axes=None',
            got=lambda: repr(axes),
        )
        new = object.__new__(kind)
        return new._set(**{**self.__dict__, 'shape': self.shape[::-1]})

    def _own_data(self, data: Any) -> Any:
        """Return weights as an array or quantity that fits the structure."""
        number, unit = split_unit(data)
        number = as_array(type(self).__name__, 'data', number)
        if number.ndim > 1 and {getattr(self, name).ndim for name in self.structure} == {1}:
            number = number.reshape(-1)  # a list of entries has a list of weights
        self._check_data(type(self).__name__, number.shape)
        return number if unit is None else u.Quantity(number, unit=unit)

    # ---- a pytree: weights, then structure ----------------------------------------------------

    def tree_flatten_with_keys(self) -> tuple[Any, Any]:
        """Show weights and structure as leaves, named."""
        leaves, static = self.tree_flatten()
        keys = map(jax.tree_util.GetAttrKey, self._leaf_names())
        return list(zip(keys, leaves, strict=True)), static

    def tree_flatten(self) -> tuple[Any, Any]:
        """Show weights and structure as leaves."""
        leaves = tuple(getattr(self, name) for name in self._leaf_names())
        return leaves, tuple(getattr(self, name) for name in self.static)

    @classmethod
    @also_named(static='aux_data', leaves='children')
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Self:
        """Put a matrix together from whatever stands for its leaves."""
        fields = dict(zip(cls._leaf_names(), children, strict=True))
        fields.update(zip(cls.static, aux_data, strict=True))
        return object.__new__(cls)._set(**fields)

    @classmethod
    def _leaf_names(cls) -> tuple[str, ...]:
        return ('data', *cls.structure, 'mirror', '_buffers')

    # ---- dense views ----------------------------------------------------------------------------

    def edges(self) -> tuple[Array, Array]:
        """Return row and column of every entry, in the order of the weights."""
        row, col = self.products.layout.edges(self.arrays, self.layout_shape)
        return (col, row) if self.flipped else (row, col)

    def todense(self) -> Any:
        """Return the matrix as a dense array; repeated entries add up."""
        number, unit = split_unit(self._own)
        dtype = jnp.dtype('int32') if number.dtype == bool else number.dtype
        row, col = self.edges()
        inside = within(row, self.shape[0]) & within(col, self.shape[1])
        row = jnp.where(inside, row, self.shape[0])  # what lies outside is dropped
        weights = jnp.broadcast_to(number.reshape(-1).astype(dtype), row.shape)
        dense = jnp.zeros(self.shape, dtype).at[row, col].add(weights, mode='drop')
        return with_unit(dense, unit)
