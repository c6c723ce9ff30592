"""How a solver ended, and where."""

import math
from dataclasses import dataclass
from enum import Enum

from ..._array import Array


class Status(Enum):
    """The value is the sentence a user reads."""

    CONVERGED = "the gradient is as small as tol asks"
    ZERO = "the objective is zero, which no coefficients can improve"
    PRECISION = "floating-point arithmetic cannot tell the objective here from a lower one"
    SWITCHED = "Newton steps stalled at kinks of the loss, and L-BFGS reached what tol asks"
    MAX_ITER = "max_iter was reached before the gradient was as small as tol asks"
    STALLED = "no lower point was found along the search direction: the loss has a kink here"

    @property
    def converged(self) -> bool:
        """Whether the coefficients are what was asked for, or as good as the dtype allows."""
        return self not in (Status.MAX_ITER, Status.STALLED)


@dataclass(frozen=True)
class Stopping:
    """When a solver may end.

    Args:
        tol: what the gradient norm has to come down to, relative to ``reference``.
        reference: gradient norm at zero parameters.
        max_iter: most iterations.
        eps: spacing of the floating-point numbers that the objective is computed in, at 1.
    """

    tol: float
    reference: float
    max_iter: int
    eps: float

    @property
    def threshold(self) -> float:
        """The gradient norm that ends the iteration."""
        return max(self.tol, 10 * self.eps) * self.reference

    def reached(self, value: float, gradient_norm: float) -> Status | None:
        """The status of a point that nothing is left to do at, or None."""
        if gradient_norm <= self.threshold:
            return Status.CONVERGED
        return Status.ZERO if value == 0 else None

    def without_progress(self, gradient_norm: float) -> Status:
        """The status of a point from which no lower one was found.

        Values of f are rounded at eps · f, which hides gradients of the order of the square root.
        """
        near = gradient_norm <= 10 * math.sqrt(self.eps) * self.reference
        return Status.PRECISION if near else Status.STALLED


@dataclass(frozen=True, eq=False)
class Result:
    """The last point of a solver: parameters of shape (p, k), objective and gradient norm."""

    parameters: Array
    objective: float
    gradient_norm: float
    n_iter: int
    status: Status
