# SPDX-License-Identifier: Apache-2.0
"""Matrices that are drawn while they are multiplied: a probability and a seed stand for all edges.

A matrix is a pure function of seed, probability and ``corder``: every product, from either side,
alone or in batches, on every backend, sees the same one, and so do its dense and compressed forms.
Element ``(i, j)`` does not depend on how many rows and columns there are.
"""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import brainunit as u
import jax
import jax.numpy as jnp
import numpy as np

from brainevent._compat import is_concrete
from brainevent._edge.operands import as_array, split_unit, with_unit
from brainevent._edge.update import in_unit
from brainevent._error import (
    DtypeError,
    ShapeError,
    UnsupportedOperationError,
    expect,
)
from brainevent._format.base import Matrix
from brainevent._format.csr import CSC, CSR
from brainevent._format.drawn import (
    JITN,
    JITS,
    JITU,
    Drawn,
    counted,
    own_prob,
    own_seed,
    structure,
)
from brainevent._format.drawn_algebra import DrawnAlgebra
from brainevent._format.drawn_checks import (
    check_interval,
    check_single,
    described,
    room_of,
    show_invalid,
)
from brainevent._format.drawn_edges import compressed, picked_elements, picked_rows
from brainevent._format.given import own_shape
from brainevent._format.indexing import Indexing
from brainevent._format.leaves import check_leaves
from brainevent._keywords import also_named
from brainevent._pytree import pytree
from brainevent._typing import Array

__all__ = [
    'JITCMatrix',
    'JITCNormalC',
    'JITCNormalMatrix',
    'JITCNormalR',
    'JITCScalarC',
    'JITCScalarMatrix',
    'JITCScalarR',
    'JITCUniformC',
    'JITCUniformMatrix',
    'JITCUniformR',
]


class JITCMatrix(DrawnAlgebra, Indexing, Matrix):
    """What matrices of just-in-time connectivity share; use one of the classes below.

    A class of your own names its `family`, made by `brainevent.extend.Drawn`, and its parameters,
    unlike attributes that matrices have.

    Notes
    -----
    ``corder`` says which axis carries the streams along which edges are drawn: rows if it is
    False, columns if it is True; these are two different random matrices. A product with events is
    fast where the input stands at the streams, since silent ones are passed over: ``spikes @ A``
    with ``corder=False``, ``A @ spikes`` with ``corder=True``. In the other direction all edges
    are drawn.

    Derivatives with respect to weights and operands are those of the dense matrix. That with
    respect to the probability is zero: the pattern is decided by comparing integers. A seed has
    none.
    """

    family: ClassVar[Drawn]
    """The products of the layout and the weights."""
    names: ClassVar[tuple[str, ...]]
    """What the parameters of the weights are called."""
    sister: ClassVar[type['JITCMatrix'] | None] = None
    """The class of the transpose, if it is another one."""

    prob: Any
    seed: Any
    corder: bool

    def __init__(
        self,
        *parameters: Any,
        shape: Any = None,
        corder: bool = False,
        backend: str | None = None,
        buffers: Any = None,
        matrix_mode: Any = None,
    ) -> None:
        many = len(self.names) + 2
        given = (*parameters, *[None] * (many - len(parameters)))
        self._init(given, shape=shape, corder=corder, backend=backend, buffers=buffers)

    # ---- construction ---------------------------------------------------------------------------

    @classmethod
    def _make(
        cls,
        where: str,
        weights: Sequence[Any],
        prob: Any,
        seed: Any,
        *,
        shape: Any,
        corder: bool,
        backend: str | None,
    ) -> Self:
        """Check what a matrix is made of, and make it; ``where`` is named in messages."""
        return object.__new__(cls)._fill(
            where, weights, prob, seed, shape=shape, corder=corder, backend=backend
        )

    def _fill(
        self,
        where: str,
        weights: Sequence[Any],
        prob: Any,
        seed: Any,
        *,
        shape: Any,
        corder: bool,
        backend: str | None,
        buffers: Any = None,
    ) -> Self:
        own = self._own_weights(where, weights)
        fields = {'prob': own_prob(where, prob), 'seed': own_seed(where, seed)}
        shape = own_shape(where, shape)
        expect(
            max(shape) < 2**31,
            ShapeError,
            where,
            'an axis of a drawn matrix is too long.',
            expected='axes shorter than 2**31',
            got=lambda: f'shape {shape}',
        )
        return self._set(
            **own,
            **fields,
            shape=shape,
            corder=bool(corder),
            backend=backend,
            _buffers=dict(buffers or {}),
        )

    def _own_weights(self, where: str, weights: Sequence[Any]) -> dict[str, Any]:
        """Take over parameters: single numbers, in the unit of the first."""
        unit = split_unit(weights[0])[1]
        own = {}
        for name, given in zip(self.names, weights, strict=True):
            number = as_array(where, name, in_unit(where, name, given, unit))
            expect(
                number.size == 1,
                ShapeError,
                where,
                f'`{name}` is not one number.',
                expected='shape () or (1,): all edges are of one distribution',
                got=lambda number=number: f'shape {number.shape}',
                remedy='for a weight of its own on each edge convert to CSR with tocsr()',
            )
            if self.family.weight.draws and not jnp.issubdtype(number.dtype, jnp.inexact):
                number = number.astype(jnp.result_type(float))
            own[name] = number if unit is None else u.Quantity(number, unit=unit)
        return own

    def _init(self, given: tuple[Any, ...], **options: Any) -> None:
        """Fill in what a constructor was given, in one tuple or one by one."""
        where, many = type(self).__name__, len(self.names)
        first, *rest = given
        if isinstance(first, (tuple, list)) and all(x is None for x in rest):
            given = (*first, *[None] * (many + 2 - len(first)))
        named = (*self.names, 'prob', 'seed')
        expect(
            len(given) == many + 2 and all(x is not None for x in given[:-1]),
            DtypeError,
            where,
            'the matrix is not complete.',
            expected=f'{", ".join(named)}, or a tuple of them',
            got=lambda: f'{sum(x is not None for x in given)} of them',
        )
        self._fill(where, given[:many], *given[many:], **options)

    # ---- what a matrix is -----------------------------------------------------------------------

    @property
    def products(self) -> Drawn:
        """The family of operators that multiplies this matrix."""
        return self.family

    @property
    def flipped(self) -> bool:  # type: ignore[override]
        """Whether streams run along columns: then the layout holds the transpose."""
        return self.corder

    @property
    def params(self) -> tuple[Any, ...]:
        """The parameters of the weights."""
        return tuple(getattr(self, name) for name in self.names)

    @property
    def data(self) -> Any:
        """The parameter of the weights, or a tuple of them."""
        return self.params[0] if len(self.names) == 1 else self.params

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Probability and seed, as the layout has them; checked with the weights.

        Raises
        ------
        ShapeError
            If the leaves were changed after construction and are not single numbers.
        """
        where = type(self).__name__
        leaves = [(name, getattr(self, name)) for name in (*self.names, 'prob', 'seed')]
        check_leaves(where, self.shape, leaves, functools.partial(check_single, where, leaves))
        return structure(self.prob, self.seed)

    @property
    def nse(self) -> int:
        """Number of edges: they are all drawn to be counted.

        Raises
        ------
        UnsupportedOperationError
            If the probability or the seed is traced.
        """
        expect(
            all(map(is_concrete, self.arrays)),
            UnsupportedOperationError,
            f'{type(self).__name__}.nse',
            'how many edges a traced matrix has is not known.',
            expected='a concrete probability and seed',
            got='traced ones',
            remedy='use `(A.todense() != 0).sum()` in the program, or count outside of it',
        )
        with jax.ensure_compile_time_eval():
            count = counted(self.family.layout, self.arrays, self.layout_shape)
        return int(np.asarray(count).sum(dtype=np.int64))

    def __repr__(self) -> str:
        """Describe dtype, shape and parameters."""
        told = ', '.join(
            f'{k}={described(getattr(self, k))}' for k in (*self.names, 'prob', 'seed')
        )
        return f'{type(self).__name__}({told}, shape={self.shape}, corder={self.corder})'

    def with_params(self, *params: Any) -> Self:
        """Return a matrix with the same edges and other parameters of the weights."""
        return self._with(**self._own_weights(type(self).__name__, params))

    def with_data(self, data: Any) -> Self:
        """Return a matrix with the same edges and other parameters of the weights.

        Parameters
        ----------
        data : number or Quantity, or tuple
            The parameter, or a tuple of all of them.

        Returns
        -------
        JITCMatrix
        """
        many = len(self.names)
        expect(
            many == 1 or (isinstance(data, (tuple, list)) and len(data) == many),
            DtypeError,
            f'{type(self).__name__}.with_data',
            'the parameters are not complete.',
            expected=f'a tuple of {", ".join(self.names)}',
            got=lambda: type(data).__name__,
        )
        return self.with_params(*([data] if many == 1 else data))

    def transpose(self, axes: Any = None) -> 'JITCMatrix':
        """Return the transpose, of the sister class: the same edges, read the other way."""
        expect(
            axes is None,
            UnsupportedOperationError,
            f'{type(self).__name__}.transpose',
            'axes cannot be chosen.',
            expected='axes=None',
            got=lambda: repr(axes),
        )
        changed = {'shape': self.shape[::-1], 'corder': not self.corder}
        return object.__new__(self.sister or type(self))._set(**{**self.__dict__, **changed})

    def _with(self, **fields: Any) -> Self:
        return object.__new__(type(self))._set(**{**self.__dict__, **fields})

    # ---- a pytree -------------------------------------------------------------------------------

    def tree_flatten_with_keys(self) -> tuple[Any, Any]:
        """Show parameters, probability and seed as leaves, named."""
        leaves, static = self.tree_flatten()
        keys = map(jax.tree_util.GetAttrKey, (*self.names, 'prob', 'seed', '_buffers'))
        return list(zip(keys, leaves, strict=True)), static

    def tree_flatten(self) -> tuple[Any, Any]:
        """Show parameters, probability and seed as leaves."""
        leaves = (*self.params, self.prob, self.seed, self._buffers)
        return leaves, (self.shape, self.corder, self.backend)

    @classmethod
    @also_named(static='aux_data', leaves='children')
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Self:
        """Put a matrix together from whatever stands for its leaves."""
        fields = dict(zip((*cls.names, 'prob', 'seed', '_buffers'), children, strict=True))
        shape, corder, backend = aux_data
        new = object.__new__(cls)
        return new._set(**fields, shape=shape, corder=corder, backend=backend)

    def _shown(self, result: Any) -> Any:
        return show_invalid(self.prob, result)

    def _multiply(self, other: Any, left: bool) -> Any:
        result = super()._multiply(other, left)
        return result if result is NotImplemented else self._shown(result)

    # ---- put into memory ------------------------------------------------------------------------

    def todense(self) -> Any:
        """Return the matrix as a dense array."""
        numbers = [split_unit(p)[0].reshape(-1) for p in self.params]
        dtype = jnp.result_type(*numbers)
        dtype = jnp.dtype('int32') if dtype == np.bool_ else dtype
        numbers = [x.astype(dtype) for x in numbers]
        grid = self.family.dense(numbers, self.arrays, self.layout_shape, self.backend)
        dense = grid.T if self.flipped else grid
        return with_unit(self._shown(dense), split_unit(self.params[0])[1])

    def tocsr(self, nse: int | None = None) -> CSR:
        """Convert to compressed rows.

        Parameters
        ----------
        nse : int, optional
            Room for entries, needed where probability or seed are traced. What is left over is
            padding; if there is too little room there, the weights are NaN.

        Returns
        -------
        CSR
            One weight for all edges if they are constant.

        Raises
        ------
        OptionError
            If ``nse`` is missing and the number of edges is not known, or known and larger.
        DtypeError
            If the number is not known, and weights are whole numbers, which cannot be NaN.

        Examples
        --------
        >>> import brainevent
        >>> A = brainevent.JITCScalarR((1.5, 0.5, 42), shape=(3, 4)).tocsr()
        >>> A.shape, A.nse == A.indices.size
        ((3, 4), True)
        """
        return compressed(self, 'tocsr', nse, CSR)  # type: ignore[no-any-return]

    def tocsc(self, nse: int | None = None) -> CSC:
        """Convert to compressed columns; ``nse`` as for `tocsr`."""
        return compressed(self, 'tocsc', nse, CSC)  # type: ignore[no-any-return]

    def tocoo(self, nse: int | None = None) -> Any:
        """Convert to coordinates; ``nse`` as for `tocsr`."""
        return compressed(self, 'tocoo', nse).tocoo()

    # ---- parts, and values at edges -------------------------------------------------------------

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def dt2t(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Multiply a value for each edge, row by row, by ``y_dim_arr`` at the edge's row.

        Parameters
        ----------
        y_dim_arr : Array or Quantity, shape (shape[0],)
        w_dim_arr : Array or Quantity
            One value for all edges, or one for each in the order of `tocsr`.

        Returns
        -------
        Array or Quantity, shape (edges,)
            In the product of both units.
        """
        return self._with_values('dt2t', y_dim_arr, w_dim_arr)

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def dt2t_transposed(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Multiply a value for each edge, row by row, by ``y_dim_arr`` at the edge's column."""
        return self._with_values('dt2t_transposed', y_dim_arr, w_dim_arr)

    def _with_values(self, method: str, y: Any, w: Any) -> Any:
        """Call a method of the listed edges; NaN if there are more of them than values."""
        listed = self.with_params(*(0.0 for _ in self.names)).tocsr(room_of(w))
        result = getattr(listed, method)(y, w)
        value, unit = split_unit(result)
        return with_unit(value + listed.data.astype(value.dtype), unit)

    def slice_rows(self, index: Any) -> CSR:
        """Return some rows, compressed."""
        return self.tocsr().slice_rows(index)  # type: ignore[no-any-return]

    def _pick(self, *ids: Any) -> Any:
        """Return dense rows, or single elements."""
        return picked_rows(self, *ids) if len(ids) == 1 else picked_elements(self, *ids)


# ---- three distributions, each with two letters --------------------------------------------------


class JITCScalarMatrix(JITCMatrix):
    """What `JITCScalarR` and `JITCScalarC` share: all edges weigh the same."""

    family: ClassVar = JITS
    names: ClassVar = ('weight',)

    weight: Any

    def __init__(
        self,
        weight: Any,
        prob: Any = None,
        seed: Any = None,
        *,
        shape: Any = None,
        corder: bool = False,
        backend: str | None = None,
        buffers: Any = None,
        matrix_mode: Any = None,
    ) -> None:
        self._init(
            (weight, prob, seed), shape=shape, corder=corder, backend=backend, buffers=buffers
        )


class JITCNormalMatrix(JITCMatrix):
    """What `JITCNormalR` and `JITCNormalC` share: weights are normal."""

    family: ClassVar = JITN
    names: ClassVar = ('loc', 'scale')

    loc: Any
    scale: Any
    wloc = property(lambda self: self.loc, doc='Old name of ``loc``.')
    wscale = property(lambda self: self.scale, doc='Old name of ``scale``.')

    def __init__(
        self,
        loc: Any,
        scale: Any = None,
        prob: Any = None,
        seed: Any = None,
        *,
        shape: Any = None,
        corder: bool = False,
        backend: str | None = None,
        buffers: Any = None,
        matrix_mode: Any = None,
    ) -> None:
        self._init(
            (loc, scale, prob, seed), shape=shape, corder=corder, backend=backend, buffers=buffers
        )


class JITCUniformMatrix(JITCMatrix):
    """What `JITCUniformR` and `JITCUniformC` share: weights are uniform between two ends."""

    family: ClassVar = JITU
    names: ClassVar = ('low', 'high')

    low: Any
    high: Any
    wlow = property(lambda self: self.low, doc='Old name of ``low``.')
    whigh = property(lambda self: self.high, doc='Old name of ``high``.')

    def __init__(
        self,
        low: Any,
        high: Any = None,
        prob: Any = None,
        seed: Any = None,
        *,
        shape: Any = None,
        corder: bool = False,
        backend: str | None = None,
        buffers: Any = None,
        matrix_mode: Any = None,
    ) -> None:
        self._init(
            (low, high, prob, seed), shape=shape, corder=corder, backend=backend, buffers=buffers
        )
        check_interval(type(self).__name__, self.low, self.high)


@pytree
class JITCScalarR(JITCScalarMatrix):
    """Matrix whose edges are drawn while it is used, and all weigh the same.

    Parameters
    ----------
    weight : number or Quantity, or tuple
        Of every edge; or ``(weight, prob, seed)``.
    prob : float
        Probability of each of the edges, from 0 to 1, each independent of all others.
    seed : int
        Any whole number, concrete or traced; two words of uint32 or a key of JAX will do. None
        draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns; the whole of a smaller matrix is part of a larger one.
    corder : bool
        False: edges are drawn along rows, and ``spikes @ A`` passes silent ones over. True: along
        columns, and ``A @ spikes`` does. See `JITCMatrix`.
    backend : str, optional
        Demand a backend for every product of this matrix.
    buffers : dict, optional
        Named values carried along.
    matrix_mode : object
        Accepted and not used: there is one matrix for all products.

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If a parameter is not one number, or not in the unit of the first.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.JITCScalarR((1.5, 0.5, 42), shape=(3, 4))
    >>> A.todense()
    Array([[1.5, 1.5, 0. , 1.5],
           [0. , 0. , 0. , 0. ],
           [1.5, 1.5, 0. , 0. ]], dtype=float32)
    >>> brainevent.BinaryArray([True, False, True]) @ A
    Array([3. , 3. , 0. , 1.5], dtype=float32)
    """


@pytree
class JITCScalarC(JITCScalarMatrix):
    """The same matrix as `JITCScalarR` of the same arguments, and the class of its transpose.

    Parameters
    ----------
    weight, prob, seed, shape, corder, backend, buffers, matrix_mode
        As for `JITCScalarR`.
    """

    sister: ClassVar = JITCScalarR


JITCScalarR.sister = JITCScalarC


@pytree
class JITCNormalR(JITCNormalMatrix):
    """Matrix whose edges are drawn while it is used, with normal weights.

    Parameters
    ----------
    loc : number or Quantity, or tuple
        Mean of the weights; or ``(loc, scale, prob, seed)``.
    scale : number or Quantity
        Their standard deviation, in a unit like that of ``loc``.
    prob : float
        Probability of each of the edges, from 0 to 1, each independent of all others.
    seed : int
        Any whole number, concrete or traced; two words of uint32 or a key of JAX will do. None
        draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns; the whole of a smaller matrix is part of a larger one.
    corder : bool
        False: edges are drawn along rows, and ``spikes @ A`` passes silent ones over. True: along
        columns, and ``A @ spikes`` does. See `JITCMatrix`.
    backend : str, optional
        Demand a backend for every product of this matrix.
    buffers : dict, optional
        Named values carried along.
    matrix_mode : object
        Accepted and not used: there is one matrix for all products.

    Raises
    ------
    OptionError
        If ``prob`` is no probability, or ``seed`` is missing in a traced program.
    ShapeError, DtypeError, UnitError
        If a parameter is not one number, or not in the unit of the first.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.JITCNormalR((0.0, 1.0, 0.5, 42), shape=(3, 4))
    >>> bool(((2 * A).todense() == 2 * A.todense()).all())
    True
    """


@pytree
class JITCNormalC(JITCNormalMatrix):
    """The same matrix as `JITCNormalR` of the same arguments, and the class of its transpose.

    Parameters
    ----------
    loc, scale, prob, seed, shape, corder, backend, buffers, matrix_mode
        As for `JITCNormalR`.
    """

    sister: ClassVar = JITCNormalR


JITCNormalR.sister = JITCNormalC


@pytree
class JITCUniformR(JITCUniformMatrix):
    """Matrix whose edges are drawn while it is used, with uniform weights.

    Parameters
    ----------
    low : number or Quantity, or tuple
        Lower end of the weights; or ``(low, high, prob, seed)``.
    high : number or Quantity
        Upper end, in a unit like that of ``low``.
    prob : float
        Probability of each of the edges, from 0 to 1, each independent of all others.
    seed : int
        Any whole number, concrete or traced; two words of uint32 or a key of JAX will do. None
        draws one, outside of traced programs.
    shape : tuple of int
        Rows and columns; the whole of a smaller matrix is part of a larger one.
    corder : bool
        False: edges are drawn along rows, and ``spikes @ A`` passes silent ones over. True: along
        columns, and ``A @ spikes`` does. See `JITCMatrix`.
    backend : str, optional
        Demand a backend for every product of this matrix.
    buffers : dict, optional
        Named values carried along.
    matrix_mode : object
        Accepted and not used: there is one matrix for all products.

    Raises
    ------
    OptionError
        If ``prob`` is no probability, ``low`` is above ``high``, or ``seed`` is missing in a traced
        program.
    ShapeError, DtypeError, UnitError
        If a parameter is not one number, or not in the unit of the first.

    Examples
    --------
    >>> import brainevent, jax.numpy as jnp
    >>> A = brainevent.JITCUniformR((1.0, 2.0, 0.5, 42), shape=(3, 4))
    >>> (A @ jnp.ones(4)).round(2)
    Array([4.62, 0.  , 3.05], dtype=float32)
    """


@pytree
class JITCUniformC(JITCUniformMatrix):
    """The same matrix as `JITCUniformR` of the same arguments, and the class of its transpose.

    Parameters
    ----------
    low, high, prob, seed, shape, corder, backend, buffers, matrix_mode
        As for `JITCUniformR`.
    """

    sister: ClassVar = JITCUniformR


JITCUniformR.sister = JITCUniformC
