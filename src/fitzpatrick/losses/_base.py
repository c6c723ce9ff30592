r"""The two losses of a regulariser.

.. math::
    L_{FY}(y, \theta) &= \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle \\
    L_F(y, \theta) &= F[\partial\Omega](y, \theta) - \langle y, \theta\rangle

Both are zero exactly where y is the link of θ, convex in y and in θ, and their gradient in θ is
their maximiser minus y.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from .._array import Array, quiet
from .._validation import check_label_domain
from ..engines import evaluate
from ..regularizers import LabelSolution, Regularizer, Solution


@dataclass(frozen=True)
class Loss(ABC):
    """What both losses of a regulariser have in common.

    Targets ``y`` are dense rows, a SciPy sparse array, or integer labels where the domain is the
    simplex; scores ``theta`` have shape (n, k), or (k,) for a single pair. Results are arrays of
    the library, device and dtype of ``theta``.

    A score of −∞ masks its class: the probability is 0, and the loss finite where the target is 0,
    +∞ elsewhere. A NaN score, a score of +∞ on the simplex, and a row that is −∞ throughout have
    no answer: NaN, in their own row only.
    """

    regularizer: Regularizer

    # Which of the two losses of Ω a class is, so that an engine may know its formulas.
    is_fitzpatrick: ClassVar[bool | None] = None

    @abstractmethod
    def solve(self, y: Array, theta: Array) -> Solution:
        """The maximiser at arrays that have been checked; for code that brings its own checks."""

    @abstractmethod
    def solve_labels(self, labels: Array, theta: Array) -> LabelSolution:
        """The same at the hard labels of a simplex, of shape (…), without writing out y."""

    @quiet
    def value(self, y: Array, theta: Array, *, n_threads: int | None = None) -> Array:
        """The loss of each row, shape (n,); non-negative, 0 exactly at y = link(θ)."""
        return evaluate(self, y, theta, n_threads).value()

    def __call__(self, y: Array, theta: Array) -> Array:
        """The same as :meth:`value`."""
        return self.value(y, theta)

    @quiet
    def gradient(self, y: Array, theta: Array, *, n_threads: int | None = None) -> Array:
        """Gradient in θ, shape (n, k): y_star(y, θ) − y."""
        return evaluate(self, y, theta, n_threads).gradient()

    @quiet
    def value_and_gradient(
        self,
        y: Array,
        theta: Array,
        *,
        out: tuple[Array, Array] | None = None,
        n_threads: int | None = None,
    ) -> tuple[Array, Array]:
        """The loss of each row and its gradient in θ.

        Args:
            y: targets.
            theta: scores.
            out: NumPy arrays of shapes (n,) and (n, k) to write the two results into.
            n_threads: how many threads to use for NumPy scores, by default one per core. The
                results do not depend on it.
        """
        return evaluate(self, y, theta, n_threads).value_and_gradient(out)

    @quiet
    def hessian_product(
        self,
        y: Array,
        theta: Array,
        v: Array,
        *,
        out: Array | None = None,
        n_threads: int | None = None,
    ) -> Array:
        """Hessian of the loss in θ, applied to the rows of ``v``, shape (n, k).

        Args:
            y: targets.
            theta: scores.
            v: what the Hessian is applied to.
            out: NumPy array of shape (n, k) to write the result into; it may be ``v`` itself.
            n_threads: how many threads to use for NumPy scores, by default one per core.
        """
        return evaluate(self, y, theta, n_threads).hessian_product(v, out)

    @quiet
    def y_star(self, y: Array, theta: Array, *, n_threads: int | None = None) -> Array:
        """The maximiser that the gradient is made of, shape (n, k)."""
        return evaluate(self, y, theta, n_threads).y_star()

    def link(self, theta: Array) -> Array:
        """The predictions ŷ(θ) that belong to the scores, shape (n, k)."""
        return self.regularizer.link(theta)


@dataclass(frozen=True)
class FenchelYoungLoss(Loss):
    r"""Fenchel-Young loss :math:`\Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle`.

    Its maximiser is the link itself: the gradient is :math:`\hat y(\theta) - y`.

    Args:
        regularizer: Ω.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> loss = FenchelYoungLoss(fp.regularizers.Negentropy())
        >>> loss.gradient(np.asarray([1.0, 0.0]), np.asarray([0.0, 0.0]))
        array([-0.5,  0.5])
        >>> loss.value(np.asarray([0, 1]), np.zeros((2, 4)))  # integer labels: log 4
        array([1.38629436, 1.38629436])
    """

    is_fitzpatrick: ClassVar[bool | None] = False

    def solve(self, y: Array, theta: Array) -> Solution:
        return self.regularizer.solve_fenchel_young(y, theta)

    def solve_labels(self, labels: Array, theta: Array) -> LabelSolution:
        check_label_domain(self.regularizer.domain)
        return self.regularizer.solve_fenchel_young_labels(labels, theta)


@dataclass(frozen=True)
class FitzpatrickLoss(Loss):
    r"""Fitzpatrick loss :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle`.

    With the same link as the Fenchel-Young loss of Ω, and tighter:
    :math:`0 \le L_F \le L_{FY}`. Its gradient is :math:`y^\star(y, \theta) - y`, where
    :math:`y^\star` attains the supremum in the Fitzpatrick function
    :math:`F[\partial\Omega](y, \theta) = \sup_{\theta' \in \partial\Omega(y')}
    \langle y - y', \theta'\rangle + \langle y', \theta\rangle`.

    Args:
        regularizer: Ω.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> loss = FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.Simplex()))
        >>> y, theta = np.asarray([0.5, 0.5, 0.0]), np.asarray([1.5, 0.5, 0.0])
        >>> loss.y_star(y, theta)
        array([0.75, 0.25, 0.  ])
        >>> loss.value(y, theta)
        np.float64(0.125)
        >>> fp.FenchelYoungLoss(loss.regularizer).value(y, theta)
        np.float64(0.25)
    """

    is_fitzpatrick: ClassVar[bool | None] = True

    def solve(self, y: Array, theta: Array) -> Solution:
        return self.regularizer.solve_fitzpatrick(y, theta)

    def solve_labels(self, labels: Array, theta: Array) -> LabelSolution:
        check_label_domain(self.regularizer.domain)
        return self.regularizer.solve_fitzpatrick_labels(labels, theta)
