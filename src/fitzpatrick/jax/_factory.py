"""Functions of scores and targets, made from a regulariser."""

from typing import Protocol

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..losses import FenchelYoungLoss, FitzpatrickLoss, Loss
from ..regularizers import Regularizer
from ..sets import Simplex
from . import _derivatives
from ._arguments import Scores, as_labels, as_scores, as_targets
from ._docs import describe_link, describe_loss

__all__ = [
    "LinkFunction",
    "LossFunction",
    "loss_function",
    "make_fenchel_young_loss",
    "make_fitzpatrick_loss",
    "make_link",
]


class LossFunction(Protocol):
    """``f(scores, targets, axis=-1, where=None)``: the loss of each example.

    The second argument is called ``labels`` where it holds these.
    """

    __name__: str
    __qualname__: str

    def __call__(
        self,
        scores: ArrayLike,
        targets: ArrayLike,
        /,
        axis: int = -1,
        where: ArrayLike | None = None,
    ) -> jax.Array: ...


class LinkFunction(Protocol):
    """``f(scores, axis=-1, where=None)``: the predictions that belong to the scores."""

    __name__: str
    __qualname__: str

    def __call__(
        self, scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None
    ) -> jax.Array: ...


def _finish(value: jax.Array, scores: Scores, loss: Loss) -> jax.Array:
    """The losses in the scores' dtype; 0 for an example that has no class left, as in optax."""
    if scores.mask is not None and isinstance(loss.regularizer.domain, Simplex):
        value = jnp.where(jnp.any(scores.mask, axis=-1), value, 0)
    return scores.restore(value)


def _on_targets(loss: Loss) -> LossFunction:
    def function(
        scores: ArrayLike,
        targets: ArrayLike,
        axis: int = -1,
        where: ArrayLike | None = None,
    ) -> jax.Array:
        checked = as_scores(scores, axis, where, loss.regularizer)
        y = as_targets(targets, checked, loss.regularizer)
        return _finish(_derivatives.value(loss, y, checked.theta), checked, loss)

    return function


def _on_labels(loss: Loss) -> LossFunction:
    def function(
        scores: ArrayLike,
        labels: ArrayLike,
        axis: int = -1,
        where: ArrayLike | None = None,
    ) -> jax.Array:
        checked = as_scores(scores, axis, where, loss.regularizer)
        index, in_range = as_labels(labels, checked)
        value = _derivatives.value(loss, index, checked.theta)
        return _finish(jnp.where(in_range, value, jnp.nan), checked, loss)

    return function


def loss_function(loss: Loss, name: str, *, integer_labels: bool = False) -> LossFunction:
    """The loss as a documented function of that name."""
    if not isinstance(loss.regularizer, Regularizer):
        raise TypeError(
            "regularizer must be an object such as fitzpatrick.regularizers.Negentropy(), "
            f"got {loss.regularizer!r}"
        )
    if integer_labels and not isinstance(loss.regularizer.domain, Simplex):
        raise ValueError(
            "integer labels are for losses on the simplex, this one has the domain "
            f"{loss.regularizer.domain!r}"
        )
    function = _on_labels(loss) if integer_labels else _on_targets(loss)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = describe_loss(loss, integer_labels=integer_labels)
    return function


def make_link(regularizer: Regularizer, name: str) -> LinkFunction:
    """The link of a regulariser as a documented function of that name."""
    loss = FenchelYoungLoss(regularizer)

    def function(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> jax.Array:
        checked = as_scores(scores, axis, where, regularizer)
        # the maximiser of a Fenchel-Young loss does not depend on the targets
        y = jnp.zeros_like(checked.theta)
        _, p = _derivatives.value_and_maximizer(loss, y, checked.theta)
        if checked.mask is not None:
            p = jnp.where(checked.mask, p, 0)
        return checked.restore(jnp.moveaxis(p, -1, checked.axis))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = describe_link(regularizer)
    return function


def make_fitzpatrick_loss(
    regularizer: Regularizer, *, integer_labels: bool = False
) -> LossFunction:
    r"""The Fitzpatrick loss of any regulariser, as a function of scores and targets.

    .. math:: L_F(y, \theta) = F[\partial\Omega](y, \theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_F(y, \theta) = y^\star(y, \theta) - y.

    Args:
        regularizer: Ω. One that holds arrays or callables (``Quadratic``,
            ``TwiceDifferentiable``) must hold those of JAX.
        integer_labels: whether the function takes class labels in place of targets; for
            regularisers on the simplex.

    Returns:
        ``f(scores, targets, axis=-1, where=None)``, one loss per example, with all derivatives.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import fitzpatrick as fp
        >>> loss = make_fitzpatrick_loss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
        >>> scores, targets = jnp.asarray([3.0, 4.0]), jnp.asarray([0.0, 1.0])
        >>> print(jax.grad(loss)(scores, targets).round(3))
        [ 0.514 -0.143]
    """
    return loss_function(
        FitzpatrickLoss(regularizer), "fitzpatrick_loss", integer_labels=integer_labels
    )


def make_fenchel_young_loss(
    regularizer: Regularizer, *, integer_labels: bool = False
) -> LossFunction:
    r"""The Fenchel-Young loss of any regulariser, as a function of scores and targets.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Ω(y) is included: the loss is never negative, and 0 exactly at y = ŷ(θ).

    Args:
        regularizer: Ω, as in :func:`make_fitzpatrick_loss`.
        integer_labels: whether the function takes class labels in place of targets; for
            regularisers on the simplex.

    Returns:
        ``f(scores, targets, axis=-1, where=None)``, one loss per example, with all derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> import fitzpatrick as fp
        >>> loss = make_fenchel_young_loss(fp.regularizers.Tsallis(1.5), integer_labels=True)
        >>> print(loss(jnp.asarray([[0.0, 1.0], [4.0, 0.0]]), jnp.asarray([0, 0])))
        [1.061... 0.       ]
    """
    return loss_function(
        FenchelYoungLoss(regularizer), "fenchel_young_loss", integer_labels=integer_labels
    )
