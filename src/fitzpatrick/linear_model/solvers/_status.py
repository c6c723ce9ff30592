"""How a solver ended, and where."""

import math
from dataclasses import dataclass, replace
from enum import Enum

from .._objective import Point

MAX_HIDDEN = 0.01  # of the gradient norm at zero: larger gradients are not hidden by rounding


class Status(Enum):
    """How a fit ended; the value is a sentence for the user."""

    CONVERGED = "the gradient is as small as tol asks"
    ZERO = "the objective is zero, which no coefficients can improve"
    PRECISION = "floating-point arithmetic cannot tell the objective here from a lower one"
    SWITCHED = "Newton steps made no more progress, and L-BFGS reached what tol asks"
    MAX_ITER = "max_iter was reached before the gradient was as small as tol asks"
    STALLED = "no lower point was found along the search direction, by a kink or by rounding"

    @property
    def converged(self) -> bool:
        """True if the coefficients are what was asked for, or as good as the dtype allows."""
        return self not in (Status.MAX_ITER, Status.STALLED)


@dataclass(frozen=True)
class Stopping:
    r"""When a solver may end.

    The gradient has to be small against that at zero. Where the minimum is small against the
    objective at zero, as on separable data with a weak penalty, that says little, and a second
    condition matters: f is alpha-strongly convex in what is penalized, so that without an intercept
    no point is lower than :math:`f - \|g\|^2 / (2\alpha)`, which is the value of the dual problem
    at the maximizers y*. This duality gap has to be at most :math:`\sqrt{\mathrm{tol}}` of f, with
    an intercept as without one; f itself is far nearer.

    Args:
        tol: what the gradient norm has to come down to, relative to ``reference``.
        reference: gradient norm at zero parameters.
        noise: gradient norms below this are rounding errors.
        max_iter: most iterations.
        eps: spacing of the floating-point numbers that the objective is computed in, at 1.
        cancellation: how much larger the numbers are that products add up than what they come to.
        alpha: strength of the penalty.
        patience: iterations without a clearly smaller gradient norm or objective that end a solver.
        avoids_kinks: True to end where jumps of the Hessian make Newton steps short.
    """

    tol: float
    reference: float
    noise: float
    max_iter: int
    eps: float
    cancellation: float = 1.0
    alpha: float = 0.0
    patience: int = 20
    avoids_kinks: bool = False

    def threshold(self, value: float) -> float:
        """The gradient norm that ends the iteration at an objective of ``value``."""
        wanted = self.tol * self.reference
        if self.alpha > 0:
            gap = math.sqrt(self.tol) * max(value, 0.0)
            wanted = min(wanted, math.sqrt(2 * self.alpha * gap))
        return max(wanted, 10 * self.eps * self.reference, self.noise)

    def reached(self, value: float, gradient_norm: float) -> Status | None:
        """The status of a point that nothing is left to do at, or None."""
        if gradient_norm <= self.threshold(value) and math.isfinite(gradient_norm):
            return Status.CONVERGED
        return Status.ZERO if value == 0 else None

    def without_progress(self, value: float, gradient_norm: float) -> Status:
        """The status of a point from which no lower one was found.

        Values of f are rounded at eps · f, and at more where large numbers cancel, which hides
        gradients of the order of the square root, if the duality gap is as small as it has to be.
        """
        root = math.sqrt(self.eps * self.cancellation)
        hidden = replace(self, tol=max(self.tol, min(10 * root, MAX_HIDDEN)))
        near = gradient_norm <= hidden.threshold(value)
        return Status.PRECISION if near else Status.STALLED


@dataclass(frozen=True, eq=False)
class Result:
    """Where a solver ended, and how."""

    point: Point
    n_iter: int
    status: Status
