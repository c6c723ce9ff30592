"""The losses and links of the registry, as functions of scores and targets.

Written by tools/write_jax.py: change that script and run it again, not this file.
"""

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
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        targets: y, of the shape of scores, points of ``Reals()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import squared_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = squared_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.75  0.625]
    """
    loss = get_loss("squared")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_squared_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        targets: y, of the shape of scores, points of ``Reals()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_squared_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_squared_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.375  0.3125]
        >>> losses = fitzpatrick_squared_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.5    0.4167]
    """
    loss = get_loss("fitzpatrick_squared", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def squared(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``SquaredNorm(domain=Reals())``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import squared
        >>> predictions = squared(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[ 1.   0.  -1. ]
         [ 0.5  2.   0. ]]
    """
    return link_at(get_loss("squared"), scores, axis, where)


def perceptron_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Indicator of a convex set, :math:`\Omega = \iota_C`: 0 on C, +∞ elsewhere.

    - Link: a maximizer of :math:`\langle y', \theta\rangle` over C (set-valued at ties, where the
      oracle of the set chooses).
    - At every tightness the loss is the perceptron loss
      :math:`\max_{y' \in C} \langle y' - y, \theta\rangle` (paper: the Fitzpatrick loss of an
      indicator is its Fenchel-Young loss).

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import perceptron_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = perceptron_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.5 0. ]
    """
    loss = get_loss("perceptron")
    return loss_at_targets(loss, scores, targets, axis, where)


def perceptron_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Indicator of a convex set, :math:`\Omega = \iota_C`: 0 on C, +∞ elsewhere.

    - Link: a maximizer of :math:`\langle y', \theta\rangle` over C (set-valued at ties, where the
      oracle of the set chooses).
    - At every tightness the loss is the perceptron loss
      :math:`\max_{y' \in C} \langle y' - y, \theta\rangle` (paper: the Fitzpatrick loss of an
      indicator is its Fenchel-Young loss).

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        labels: integers, the shape of scores without ``axis``: the class that has all of y. A label
            outside 0..k-1 makes the loss of its example NaN, with gradient 0.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import perceptron_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = perceptron_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0. 2.]
    """
    loss = get_loss("perceptron")
    return loss_at_labels(loss, scores, labels, axis, where)


def perceptron(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Indicator(domain=Simplex())``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Indicator of a convex set, :math:`\Omega = \iota_C`: 0 on C, +∞ elsewhere.

    - Link: a maximizer of :math:`\langle y', \theta\rangle` over C (set-valued at ties, where the
      oracle of the set chooses).
    - At every tightness the loss is the perceptron loss
      :math:`\max_{y' \in C} \langle y' - y, \theta\rangle` (paper: the Fitzpatrick loss of an
      indicator is its Fenchel-Young loss).

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import perceptron
        >>> predictions = perceptron(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[1. 0. 0.]
         [0. 1. 0.]]
    """
    return link_at(get_loss("perceptron"), scores, axis, where)


def logistic_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain; at a target of
            0 they are infinite, as the slope of Ω is.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import logistic_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = logistic_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.2145 0.3064]
    """
    loss = get_loss("logistic")
    return loss_at_targets(loss, scores, targets, axis, where)


def logistic_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        labels: integers, the shape of scores without ``axis``: the class that has all of y. A label
            outside 0..k-1 makes the loss of its example NaN, with gradient 0.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import logistic_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = logistic_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.4076 2.3064]
    """
    loss = get_loss("logistic")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_logistic_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain; at a target of
            0 they are infinite, as the slope of Ω is, unless c = 1.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_logistic_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_logistic_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.0974 0.1173]
        >>> losses = fitzpatrick_logistic_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1391 0.1884]
    """
    loss = get_loss("fitzpatrick_logistic", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_logistic_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

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
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_logistic_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = fitzpatrick_logistic_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1581 1.1032]
        >>> losses = fitzpatrick_logistic_loss_with_integer_labels(scores, labels, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.2519 1.5548]
    """
    loss = get_loss("fitzpatrick_logistic", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def logistic(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Negentropy(domain=Simplex())``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import logistic
        >>> predictions = logistic(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[0.6652 0.2447 0.09  ]
         [0.1643 0.7361 0.0996]]
    """
    return link_at(get_loss("logistic"), scores, axis, where)


softmax = logistic


def sparsemax_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparsemax_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = sparsemax_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.25 0.  ]
    """
    loss = get_loss("sparsemax")
    return loss_at_targets(loss, scores, targets, axis, where)


def sparsemax_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        labels: integers, the shape of scores without ``axis``: the class that has all of y. A label
            outside 0..k-1 makes the loss of its example NaN, with gradient 0.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparsemax_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = sparsemax_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0. 2.]
    """
    loss = get_loss("sparsemax")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_sparsemax_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sparsemax_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_sparsemax_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.125 0.   ]
        >>> losses = fitzpatrick_sparsemax_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1667 0.    ]
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparsemax_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

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
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sparsemax_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = fitzpatrick_sparsemax_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.    1.125]
        >>> losses = fitzpatrick_sparsemax_loss_with_integer_labels(scores, labels, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.  1.5]
    """
    loss = get_loss("fitzpatrick_sparsemax", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def sparsemax(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``SquaredNorm(domain=Simplex())``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparsemax
        >>> predictions = sparsemax(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[1. 0. 0.]
         [0. 1. 0.]]
    """
    return link_at(get_loss("sparsemax"), scores, axis, where)


def entmax15_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ; for other α the results lose about 1/(α − 1) ulp as α
    approaches 1.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax15_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = entmax15_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1711 0.0088]
    """
    loss = get_loss("entmax15")
    return loss_at_targets(loss, scores, targets, axis, where)


def entmax15_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ; for other α the results lose about 1/(α − 1) ulp as α
    approaches 1.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        labels: integers, the shape of scores without ``axis``: the class that has all of y. A label
            outside 0..k-1 makes the loss of its example NaN, with gradient 0.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax15_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = entmax15_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.0617 2.0088]
    """
    loss = get_loss("entmax15")
    return loss_at_labels(loss, scores, labels, axis, where)


def fitzpatrick_entmax15_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ; for other α the results lose about 1/(α − 1) ulp as α
    approaches 1.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Simplex()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, as by
            a score of −∞: the loss is infinite if one of them has a positive target. An example
            without a class left has the loss 0.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_entmax15_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_entmax15_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.087 0.004]
        >>> losses = fitzpatrick_entmax15_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1151 0.0057]
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_entmax15_loss_with_integer_labels(
    scores: ArrayLike,
    labels: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ; for other α the results lose about 1/(α − 1) ulp as α
    approaches 1.

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
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_entmax15_loss_with_integer_labels
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> labels = jnp.asarray([0, 2])
        >>> losses = fitzpatrick_entmax15_loss_with_integer_labels(scores, labels)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.0282 1.0469]
        >>> losses = fitzpatrick_entmax15_loss_with_integer_labels(scores, labels, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.0399 1.391 ]
    """
    loss = get_loss("fitzpatrick_entmax15", as_static_tightness(tightness))
    return loss_at_labels(loss, scores, labels, axis, where)


def entmax15(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Tsallis(alpha=1.5)``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Negative Tsallis entropy on the simplex, :math:`1 \le \alpha \le 2`.

    .. math:: \Omega(y) = \frac{1}{\alpha(\alpha - 1)} \sum_i (y_i^\alpha - y_i).

    The link is α-entmax: the soft argmax for α = 1 (where Ω is the negentropy), the sparse argmax
    for α = 2 (where Ω is half the squared norm, less the constant ½). Predictions are sparse for
    α > 1. α = 1.5 is in closed form up to τ; for other α the results lose about 1/(α − 1) ulp as α
    approaches 1.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import entmax15
        >>> predictions = entmax15(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[0.8307 0.1693 0.    ]
         [0.0504 0.9496 0.    ]]
    """
    return link_at(get_loss("entmax15"), scores, axis, where)


def sigmoid_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Bernoulli()``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Negative entropy of one coin per label, on the unit cube.

    :math:`\Omega(y) = \sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`, with the sigmoid as link and the
    binary cross-entropy, less the entropy of y, as Fenchel-Young loss. The Fitzpatrick loss of a
    hard label is :math:`\omega(\mp\theta - 1)`, the two-class case of the Fitzpatrick logistic
    loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Box(lower=0.0, upper=1.0)``. Their values
            are not checked. Derivatives in the targets hold along directions that stay in the
            domain; at a target of 0 they are infinite, as the slope of Ω is.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sigmoid_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = sigmoid_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.4334 1.7942]
    """
    loss = get_loss("sigmoid")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sigmoid_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Bernoulli()``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Negative entropy of one coin per label, on the unit cube.

    :math:`\Omega(y) = \sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`, with the sigmoid as link and the
    binary cross-entropy, less the entropy of y, as Fenchel-Young loss. The Fitzpatrick loss of a
    hard label is :math:`\omega(\mp\theta - 1)`, the two-class case of the Fitzpatrick logistic
    loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Box(lower=0.0, upper=1.0)``. Their values
            are not checked. Derivatives in the targets hold along directions that stay in the
            domain; at a target of 0 they are infinite, as the slope of Ω is, unless c = 1.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sigmoid_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_sigmoid_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1813 0.7306]
        >>> losses = fitzpatrick_sigmoid_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.2736 1.1296]
    """
    loss = get_loss("fitzpatrick_sigmoid", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def sigmoid(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Bernoulli()``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Negative entropy of one coin per label, on the unit cube.

    :math:`\Omega(y) = \sum_i y_i\log y_i + (1-y_i)\log(1-y_i)`, with the sigmoid as link and the
    binary cross-entropy, less the entropy of y, as Fenchel-Young loss. The Fitzpatrick loss of a
    hard label is :math:`\omega(\mp\theta - 1)`, the two-class case of the Fitzpatrick logistic
    loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sigmoid
        >>> predictions = sigmoid(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[0.7311 0.5    0.2689]
         [0.6225 0.8808 0.5   ]]
    """
    return link_at(get_loss("sigmoid"), scores, axis, where)


def sparse_sigmoid_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Box(lower=0.0, upper=1.0)``. Their values
            are not checked. Derivatives in the targets hold along directions that stay in the
            domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparse_sigmoid_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = sparse_sigmoid_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.25  0.125]
    """
    loss = get_loss("sparse_sigmoid")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_sparse_sigmoid_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Box(lower=0.0, upper=1.0)``. Their values
            are not checked. Derivatives in the targets hold along directions that stay in the
            domain.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_sparse_sigmoid_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_sparse_sigmoid_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.125  0.0625]
        >>> losses = fitzpatrick_sparse_sigmoid_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.1667 0.0833]
    """
    loss = get_loss("fitzpatrick_sparse_sigmoid", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def sparse_sigmoid(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Half the squared norm on a convex set, :math:`\Omega(y) = \tfrac12\|y\|^2 + \iota_C(y)`.

    - Link: the projection :math:`P_C(\theta)`.
    - Fenchel-Young loss: :math:`\tfrac12\|y - \theta\|^2 - \tfrac12\|P_C(\theta) - \theta\|^2`
      (squared, sparsemax, sparseMAP).
    - Fitzpatrick loss (paper, Fitzpatrick sparseMAP):
      :math:`\langle y^\star - y, \theta - y^\star\rangle` with
      :math:`y^\star = P_C((y + \theta)/2)`.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import sparse_sigmoid
        >>> predictions = sparse_sigmoid(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[1.  0.  0. ]
         [0.5 1.  0. ]]
    """
    return link_at(get_loss("sparse_sigmoid"), scores, axis, where)


def poisson_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``.

    .. math:: L_{FY}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L_{FY}(y, \theta) = \hat y(\theta) - y.

    Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Orthant()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain; at a target of
            0 they are infinite, as the slope of Ω is.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import poisson_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = poisson_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [1.893  7.0378]
    """
    loss = get_loss("poisson")
    return loss_at_targets(loss, scores, targets, axis, where)


def fitzpatrick_poisson_loss(
    scores: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
    *,
    tightness: float = 1.0,
) -> Array:
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``.

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                               + \langle y' - y, \theta\rangle,
              \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

    where y* attains the maximum and c is the tightness: the Fitzpatrick loss
    :math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
    loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
    decreasing in c.

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32. A score of −∞ removes a class whose target is 0.
        targets: y, of the shape of scores, points of ``Orthant()``. Their values are not checked.
            Derivatives in the targets hold along directions that stay in the domain; at a target of
            0 they are infinite, as the slope of Ω is, unless c = 1.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are left out, with
            their targets.
        tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant:
            mark it static or close over it.

    Returns:
        One loss per example: the shape of scores without ``axis``, in the dtype of scores.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import fitzpatrick_poisson_loss
        >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]])
        >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
        >>> losses = fitzpatrick_poisson_loss(scores, targets)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [0.8051 2.844 ]
        >>> losses = fitzpatrick_poisson_loss(scores, targets, tightness=0.5)
        >>> print(jnp.array_str(losses, precision=4, suppress_small=True))
        [1.1907 4.3643]
    """
    loss = get_loss("fitzpatrick_poisson", as_static_tightness(tightness))
    return loss_at_targets(loss, scores, targets, axis, where)


def poisson(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link of ``Negentropy(domain=Orthant())``.

    .. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
              = \operatorname{argmax}_y \langle y, \theta\rangle - \Omega(y).

    Negative Shannon entropy, on the simplex or on the non-negative orthant.

    On the simplex :math:`\Omega(y) = \sum_i y_i \log y_i`, with the soft argmax as link, the
    logistic loss as Fenchel-Young loss and the Fitzpatrick logistic loss (paper, Fitzpatrick
    logistic loss) :math:`L_F = \sum_i (y^\star_i - y_i)^2 / y^\star_i`, where
    :math:`y^\star_i = y_i / \omega(\lambda - \theta_i + \log y_i)` sums to one.

    On the orthant :math:`\Omega(y) = \sum_i y_i \log y_i - y_i`, with the exponential as link and
    the Poisson deviance (halved) as Fenchel-Young loss.

    Args:
        scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
            precision is computed in float32.
        axis: the axis of the classes.
        where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

    Returns:
        The predictions that belong to the scores, in their shape and dtype.

    Example:
        >>> import jax.numpy as jnp
        >>> from fitzpatrick.jax import poisson
        >>> predictions = poisson(jnp.asarray([[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]))
        >>> print(jnp.array_str(predictions, precision=4, suppress_small=True))
        [[2.7183 1.     0.3679]
         [1.6487 7.3891 1.    ]]
    """
    return link_at(get_loss("poisson"), scores, axis, where)
