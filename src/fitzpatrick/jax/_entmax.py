"""Links with a parameter that may be traced and differentiated, one for all rows or for each.

These are α-entmax, α-normmax and sparsemax with a budget; and what their losses are made of.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._array import coupled_product, eps, is_concrete
from .._validation import check_order
from ..losses import FenchelYoungLoss, FitzpatrickLoss, Loss
from ..regularizers import Tsallis
from ..regularizers.norm import Norm, normmax_alpha_slope, normmax_link, normmax_product
from ..regularizers.tsallis import entmax_alpha_slope, entmax_link, entmax_slope
from ..sets.budget import budget_product, budget_slope, project_to_budget
from ._arguments import Scores, as_scores, as_static, as_static_tightness

__all__ = ["budget", "entmax", "normmax"]

_ANY_ORDER = Tsallis()  # all orders have one domain
_WHY_STATIC = "The formulas of a loss depend on it; those of a link do not"
# Predictions p, J v from p, and ∂p/∂parameter from p.
_FORMULAS: dict[str, tuple[Any, Any, Any]] = {
    "entmax": (
        entmax_link,
        lambda p, v, alpha: coupled_product(entmax_slope(p, alpha), v),
        entmax_alpha_slope,
    ),
    "normmax": (normmax_link, normmax_product, normmax_alpha_slope),
    "budget": (
        project_to_budget,
        lambda p, v, _: budget_product(p, v),
        lambda p, _: budget_slope(p),
    ),
}


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _rows(kind: str, theta: Array, parameter: Array) -> Array:
    out: Array = _FORMULAS[kind][0](theta, parameter)
    return out


@_rows.defjvp
def _rows_jvp(kind: str, primals: Any, tangents: Any) -> tuple[Array, Array]:
    _, product, slope = _FORMULAS[kind]
    p = _rows(kind, *primals)
    return p, product(p, tangents[0], primals[1]) + slope(p, primals[1]) * tangents[1]


def _as_parameter(value: ArrayLike, name: str, low: float, high: float, scores: Scores) -> Array:
    """A number for each row, of shape (…, 1); NaN for one that is out of range and traced."""
    numbers = jnp.asarray(value)
    if not jnp.issubdtype(numbers.dtype, jnp.number) or jnp.iscomplexobj(numbers):
        raise TypeError(
            f"{name} must be a number from {low:g} to {high:g}, or an array, got {numbers.dtype}"
        )
    shape = list(scores.given.shape)
    shape[scores.axis] = 1
    try:
        rows = jnp.broadcast_to(numbers.astype(scores.theta.dtype), shape)
    except ValueError as error:
        raise ValueError(
            f"{name} of shape {numbers.shape} does not broadcast to {tuple(shape)}, one for each "
            f"row of scores along axis {scores.axis}"
        ) from error
    is_inside = (numbers >= low) & (numbers <= high)
    if is_concrete(numbers) and not bool(jnp.all(is_inside)):
        raise ValueError(f"{name} must be between {low:g} and {high:g}, got {numbers}")
    rows = jnp.moveaxis(rows, scores.axis, -1)
    return jnp.where((rows >= low) & (rows <= high), rows, jnp.nan)


def _link(kind: str, checked: Scores, parameter: Array) -> Array:
    theta = checked.theta
    if checked.mask is not None:  # a row without a class has no prediction, nor derivatives
        theta = jnp.where(jnp.any(checked.mask, axis=-1, keepdims=True), theta, 0)
    return checked.restore_rows(_rows(kind, theta, parameter))


def entmax(
    scores: ArrayLike, alpha: ArrayLike = 1.5, axis: int = -1, where: ArrayLike | None = None
) -> Array:
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
    return _link("entmax", checked, _as_parameter(alpha, "alpha", 1, 2, checked))


def normmax(
    scores: ArrayLike, alpha: ArrayLike = 2.0, axis: int = -1, where: ArrayLike | None = None
) -> Array:
    r"""α-normmax: the link of the norm :math:`\|y\|_\alpha` on the simplex, for α > 1.

    The arguments are explained in :func:`entmax`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import normmax
        >>> print(jnp.array_str(normmax(jnp.asarray([0.5, 0.25, -1.0])), precision=4))
        [0.5898 0.4102 0.    ]
    """
    checked = as_scores(scores, axis, where, _ANY_ORDER)
    above_one = 1 + eps(checked.theta)
    return _link("normmax", checked, _as_parameter(alpha, "alpha", above_one, jnp.inf, checked))


def budget(
    scores: ArrayLike, budget: ArrayLike = 2.0, axis: int = -1, where: ArrayLike | None = None
) -> Array:
    r"""Sparsemax with a budget: the point of :math:`[0, 1]^k` that sums to it and is nearest.

    Where fewer classes than the budget are left, each of them is 1. The other arguments are
    explained in :func:`entmax`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import budget
        >>> print(jnp.array_str(budget(jnp.asarray([2.0, 0.9, 0.6, -1.0]), 2.0), precision=4))
        [1.   0.65 0.35 0.  ]
    """
    checked = as_scores(scores, axis, where, _ANY_ORDER)
    k = checked.theta.shape[-1]
    return _link("budget", checked, _as_parameter(budget, "budget", 0, k, checked))


def entmax_of(alpha: Any, tightness: Any) -> Loss:
    """The loss of a Tsallis entropy whose order JAX does not trace."""
    order = check_order(as_static(alpha, "alpha", _WHY_STATIC))
    return FitzpatrickLoss(Tsallis(order), as_static_tightness(tightness))


def normmax_of(alpha: Any) -> Loss:
    """The Fenchel-Young loss of a norm whose order JAX does not trace."""
    return FenchelYoungLoss(Norm(as_static(alpha, "alpha", _WHY_STATIC)))
