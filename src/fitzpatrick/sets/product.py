"""Product sets: the reals, the non-negative orthant and boxes."""

import math
from dataclasses import dataclass

from ._base import ProductSet


@dataclass(frozen=True)
class Reals(ProductSet):
    r"""All vectors, :math:`\mathbb{R}^k`.

    Example:
        >>> import numpy as np
        >>> Reals().project(np.asarray([-1.0, 2.0]))
        array([-1.,  2.])
    """

    bounds = -math.inf, math.inf


@dataclass(frozen=True)
class Orthant(ProductSet):
    r"""Non-negative vectors, :math:`\mathbb{R}_+^k`.

    Example:
        >>> import numpy as np
        >>> Orthant().project(np.asarray([-1.0, 2.0]))
        array([0., 2.])
    """

    bounds = 0.0, math.inf


@dataclass(frozen=True)
class Box(ProductSet):
    r"""Vectors between two bounds, :math:`[\ell, u]^k`; the unit cube by default.

    Example:
        >>> import numpy as np
        >>> Box().project(np.asarray([-1.0, 0.3, 2.0]))
        array([0. , 0.3, 1. ])
        >>> Box(-1.0, 1.0).maximize(np.asarray([-0.5, 2.0]))
        array([-1.,  1.])
    """

    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        for bound in (self.lower, self.upper):
            if getattr(bound, "ndim", 0) or isinstance(bound, list | tuple):
                raise TypeError(
                    f"Box needs two numbers, the bounds of all entries, got {bound!r}; for bounds "
                    "of each entry's own write a subclass of fitzpatrick.sets.ConvexSet"
                )
        if not self.lower < self.upper:
            raise ValueError(f"Box needs lower < upper, got [{self.lower}, {self.upper}]")

    @property
    def bounds(self) -> tuple[float, float]:
        return self.lower, self.upper
