# SPDX-License-Identifier: Apache-2.0
"""A value for every entry, times a vector at the entry's row or column: a step of e-prop.

Used where eligibility traces belong to connections [1]_.

References
----------
.. [1] Bellec et al., A solution to the learning dilemma for recurrent networks of spiking neurons,
   Nature Communications 11, 3625 (2020).
"""

from typing import Any, ClassVar

from brainevent._edge import Products
from brainevent._edge.scale import scales_of
from brainevent._keywords import also_named
from brainevent._op import soften
from brainevent._typing import Array

__all__ = ['Scaling']


class Scaling:
    """``dt2t`` of matrices with stored weights."""

    structure: ClassVar[tuple[str, ...]]
    arrays: tuple[Array, ...]
    families: ClassVar[tuple[Products, Products]]
    flipped: ClassVar[bool]
    shape: tuple[int, int]
    layout_shape: tuple[int, int]
    backend: str | None

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def dt2t(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Multiply a value for each entry by ``y_dim_arr`` at the entry's row.

        Parameters
        ----------
        y_dim_arr : Array or Quantity, shape (shape[0],)
        w_dim_arr : Array or Quantity
            One value for each entry, in the order and shape of ``data``, or one for all.

        Returns
        -------
        Array or Quantity
            In the shape of ``w_dim_arr`` and the product of both units.

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
        return self._scale('dt2t', y_dim_arr, w_dim_arr, columns=False)

    @also_named(y='y_dim_arr', w='w_dim_arr')
    def dt2t_transposed(self, y_dim_arr: Any, w_dim_arr: Any) -> Any:
        """Multiply a value for each entry by ``y_dim_arr`` at the entry's column.

        Parameters
        ----------
        y_dim_arr : Array or Quantity, shape (shape[1],)
        w_dim_arr : Array or Quantity
            One value for each entry, in the order and shape of ``data``, or one for all.

        Returns
        -------
        Array or Quantity
            In the shape of ``w_dim_arr`` and the product of both units.
        """
        return self._scale('dt2t_transposed', y_dim_arr, w_dim_arr, columns=True)

    def _scale(self, what: str, y: Any, w: Any, columns: bool) -> Any:
        structure = self.arrays[: len(self.structure)]
        return scales_of(self.families[0])(
            f'{type(self).__name__}.{what}',
            y,
            w,
            structure,
            shape=self.layout_shape,
            transpose=columns is not self.flipped,
            core=structure[0].shape if structure else self.shape,
            backend=soften(self.backend),
            checked=True,
        )
