"""α-entmax with an order that may be traced and differentiated, one for all rows or for each."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from .._array import coupled_product, is_concrete
from .._validation import check_order
from ..losses import FitzpatrickLoss, Loss
from ..regularizers import Tsallis
from ..regularizers.tsallis import entmax_alpha_slope, entmax_link, entmax_slope
from ._arguments import Scores, as_scores, as_static_tightness
from ._evaluate import loss_at_labels, loss_at_targets

__all__ = ["entmax", "entmax_loss", "entmax_loss_with_integer_labels"]

_ANY_ORDER = Tsallis()  # all orders have one domain


@jax.custom_jvp
def _entmax_rows(theta: jax.Array, alpha: jax.Array) -> jax.Array:
    out: jax.Array = entmax_link(theta, alpha)
    return out


@_entmax_rows.defjvp
def _entmax_rows_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    theta, alpha = primals
    theta_dot, alpha_dot = tangents
    p = _entmax_rows(theta, alpha)
    along_theta = coupled_product(entmax_slope(p, alpha), theta_dot)
    return p, along_theta + entmax_alpha_slope(p, alpha) * alpha_dot


def _as_orders(alpha: ArrayLike, scores: Scores) -> jax.Array:
    """An order for each row, of shape (…, 1); NaN for one that is out of range and traced."""
    orders = jnp.asarray(alpha)
    if not jnp.issubdtype(orders.dtype, jnp.number) or jnp.iscomplexobj(orders):
        raise TypeError(f"alpha must be a number from 1 to 2, or an array, got {orders.dtype}")
    shape = list(scores.given.shape)
    shape[scores.axis] = 1
    try:
        rows = jnp.broadcast_to(orders.astype(scores.theta.dtype), shape)
    except ValueError as error:
        raise ValueError(
            f"alpha of shape {orders.shape} does not broadcast to {tuple(shape)}, one order for "
            f"each row of scores along axis {scores.axis}"
        ) from error
    is_inside = (orders >= 1) & (orders <= 2)
    if is_concrete(orders) and not bool(jnp.all(is_inside)):
        raise ValueError(f"alpha must be between 1 and 2, got {orders}")
    rows = jnp.moveaxis(rows, scores.axis, -1)
    return jnp.where((rows >= 1) & (rows <= 2), rows, jnp.nan)


def entmax(
    scores: ArrayLike, alpha: ArrayLike = 1.5, axis: int = -1, where: ArrayLike | None = None
) -> jax.Array:
    r"""α-entmax: the link of ``Tsallis(alpha)``, sparse for α > 1.

    .. math:: \hat y(\theta) = \operatorname{argmax}_{y \in \triangle}\;
              \langle y, \theta\rangle - \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i),

    the soft argmax for α = 1 and :func:`sparsemax` for α = 2.

    Args:
        scores: θ, floating-point; the classes along ``axis``. Half precision is computed in
            float32.
        alpha: numbers from 1 to 2 that broadcast to scores, with one for all classes of a row. They
            may be traced, and differentiated; a traced one that is out of range gives NaN.
        axis: the axis of the classes.
        where: boolean, broadcast to scores; classes that are False are predicted as 0.

    Returns:
        The predictions, in the shape and dtype of the scores.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax
        >>> scores = jnp.asarray([1.0, 0.5, -3.0])
        >>> print(jnp.array_str(entmax(scores, 1.5), precision=4))
        [0.674 0.326 0.   ]
        >>> slope = jax.grad(lambda alpha: entmax(scores, alpha)[0])(1.5)
        >>> round(float(slope), 3)
        0.124
    """
    checked = as_scores(scores, axis, where, _ANY_ORDER)
    p = _entmax_rows(checked.theta, _as_orders(alpha, checked))
    if checked.mask is not None:
        p = jnp.where(checked.mask, p, 0)
    return checked.restore(jnp.moveaxis(p, -1, checked.axis))


def _static_loss(alpha: Any, tightness: Any) -> Loss:
    if isinstance(alpha, jax.Array):
        raise TypeError(
            "alpha of a loss must be a Python number, since its formulas depend on it: mark it "
            "static, as in jax.jit(f, static_argnames='alpha'), or close over it"
        )
    return FitzpatrickLoss(Tsallis(check_order(alpha)), as_static_tightness(tightness))


def entmax_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    alpha: float = 1.5,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 0.0,
) -> jax.Array:
    """Loss of ``Tsallis(alpha)``, at targets; its link is :func:`entmax`.

    Args:
        scores: θ.
        targets: y, of the shape of scores.
        alpha: a Python number from 1 to 2: the logistic loss at 1, the sparsemax loss at 2.
        axis: this and ``where`` are explained in :func:`fitzpatrick_logistic_loss`.
        where: likewise.
        tightness: 0 for the Fenchel-Young loss, 1 for the Fitzpatrick loss.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(entmax_loss(scores, targets, 1.3, tightness=1.0)), 4)
        0.0784
    """
    return loss_at_targets(_static_loss(alpha, tightness), scores, targets, axis, where)


def entmax_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    alpha: float = 1.5,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 0.0,
) -> jax.Array:
    """The same at class labels.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax_loss_with_integer_labels
        >>> round(float(entmax_loss_with_integer_labels(jnp.asarray([1.0, 0.0, -1.0]), 1, 1.3)), 4)
        1.1357
    """
    return loss_at_labels(_static_loss(alpha, tightness), scores, labels, axis, where)
