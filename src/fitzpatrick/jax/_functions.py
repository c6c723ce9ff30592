"""The losses and links of the registry, as functions of scores and targets."""

from jax import Array
from jax.typing import ArrayLike

from ..losses import get_loss
from ._arguments import as_static_tightness
from ._entmax import entmax_of, normmax_of
from ._evaluate import link_at, loss_at_labels, loss_at_targets, probabilities_at
from ._sparse_targets import SparseTargets


def fitzpatrick_logistic_loss(
    scores: ArrayLike,
    targets: ArrayLike | SparseTargets,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss :func:`logistic_loss` at c = 0.
    It is never negative, 0 exactly where the target is the link ŷ(θ), convex in θ, and the lower
    the larger c is. Up to c = 1 it is convex in y, too.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. On the simplex a score of −∞ removes a class.
        targets: y, of the shape of scores, points of the domain of Ω, or
            :class:`~fitzpatrick.jax.SparseTargets`, which list classes. Their values are not
            checked. Derivatives in the targets hold along directions that stay in the domain; at a
            target of 0 they are infinite where the slope of Ω is, unless c = 1.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores. Classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target, and 0 if no
            class is left. Separate entries are left out with their targets.
        tightness: c, a number, finite and not negative. Under ``jax.jit`` it is a constant: mark it
            static or close over it. It is chosen, not learned: the loss decreases in c.

    Returns:
        One loss per example, in the dtype of scores and in their shape without ``axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_logistic_loss
        >>> scores, targets = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray([0.5, 0.5, 0.0])
        >>> round(float(fitzpatrick_logistic_loss(scores, targets)), 4)
        0.0974
    """
    return loss_at_targets(
        get_loss("fitzpatrick_logistic", as_static_tightness(tightness)),
        scores,
        targets,
        axis,
        where,
    )


def fitzpatrick_logistic_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at labels.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss :func:`logistic_loss` at c = 0.
    It is never negative, 0 exactly where the target is the link ŷ(θ), convex in θ, and the lower
    the larger c is. Up to c = 1 it is convex in y, too.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. On the simplex a score of −∞ removes a class.
        labels: integers, the shape of scores without ``axis``: the class that has all of y. A label
            outside 0..k-1 makes the loss of its example NaN, with gradient 0.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores. Classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target, and 0 if no
            class is left. Separate entries are left out with their targets.
        tightness: c, a number, finite and not negative. Under ``jax.jit`` it is a constant: mark it
            static or close over it. It is chosen, not learned: the loss decreases in c.

    Returns:
        One loss per example, in the dtype of scores and in their shape without ``axis``.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_logistic_loss_with_integer_labels
        >>> scores, labels = jnp.asarray([1.0, 0.0, -1.0]), jnp.asarray(1)
        >>> round(float(fitzpatrick_logistic_loss_with_integer_labels(scores, labels)), 4)
        0.6143
    """
    return loss_at_labels(
        get_loss("fitzpatrick_logistic", as_static_tightness(tightness)),
        scores,
        labels,
        axis,
        where,
    )


# Everything below is written by tools/write_front_ends.py: change that and run it again.
# fmt: off

__all__ = [
    "entmax15",
    "entmax15_loss",
    "entmax15_loss_with_integer_labels",
    "entmax15_probabilities",
    "entmax_loss",
    "entmax_loss_with_integer_labels",
    "fitzpatrick_entmax15_loss",
    "fitzpatrick_entmax15_loss_with_integer_labels",
    "fitzpatrick_entmax15_probabilities",
    "fitzpatrick_entmax_loss",
    "fitzpatrick_entmax_loss_with_integer_labels",
    "fitzpatrick_logistic_loss",
    "fitzpatrick_logistic_loss_with_integer_labels",
    "fitzpatrick_logistic_probabilities",
    "fitzpatrick_poisson_loss",
    "fitzpatrick_sigmoid_loss",
    "fitzpatrick_sigmoid_probabilities",
    "fitzpatrick_sparse_sigmoid_loss",
    "fitzpatrick_sparse_sigmoid_probabilities",
    "fitzpatrick_sparsemax_loss",
    "fitzpatrick_sparsemax_loss_with_integer_labels",
    "fitzpatrick_sparsemax_probabilities",
    "fitzpatrick_squared_loss",
    "logistic",
    "logistic_loss",
    "logistic_loss_with_integer_labels",
    "logistic_probabilities",
    "normmax_loss",
    "normmax_loss_with_integer_labels",
    "perceptron",
    "perceptron_loss",
    "perceptron_loss_with_integer_labels",
    "poisson",
    "poisson_loss",
    "sigmoid",
    "sigmoid_loss",
    "sigmoid_probabilities",
    "softmax",
    "sparse_sigmoid",
    "sparse_sigmoid_loss",
    "sparse_sigmoid_probabilities",
    "sparsemax",
    "sparsemax_loss",
    "sparsemax_loss_with_integer_labels",
    "sparsemax_probabilities",
    "squared",
    "squared_loss",
]


def entmax15_loss(
    scores: ArrayLike, targets: ArrayLike | SparseTargets, axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("entmax15")
    return loss_at_targets(loss, scores, targets, axis, where)


def entmax15_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    loss = get_loss("entmax15")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_entmax15_loss(
    scores: ArrayLike, targets: ArrayLike | SparseTargets, axis: int = -1,
    where: ArrayLike | None = None, *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_entmax15_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None, *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at labels.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_poisson_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None, *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`poisson`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("fitzpatrick_poisson", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None, *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Bernoulli()``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`sigmoid`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("fitzpatrick_sigmoid", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparse_sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None, *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`sparse_sigmoid`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("fitzpatrick_sparse_sigmoid", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparsemax_loss(
    scores: ArrayLike, targets: ArrayLike | SparseTargets, axis: int = -1,
    where: ArrayLike | None = None, *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparsemax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None, *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at labels.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_squared_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None, *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``, at targets.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`squared`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("fitzpatrick_squared", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def logistic_loss(
    scores: ArrayLike, targets: ArrayLike | SparseTargets, axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`logistic`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("logistic")
    return loss_at_targets(loss, scores, targets, axis, where)


def logistic_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`logistic`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    loss = get_loss("logistic")
    return loss_at_labels(loss, scores, labels, axis, where)


def perceptron_loss(
    scores: ArrayLike, targets: ArrayLike | SparseTargets, axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`perceptron`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("perceptron")
    return loss_at_targets(loss, scores, targets, axis, where)


def perceptron_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`perceptron`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    loss = get_loss("perceptron")
    return loss_at_labels(loss, scores, labels, axis, where)


def poisson_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`poisson`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("poisson")
    return loss_at_targets(loss, scores, targets, axis, where)


def sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Bernoulli()``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sigmoid`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("sigmoid")
    return loss_at_targets(loss, scores, targets, axis, where)


def sparse_sigmoid_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sparse_sigmoid`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("sparse_sigmoid")
    return loss_at_targets(loss, scores, targets, axis, where)


def sparsemax_loss(
    scores: ArrayLike, targets: ArrayLike | SparseTargets, axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("sparsemax")
    return loss_at_targets(loss, scores, targets, axis, where)


def sparsemax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at labels.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    loss = get_loss("sparsemax")
    return loss_at_labels(loss, scores, labels, axis, where)


def squared_loss(
    scores: ArrayLike, targets: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``, at targets.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`squared`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    loss = get_loss("squared")
    return loss_at_targets(loss, scores, targets, axis, where)


def entmax_loss(
    scores: ArrayLike, targets: ArrayLike, alpha: float = 1.5, axis: int = -1,
    where: ArrayLike | None = None, *, tightness: float = 0.0,
) -> Array:
    r"""Loss of ``Tsallis(alpha)``, at targets; its link is :func:`entmax`.

    ``alpha`` is a number from 1 to 2: logistic losses at 1, sparsemax losses at 2.
    The tightness is 0 for the Fenchel-Young loss and 1 for the Fitzpatrick loss.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return loss_at_targets(entmax_of(alpha, tightness), scores, targets, axis, where)


def entmax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, alpha: float = 1.5, axis: int = -1,
    where: ArrayLike | None = None, *, tightness: float = 0.0,
) -> Array:
    r"""Loss of ``Tsallis(alpha)``, at labels; its link is :func:`entmax`.

    ``alpha`` is a number from 1 to 2: logistic losses at 1, sparsemax losses at 2.
    The tightness is 0 for the Fenchel-Young loss and 1 for the Fitzpatrick loss.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    return loss_at_labels(entmax_of(alpha, tightness), scores, labels, axis, where)


def fitzpatrick_entmax_loss(
    scores: ArrayLike, targets: ArrayLike, alpha: float = 1.5, axis: int = -1,
    where: ArrayLike | None = None, *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha)``, at targets; its link is :func:`entmax`.

    ``alpha`` is a number from 1 to 2: logistic losses at 1, sparsemax losses at 2.
    The tightness is 0 for the Fenchel-Young loss and 1 for the Fitzpatrick loss.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return loss_at_targets(entmax_of(alpha, tightness), scores, targets, axis, where)


def fitzpatrick_entmax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, alpha: float = 1.5, axis: int = -1,
    where: ArrayLike | None = None, *, tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha)``, at labels; its link is :func:`entmax`.

    ``alpha`` is a number from 1 to 2: logistic losses at 1, sparsemax losses at 2.
    The tightness is 0 for the Fenchel-Young loss and 1 for the Fitzpatrick loss.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    return loss_at_labels(entmax_of(alpha, tightness), scores, labels, axis, where)


def normmax_loss(
    scores: ArrayLike, targets: ArrayLike, alpha: float = 2.0, axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Norm(alpha)``, at targets; its link is :func:`normmax`.

    The norm is :math:`\|y\|_\alpha`, and ``alpha`` a number above 1.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return loss_at_targets(normmax_of(alpha), scores, targets, axis, where)


def normmax_loss_with_integer_labels(
    scores: ArrayLike, labels: ArrayLike, alpha: float = 2.0, axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Norm(alpha)``, at labels; its link is :func:`normmax`.

    The norm is :math:`\|y\|_\alpha`, and ``alpha`` a number above 1.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss_with_integer_labels`.
    """
    return loss_at_labels(normmax_of(alpha), scores, labels, axis, where)


def squared(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Reals())``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("squared"), scores, axis, where)


def perceptron(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Indicator(domain=Simplex())``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("perceptron"), scores, axis, where)


def logistic(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Negentropy(domain=Simplex())``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("logistic"), scores, axis, where)


def sparsemax(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Simplex())``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("sparsemax"), scores, axis, where)


def entmax15(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Tsallis(alpha=1.5)``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("entmax15"), scores, axis, where)


def sigmoid(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Bernoulli()``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("sigmoid"), scores, axis, where)


def sparse_sigmoid(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("sparse_sigmoid"), scores, axis, where)


def poisson(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Negentropy(domain=Orthant())``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("poisson"), scores, axis, where)


def entmax15_probabilities(
    scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Class probabilities that belong to scores of :func:`entmax15_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`entmax15` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("entmax15")
    return probabilities_at(loss, scores, axis, where)


def fitzpatrick_entmax15_probabilities(
    scores: ArrayLike, tightness: float = 1.0, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Class probabilities that belong to scores of :func:`fitzpatrick_entmax15_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`entmax15` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return probabilities_at(loss, scores, axis, where)


def fitzpatrick_logistic_probabilities(
    scores: ArrayLike, tightness: float = 1.0, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Class probabilities that belong to scores of :func:`fitzpatrick_logistic_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`logistic` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("fitzpatrick_logistic", as_static_tightness(tightness))
    return probabilities_at(loss, scores, axis, where)


def fitzpatrick_sigmoid_probabilities(
    scores: ArrayLike, tightness: float = 1.0, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Probabilities of entries that belong to scores of :func:`fitzpatrick_sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sigmoid` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("fitzpatrick_sigmoid", as_static_tightness(tightness))
    return probabilities_at(loss, scores, axis, where)


def fitzpatrick_sparse_sigmoid_probabilities(
    scores: ArrayLike, tightness: float = 1.0, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Probabilities of entries that belong to scores of :func:`fitzpatrick_sparse_sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparse_sigmoid` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("fitzpatrick_sparse_sigmoid", as_static_tightness(tightness))
    return probabilities_at(loss, scores, axis, where)


def fitzpatrick_sparsemax_probabilities(
    scores: ArrayLike, tightness: float = 1.0, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Class probabilities that belong to scores of :func:`fitzpatrick_sparsemax_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparsemax` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return probabilities_at(loss, scores, axis, where)


def logistic_probabilities(
    scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Class probabilities that belong to scores of :func:`logistic_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`logistic` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("logistic")
    return probabilities_at(loss, scores, axis, where)


def sigmoid_probabilities(
    scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Probabilities of entries that belong to scores of :func:`sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sigmoid` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("sigmoid")
    return probabilities_at(loss, scores, axis, where)


def sparse_sigmoid_probabilities(
    scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Probabilities of entries that belong to scores of :func:`sparse_sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparse_sigmoid` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("sparse_sigmoid")
    return probabilities_at(loss, scores, axis, where)


def sparsemax_probabilities(
    scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None,
) -> Array:
    r"""Class probabilities that belong to scores of :func:`sparsemax_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparsemax` is theirs at 0. Along
    ``axis``, differentiable, in the dtype of the scores.
    """
    loss = get_loss("sparsemax")
    return probabilities_at(loss, scores, axis, where)


softmax = logistic
