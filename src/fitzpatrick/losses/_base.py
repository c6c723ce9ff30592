r"""The losses of a regularizer: one family with one number, the tightness c ≥ 0.

.. math::
    L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                     + \langle y' - y, \theta\rangle

They are the Fenchel-Young loss for c = 0 and the Fitzpatrick loss for c = 1.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import engines
from .._array import Array, namespace, quiet
from .._validation import Restore, as_order, as_scores, as_tightness, check_label_domain
from ..regularizers import Regularizer, Solution
from ..regularizers.chain import Chain


@dataclass(frozen=True, eq=False, repr=False)
class Loss:
    """The loss of a regularizer at one tightness.

    Targets ``y`` are dense rows, a SciPy sparse array, or integer labels where the domain is the
    simplex; scores ``theta`` have shape (n, k), or (k,) for a single pair. Results are arrays of
    the library, device and dtype of ``theta``.

    A score of −∞ masks its class: the probability is 0, and the loss finite where the target is 0,
    +∞ elsewhere. A NaN score, a score of +∞ on the simplex, and a row that is −∞ throughout have
    no answer: NaN, in their own row only.

    Losses of equal regularizer and tightness are equal.

    Args:
        regularizer: Ω.
        tightness: c, 0 or a number from 1e-12 to 1e6. The documented accuracy holds up to 100;
            beyond, relative errors grow in proportion to c.
    """

    regularizer: Regularizer
    tightness: float

    def __post_init__(self) -> None:
        if not isinstance(self.regularizer, Regularizer):
            raise TypeError(
                "regularizer must be an object such as fitzpatrick.regularizers.Negentropy(), "
                f"got {self.regularizer!r}; for the name of a loss use fitzpatrick.get_loss"
            )
        tightness = as_tightness(self.tightness, self.regularizer.max_tightness)
        object.__setattr__(self, "tightness", tightness)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Loss):
            return NotImplemented
        return self.tightness == other.tightness and self.regularizer == other.regularizer

    def __hash__(self) -> int:
        return hash((self.regularizer, self.tightness))

    def __repr__(self) -> str:
        return f"Loss(regularizer={self.regularizer!r}, tightness={self.tightness:g})"

    def solve(self, y: Array, theta: Array) -> Solution:
        """The maximizer at arrays that have been checked; for code that brings its own checks."""
        return self.regularizer.solve(y, theta, self.tightness)

    def solve_labels(self, labels: Array, theta: Array) -> Solution:
        """The maximizer at hard labels of a simplex, of shape (…), without writing out y."""
        check_label_domain(self.regularizer.domain)
        return self.regularizer.solve_labels(labels, theta, self.tightness)

    def _bind(
        self, y: Array, theta: Array, n_threads: int | None
    ) -> tuple[engines.BoundLoss, Array, Restore]:
        return engines.bind_pair(self.regularizer, self.tightness, y, theta, n_threads)

    @quiet
    def value(self, y: Array, theta: Array, *, n_threads: int | None = None) -> Array:
        """The loss of each row, shape (n,); non-negative, 0 exactly at y = link(θ)."""
        bound, theta, restore = self._bind(y, theta, n_threads)
        return restore(bound.value(theta))

    def __call__(self, y: Array, theta: Array) -> Array:
        """The loss of each row: :meth:`value`."""
        return self.value(y, theta)

    @quiet
    def gradient(self, y: Array, theta: Array, *, n_threads: int | None = None) -> Array:
        """Gradient in θ, shape (n, k): y_star(y, θ) − y."""
        bound, theta, restore = self._bind(y, theta, n_threads)
        return restore(bound.gradient(theta))

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
        bound, scores, restore = self._bind(y, theta, n_threads)
        if out is None:
            value, gradient = bound.value_and_gradient(scores)
            return restore(value), restore(gradient)
        given: Any = out  # by a user
        if not isinstance(given, tuple) or len(given) != 2:
            raise TypeError(
                "out must be a tuple of two arrays, one for the value and one for the gradient"
            )
        like = restore(scores)
        engines.check_buffer(out[0], "out[0]", tuple(scores.shape[:-1]), like, y)
        engines.check_buffer(out[1], "out[1]", tuple(like.shape), like, y)
        if np.may_share_memory(*out):
            raise ValueError("out[0] overlaps out[1]; give two separate arrays")
        if (like.dtype, like.shape) == (scores.dtype, scores.shape):
            return bound.value_and_gradient(scores, out)
        out[0][...], out[1][...] = map(restore, bound.value_and_gradient(scores))
        return out

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
        bound, scores, restore = self._bind(y, theta, n_threads)
        v, _ = as_scores(v, "v")
        like = restore(scores)
        if tuple(v.shape) != tuple(like.shape):
            raise ValueError(
                f"v must have the shape of theta, got {tuple(v.shape)} and {tuple(like.shape)}"
            )
        if namespace(v) is not namespace(scores):
            raise TypeError(
                "v and theta must come from one array library, "
                f"got {type(v).__name__} and {type(scores).__name__}"
            )
        if like.ndim > scores.ndim:  # matrices
            v = namespace(v).reshape(v, tuple(scores.shape))
        if out is None:
            return restore(bound.hessian_product(scores, v))
        engines.check_buffer(out, "out", tuple(like.shape), like, y)
        is_v = out.ctypes.data == v.ctypes.data and out.strides == v.strides
        if np.may_share_memory(out, v) and not is_v:
            raise ValueError("out overlaps v, which is still needed; give v or another array")
        if (like.dtype, like.shape) == (scores.dtype, scores.shape):
            return bound.hessian_product(scores, v, out)
        out[...] = restore(bound.hessian_product(scores, v))
        return out

    @quiet
    def y_star(self, y: Array, theta: Array, *, n_threads: int | None = None) -> Array:
        """The maximizer y*, shape (n, k): the gradient plus y."""
        bound, theta, restore = self._bind(y, theta, n_threads)
        return restore(bound.y_star(theta))

    @quiet
    def probabilities(self, theta: Array, *, n_threads: int | None = None) -> Array:
        """The class probabilities that belong to the scores, shape (n, k).

        Scores that minimize the expected loss over labels of a distribution q have the
        probabilities q, at every tightness; at tightness 0, and for the squared norm, that is the
        link. For the losses on [0, 1]ᵏ they are probabilities of each label by itself. Losses
        without labels, such as those of counts, raise a TypeError.
        """
        return engines.probabilities(self.regularizer, self.tightness, theta, n_threads)

    @quiet
    def link(self, theta: Array, *, n_threads: int | None = None) -> Array:
        """The predictions ŷ(θ) that belong to the scores, shape (n, k); the same for every c."""
        return engines.link(self.regularizer, theta, n_threads)


@dataclass(frozen=True, eq=False, repr=False)
class FenchelYoungLoss(Loss):
    r"""Fenchel-Young loss :math:`\Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle`.

    The loss of tightness 0. Its maximizer is the link itself: the gradient is
    :math:`\hat y(\theta) - y`.

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

    tightness: float = field(default=0.0, init=False)

    def __repr__(self) -> str:
        return f"FenchelYoungLoss(regularizer={self.regularizer!r})"


@dataclass(frozen=True, eq=False, repr=False)
class FitzpatrickLoss(Loss):
    r"""Fitzpatrick loss :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle`.

    With the same link as the Fenchel-Young loss of Ω, and tighter:
    :math:`0 \le L_F \le L_{FY}`. Its gradient is :math:`y^\star(y, \theta) - y`, where
    :math:`y^\star` attains the supremum in the Fitzpatrick function
    :math:`F[\partial\Omega](y, \theta) = \sup_{\theta' \in \partial\Omega(y')}
    \langle y - y', \theta'\rangle + \langle y', \theta\rangle`.

    The tightness c makes it one of a family, :math:`L_c = L_{FY}[\Omega + c\,D_\Omega(y, \cdot)]`:
    the Fenchel-Young loss at c = 0, the Fitzpatrick loss at c = 1, lower still beyond that. For
    every c the link is the same, the loss is convex in θ, and it is zero exactly where y is the
    link. For c ≤ 1 it is convex in y as well, and
    :math:`(1 - c) L_{FY} \le L_c \le (1 - c) L_{FY} + c\,L_F`.

    Args:
        regularizer: Ω.
        tightness: c, 0 or a number from 1e-12 to 1e6. The documented accuracy holds up to 100;
            beyond, relative errors grow in proportion to c.
        order: n, an integer from 2 on, or ``math.inf``, in place of a tightness. The supremum is
            then over chains of n points: order 2 is the Fitzpatrick loss, and the losses rise
            with n to the Fenchel-Young loss. For the squared norm order n is the tightness
            1/(n − 1), for entropies it is not. The cost grows with n³ for each score.

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
        >>> FitzpatrickLoss(loss.regularizer, tightness=0.5).value(y, theta).round(4)
        np.float64(0.1667)
    """

    tightness: float = 1.0
    order: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.order is not None and isinstance(self.regularizer, Regularizer):
            self._take_order(as_order(self.order))
        super().__post_init__()

    def _take_order(self, order: float) -> None:
        """Set the regularizer or the tightness that has the losses of this order."""
        omega = self.regularizer
        omega = omega.base if isinstance(omega, Chain) else omega  # in a copy of this loss
        is_tightness = order == 2 or order == math.inf or omega.order_is_tightness
        tightness = 1 / (order - 1) if is_tightness else 1.0
        if self.tightness not in (1.0, tightness):
            raise ValueError(
                "order and tightness exclude one another, got "
                f"order={self.order!r} and tightness={self.tightness!r}"
            )
        if not is_tightness:
            omega = Chain(omega, int(order))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "regularizer", omega)
        object.__setattr__(self, "tightness", tightness)

    def __repr__(self) -> str:
        omega = self.regularizer
        if self.order is not None:
            omega = omega.base if isinstance(omega, Chain) else omega
            return f"FitzpatrickLoss(regularizer={omega!r}, order={self.order:g})"
        tightness = "" if self.tightness == 1 else f", tightness={self.tightness:g}"
        return f"FitzpatrickLoss(regularizer={omega!r}{tightness})"
