# SPDX-License-Identifier: Apache-2.0
"""Matrices that learn: weights of connections that fired get a trace added, within bounds."""

from typing import Any, Self

from brainevent._edge import Products
from brainevent._edge.update import updates_of
from brainevent._typing import Array

__all__ = ['Plasticity']


class Plasticity:
    """The learning rules of matrices with stored weights."""

    data: Any
    arrays: tuple[Array, ...]
    products: Products
    layout_shape: tuple[int, int]
    flipped: bool
    backend: str | None

    def update_on_pre(
        self,
        pre_spike: Any,
        post_trace: Any,
        w_min: Any = None,
        w_max: Any = None,
        *,
        clip: str = 'all',
    ) -> Self:
        """Add the trace of the columns to the weights of rows that fired, then clip weights.

        Parameters
        ----------
        pre_spike : Array or BinaryArray, shape (shape[0],)
            A row fires when its element is True or greater than zero.
        post_trace : Array or Quantity, shape (shape[1],)
            In any unit that the weights can be measured in.
        w_min, w_max : number, Array or Quantity, optional
            Bounds of all weights of the result, of those no spike touched too.
        clip : {'all', 'touched'}
            Hold all weights between the bounds, which is one pass over all of them, or those of
            rows that fired only, which is right if the others were within the bounds before.

        Returns
        -------
        Matrix
            A new one; this one stays as it is.

        Raises
        ------
        ShapeError
            If an operand does not fit, or connections share one weight.
        UnitError
            If the trace or a bound measures something else than the weights.
        OptionError
            If the trace is an event array: spikes and trace were exchanged.

        Notes
        -----
        Visits only rows that fired where the format can find them, and works in place when the
        weights are donated or carried by `jax.lax.scan`. The derivative towards weights, trace and
        bounds is that of the formula; towards spikes it is straight through, as in a product.
        """
        return self._learn('update_on_pre', pre_spike, post_trace, w_min, w_max, clip, True)

    def update_on_post(
        self,
        pre_trace: Any,
        post_spike: Any,
        w_min: Any = None,
        w_max: Any = None,
        *,
        clip: str = 'all',
    ) -> Self:
        """Add the trace of the rows to the weights of columns that fired, then clip weights.

        Parameters
        ----------
        pre_trace : Array or Quantity, shape (shape[0],)
        post_spike : Array or BinaryArray, shape (shape[1],)
        w_min, w_max : number, Array or Quantity, optional
        clip : {'all', 'touched'}

        Returns
        -------
        Matrix
            See `update_on_pre`.

        Notes
        -----
        With a mirror (see `with_mirror`) only columns that fired are visited, without one every
        connection of a matrix in compressed rows is asked.
        """
        return self._learn('update_on_post', post_spike, pre_trace, w_min, w_max, clip, False)

    def _learn(
        self, what: str, spikes: Any, trace: Any, w_min: Any, w_max: Any, clip: str, rows: bool
    ) -> Self:
        where = f'{type(self).__name__}.{what}'
        data = updates_of(self.products)(
            where,
            self.data,
            self.arrays,
            spikes,
            trace,
            w_min,
            w_max,
            clip=clip,
            shape=self.layout_shape,
            transpose=rows is not self.flipped,
            backend=self.backend,
            checked=True,
        )
        return self._with(data=data)  # type: ignore[attr-defined, no-any-return]
