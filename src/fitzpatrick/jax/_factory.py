"""Functions of scores and targets, made from a regularizer of your own."""

import functools
from typing import Protocol

import jax
from jax.typing import ArrayLike

from ..losses import FenchelYoungLoss, FitzpatrickLoss, Loss
from ..regularizers import Regularizer
from ._arguments import as_static_tightness
from ._evaluate import link_at, loss_at_labels, loss_at_targets

__all__ = [
    "LinkFunction",
    "LossFunction",
    "make_fenchel_young_loss",
    "make_fitzpatrick_loss",
    "make_link",
]


class LossFunction(Protocol):
    """``f(scores, targets, axis=-1, where=None)``: the loss of each example.

    The second argument is called ``labels`` where it holds class labels.
    """

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

    def __call__(
        self, scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None
    ) -> jax.Array: ...


def _loss_function(loss: Loss, integer_labels: bool) -> LossFunction:
    if not integer_labels:
        return functools.partial(loss_at_targets, loss)
    domain = loss.regularizer.domain
    if not domain.has_labels:
        raise ValueError(
            f"integer labels are for losses on the simplex, this one has the domain {domain!r}; "
            "leave integer_labels out and give targets of the shape of the scores"
        )
    return functools.partial(loss_at_labels, loss)


def make_fitzpatrick_loss(
    regularizer: Regularizer, tightness: float = 1.0, *, integer_labels: bool = False
) -> LossFunction:
    r"""The Fitzpatrick loss of any regularizer, as a function of scores and targets.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum: the Fitzpatrick loss at the tightness c = 1, the Fenchel-Young
    loss at c = 0.

    Args:
        regularizer: Ω. One that holds arrays or callables (``Quadratic``,
            ``TwiceDifferentiable``) must hold those of JAX.
        tightness: c, a Python number, finite and not negative.
        integer_labels: True if the function takes class labels in place of targets; for
            regularizers on the simplex.

    Returns:
        ``f(scores, targets, axis=-1, where=None)``, one loss per example, with all derivatives.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import fitzpatrick as fp
        >>> from fitzpatrick.jax import make_fitzpatrick_loss
        >>> loss = make_fitzpatrick_loss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
        >>> scores, targets = jnp.asarray([3.0, 4.0]), jnp.asarray([0.0, 1.0])
        >>> print(jax.grad(loss)(scores, targets).round(3))
        [ 0.514 -0.143]
    """
    loss = FitzpatrickLoss(regularizer, as_static_tightness(tightness))
    return _loss_function(loss, integer_labels)


def make_fenchel_young_loss(
    regularizer: Regularizer, *, integer_labels: bool = False
) -> LossFunction:
    r"""The Fenchel-Young loss of any regularizer, as a function of scores and targets.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Ω(y) is included: the loss is never negative, and 0 exactly at y = ŷ(θ).

    Args:
        regularizer: Ω, as in :func:`make_fitzpatrick_loss`.
        integer_labels: True if the function takes class labels in place of targets; for
            regularizers on the simplex.

    Returns:
        ``f(scores, targets, axis=-1, where=None)``, one loss per example, with all derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> import fitzpatrick as fp
        >>> from fitzpatrick.jax import make_fenchel_young_loss
        >>> loss = make_fenchel_young_loss(fp.regularizers.Tsallis(1.5), integer_labels=True)
        >>> print(loss(jnp.asarray([[0.0, 1.0], [4.0, 0.0]]), jnp.asarray([0, 0])))
        [1.061... 0.       ]
    """
    loss = FenchelYoungLoss(regularizer)
    return _loss_function(loss, integer_labels)


def make_link(regularizer: Regularizer) -> LinkFunction:
    r"""The link that all losses of a regularizer share, as a function of scores.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Args:
        regularizer: Ω, as in :func:`make_fitzpatrick_loss`.

    Returns:
        ``f(scores, axis=-1, where=None)``, predictions of the shape and dtype of the scores.

    Example:
        >>> import jax.numpy as jnp
        >>> import fitzpatrick as fp
        >>> from fitzpatrick.jax import make_link
        >>> link = make_link(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
        >>> print(link(jnp.asarray([3.0, 4.0])))
        [0.6 0.8]
    """
    return functools.partial(link_at, FenchelYoungLoss(regularizer))
