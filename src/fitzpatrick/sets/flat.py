"""A set of matrices as a set of vectors."""

import math
from dataclasses import dataclass

from .._array import Array, as_real, namespace
from ._base import ConvexSet


@dataclass(frozen=True)
class Flat(ConvexSet):
    """The points of a set of matrices, row after row, as vectors along the last axis.

    Linear models have scores of this form.

    Args:
        matrices: a set such as :class:`Birkhoff`.
        shape: of its matrices.

    Example:
        >>> import numpy as np
        >>> from fitzpatrick.sets import Birkhoff
        >>> Flat(Birkhoff(), (2, 2)).project(np.asarray([0.9, 0.1, 0.3, 0.5])).round(3)
        array([0.75, 0.25, 0.25, 0.75])
    """

    matrices: ConvexSet
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        if self.matrices.n_axes != len(self.shape):
            raise ValueError(
                f"points of {self.matrices!r} have {self.matrices.n_axes} axes, "
                f"got shape={self.shape}"
            )

    @property
    def has_interior(self) -> bool:  # type: ignore[override]  # depends on the matrices
        return self.matrices.has_interior

    def unfold(self, x: Array) -> Array:
        """Vectors (…, n · m) as matrices (…, n, m)."""
        if x.shape[-1] != math.prod(self.shape):
            raise ValueError(
                f"rows of {x.shape[-1]} entries are no matrices of shape {self.shape}; they need "
                f"{math.prod(self.shape)}"
            )
        return namespace(x).reshape(x, (*x.shape[:-1], *self.shape))

    def fold(self, x: Array) -> Array:
        """Matrices as vectors."""
        leading = tuple(x.shape[: x.ndim - len(self.shape)])
        return namespace(x).reshape(x, (*leading, math.prod(self.shape)))

    def project(self, x: Array) -> Array:
        return self.fold(self.matrices.project(self.unfold(as_real(x, "x"))))

    def maximize(self, theta: Array) -> Array:
        return self.fold(self.matrices.maximize(self.unfold(as_real(theta, "theta"))))

    def contains(self, x: Array) -> Array:
        return self.matrices.contains(self.unfold(as_real(x, "x")))

    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        return self.matrices.normal_gap(self.unfold(y), self.unfold(p), self.unfold(normal))

    def project_derivative(self, x: Array, v: Array) -> Array:
        return self.fold(self.matrices.project_derivative(self.unfold(x), self.unfold(v)))

    def maximize_derivative(self, theta: Array, v: Array) -> Array:
        return self.fold(self.matrices.maximize_derivative(self.unfold(theta), self.unfold(v)))

    def same_face(self, y: Array, z: Array) -> Array:
        return self.matrices.same_face(self.unfold(y), self.unfold(z))

    def violation(self, row: Array) -> str:
        return self.matrices.violation(self.unfold(row))
