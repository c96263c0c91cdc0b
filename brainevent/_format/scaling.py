# SPDX-License-Identifier: Apache-2.0
"""A value for every entry, times a vector at the entry's row or column: a step of e-prop.

Used where eligibility traces belong to connections [1]_.

References
----------
.. [1] Bellec et al., A solution to the learning dilemma for recurrent networks of spiking neurons,
   Nature Communications 11, 3625 (2020).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from brainevent._edge import unwrap
from brainevent._edge.operands import as_array, split_unit, with_unit
from brainevent._error import ShapeError, expect

__all__ = ['Scaling']


class Scaling:
    """``dt2t`` of matrices with stored weights."""

    shape: tuple[int, int]

    def dt2t(self, y: Any, w: Any) -> Any:
        """Multiply a value for each entry by ``y`` at the entry's row.

        Parameters
        ----------
        y : Array or Quantity, shape (shape[0],)
        w : Array or Quantity
            One value for each entry, in the order and shape of ``data``.

        Returns
        -------
        Array or Quantity
            In the shape of ``w`` and the product of both units.

        Raises
        ------
        ShapeError
            If an operand does not fit.

        Examples
        --------
        >>> import brainevent, jax.numpy as jnp
        >>> A = brainevent.CSR(([1., 2., 3.], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
        >>> A.dt2t(jnp.array([10., 100.]), A.data)
        Array([ 10.,  20., 300.], dtype=float32)
        """
        return self._scale('dt2t', y, w, 0)

    def dt2t_transposed(self, y: Any, w: Any) -> Any:
        """Multiply a value for each entry by ``y`` at the entry's column.

        Parameters
        ----------
        y : Array or Quantity, shape (shape[1],)
        w : Array or Quantity
            One value for each entry, in the order and shape of ``data``.

        Returns
        -------
        Array or Quantity
            In the shape of ``w`` and the product of both units.
        """
        return self._scale('dt2t_transposed', y, w, 1)

    def _scale(self, what: str, y: Any, w: Any, axis: int) -> Any:
        where = f'{type(self).__name__}.{what}'
        (y, y_unit), (w, w_unit) = split_unit(unwrap(y)[0]), split_unit(w)
        y, w = as_array(where, 'y', y), as_array(where, 'w', w)
        ids = self.edges()[axis]  # type: ignore[attr-defined]
        expect(
            y.shape == (self.shape[axis],),
            ShapeError,
            where,
            '`y` does not fit the matrix.',
            expected=lambda: f'shape ({self.shape[axis]},)',
            got=lambda: f'shape {y.shape}',
        )
        expect(
            w.size in (1, ids.size),
            ShapeError,
            where,
            '`w` does not fit the structure.',
            expected=lambda: f'{ids.size} values, one for every entry',
            got=lambda: f'shape {w.shape}',
        )
        dtype = jnp.result_type(y, w)
        at_entries = y.astype(dtype).at[ids].get(mode='fill', fill_value=0)
        shape = w.shape if w.size == np.size(ids) else ids.shape
        return with_unit(at_entries.reshape(shape) * w.astype(dtype), w_unit, y_unit)
