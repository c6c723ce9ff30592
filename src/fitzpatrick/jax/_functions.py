"""The losses and links of the registry, as functions of scores and targets.

Written by tools/write_jax.py: change that script and run it again, not this file.
"""

# fmt: off

from jax import Array
from jax.typing import ArrayLike

from ..losses import get_loss
from ._arguments import as_static_tightness
from ._evaluate import link_at, loss_at_labels, loss_at_targets

__all__ = [
    "entmax15",
    "entmax15_loss",
    "entmax15_loss_with_integer_labels",
    "fitzpatrick_entmax15_loss",
    "fitzpatrick_entmax15_loss_with_integer_labels",
    "fitzpatrick_logistic_loss",
    "fitzpatrick_logistic_loss_with_integer_labels",
    "fitzpatrick_poisson_loss",
    "fitzpatrick_sigmoid_loss",
    "fitzpatrick_sparse_sigmoid_loss",
    "fitzpatrick_sparsemax_loss",
    "fitzpatrick_sparsemax_loss_with_integer_labels",
    "fitzpatrick_squared_loss",
    "logistic",
    "logistic_loss",
    "logistic_loss_with_integer_labels",
    "perceptron",
    "perceptron_loss",
    "perceptron_loss_with_integer_labels",
    "poisson",
    "poisson_loss",
    "sigmoid",
    "sigmoid_loss",
    "softmax",
    "sparse_sigmoid",
    "sparse_sigmoid_loss",
    "sparsemax",
    "sparsemax_loss",
    "sparsemax_loss_with_integer_labels",
    "squared",
    "squared_loss",
]


def squared_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import squared_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(squared_loss(scores, targets)), 4)
        0.75
    """
    loss = get_loss("squared")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_squared_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        targets: y, of the shape of scores, points of the domain of Ω. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example, in the dtype of scores and in their shape without ``axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_squared_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_squared_loss(scores, targets)), 4)
        0.375
    """
    loss = get_loss("fitzpatrick_squared", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def perceptron_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import perceptron_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(perceptron_loss(scores, targets)), 4)
        0.5
    """
    loss = get_loss("perceptron")
    return loss_at_targets(loss, scores, targets, axis, where)


def perceptron_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import perceptron_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(perceptron_loss_with_integer_labels(scores, labels)), 4)
        1.0
    """
    loss = get_loss("perceptron")
    return loss_at_labels(loss, scores, labels, axis, where)


def logistic_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    At a target of 0 derivatives in the targets are infinite, as the slope of Ω is.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import logistic_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(logistic_loss(scores, targets)), 4)
        0.2145
    """
    loss = get_loss("logistic")
    return loss_at_targets(loss, scores, targets, axis, where)


def logistic_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import logistic_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(logistic_loss_with_integer_labels(scores, labels)), 4)
        1.4076
    """
    loss = get_loss("logistic")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_logistic_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of the domain of Ω. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example, in the dtype of scores and in their shape without ``axis``.

    At a target of 0 derivatives in the targets are infinite, as the slope of Ω is, unless c = 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_logistic_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_logistic_loss(scores, targets)), 4)
        0.0974
    """
    loss = get_loss("fitzpatrick_logistic", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_logistic_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at labels.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        labels: integers, the shape of scores without ``axis``: the class that has all of y. A label
            outside 0..k-1 makes the loss of its example NaN, with gradient 0.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example, in the dtype of scores and in their shape without ``axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_logistic_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(fitzpatrick_logistic_loss_with_integer_labels(scores, labels)), 4)
        0.6143
    """
    loss = get_loss("fitzpatrick_logistic", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def sparsemax_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparsemax_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(sparsemax_loss(scores, targets)), 4)
        0.25
    """
    loss = get_loss("sparsemax")
    return loss_at_targets(loss, scores, targets, axis, where)


def sparsemax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparsemax_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(sparsemax_loss_with_integer_labels(scores, labels)), 4)
        1.0
    """
    loss = get_loss("sparsemax")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_sparsemax_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sparsemax_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_sparsemax_loss(scores, targets)), 4)
        0.125
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparsemax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at labels.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sparsemax_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(fitzpatrick_sparsemax_loss_with_integer_labels(scores, labels)), 4)
        0.5
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def entmax15_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax15_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(entmax15_loss(scores, targets)), 4)
        0.1711
    """
    loss = get_loss("entmax15")
    return loss_at_targets(loss, scores, targets, axis, where)


def entmax15_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax15_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(entmax15_loss_with_integer_labels(scores, labels)), 4)
        1.0617
    """
    loss = get_loss("entmax15")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_entmax15_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_entmax15_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_entmax15_loss(scores, targets)), 4)
        0.087
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_entmax15_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at labels.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_entmax15_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(fitzpatrick_entmax15_loss_with_integer_labels(scores, labels)), 4)
        0.5154
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Bernoulli()``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.
    At a target of 0 derivatives in the targets are infinite, as the slope of Ω is.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sigmoid_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(sigmoid_loss(scores, targets)), 4)
        0.4334
    """
    loss = get_loss("sigmoid")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Bernoulli()``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.
    At a target of 0 derivatives in the targets are infinite, as the slope of Ω is, unless c = 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sigmoid_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_sigmoid_loss(scores, targets)), 4)
        0.1813
    """
    loss = get_loss("fitzpatrick_sigmoid", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def sparse_sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparse_sigmoid_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(sparse_sigmoid_loss(scores, targets)), 4)
        0.25
    """
    loss = get_loss("sparse_sigmoid")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparse_sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sparse_sigmoid_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_sparse_sigmoid_loss(scores, targets)), 4)
        0.125
    """
    loss = get_loss("fitzpatrick_sparse_sigmoid", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def poisson_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.
    At a target of 0 derivatives in the targets are infinite, as the slope of Ω is.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import poisson_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(poisson_loss(scores, targets)), 4)
        1.893
    """
    loss = get_loss("poisson")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_poisson_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
    *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The arguments are explained in :func:`fitzpatrick_squared_loss`.
    At a target of 0 derivatives in the targets are infinite, as the slope of Ω is, unless c = 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_poisson_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_poisson_loss(scores, targets)), 4)
        0.8051
    """
    loss = get_loss("fitzpatrick_poisson", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def squared(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``SquaredNorm(domain=Reals())``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import squared
        >>> print(jnp.array_str(squared(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [ 1.  0. -1.]
    """
    return link_at(get_loss("squared"), scores, axis, where)


def perceptron(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Indicator(domain=Simplex())``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import perceptron
        >>> print(jnp.array_str(perceptron(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [1. 0. 0.]
    """
    return link_at(get_loss("perceptron"), scores, axis, where)


def logistic(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Negentropy(domain=Simplex())``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import logistic
        >>> print(jnp.array_str(logistic(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [0.6652 0.2447 0.09  ]
    """
    return link_at(get_loss("logistic"), scores, axis, where)


def sparsemax(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``SquaredNorm(domain=Simplex())``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparsemax
        >>> print(jnp.array_str(sparsemax(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [1. 0. 0.]
    """
    return link_at(get_loss("sparsemax"), scores, axis, where)


def entmax15(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Tsallis(alpha=1.5)``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax15
        >>> print(jnp.array_str(entmax15(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [0.8307 0.1693 0.    ]
    """
    return link_at(get_loss("entmax15"), scores, axis, where)


def sigmoid(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Bernoulli()``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sigmoid
        >>> print(jnp.array_str(sigmoid(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [0.7311 0.5    0.2689]
    """
    return link_at(get_loss("sigmoid"), scores, axis, where)


def sparse_sigmoid(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparse_sigmoid
        >>> print(jnp.array_str(sparse_sigmoid(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [1. 0. 0.]
    """
    return link_at(get_loss("sparse_sigmoid"), scores, axis, where)


def poisson(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Negentropy(domain=Orthant())``.

    .. math:: \hat y(\theta) = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y)

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import poisson
        >>> print(jnp.array_str(poisson(jnp.asarray([1.0, 0.0, -1.0])), precision=4))
        [2.7183 1.     0.3679]
    """
    return link_at(get_loss("poisson"), scores, axis, where)


softmax = logistic
