# SPDX-License-Identifier: Apache-2.0
"""What operators on edges must give: the trilinear form in NumPy, in double precision.

Everything is a contraction of ``T(w, x, y) = sum_e w_e x[source(e)] y[target(e)]``. Operands have
one axis, or two with vectors in columns; ``w`` holds one weight for each edge.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Form:
    """The form of one matrix read in one direction."""

    source: np.ndarray
    target: np.ndarray
    n_in: int
    n_out: int

    @classmethod
    def of(cls, example, shape, transpose):
        """Return the form of an example; transposed, its rows are the input."""
        rows, cols = (example.row, shape[0]), (example.col, shape[1])
        (source, n_in), (target, n_out) = (rows, cols) if transpose else (cols, rows)
        return cls(source, target, n_in, n_out)

    def product(self, w, x):
        """Contract with weights and input."""
        return _scatter(w, x, self.source, self.target, self.n_out)

    def back(self, w, y):
        """Contract with weights and output."""
        return _scatter(w, y, self.target, self.source, self.n_in)

    def sample(self, x, y):
        """Contract with input and output."""
        terms = x[self.source] * y[self.target]
        return terms.sum(tuple(range(1, terms.ndim)))


def _scatter(w, x, source, target, extent):
    terms = x[source] * w.reshape(-1, *[1] * (x.ndim - 1))
    y = np.zeros((extent, *x.shape[1:]), terms.dtype)
    np.add.at(y, target, terms)
    return y
