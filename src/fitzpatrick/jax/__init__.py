r"""Losses for JAX in optax's conventions: pure functions that jit, vmap and differentiate.

Every name of the registry is here three ways, for instance ``sparsemax``:

- ``sparsemax_loss(scores, targets, axis=-1, where=None)``: the Fenchel-Young loss of each example,
  without a reduction; and ``fitzpatrick_sparsemax_loss``, the Fitzpatrick loss, with the keyword
  ``tightness`` for the losses between the two (0 to 1) and beyond;
- ``sparsemax_loss_with_integer_labels(scores, labels, axis=-1, where=None)``, for losses on the
  simplex: the same at hard labels, without a one-hot array;
- ``sparsemax(scores, axis=-1, where=None)``: the link that both losses share. It has the plain
  name of the Fenchel-Young loss: ``logistic`` (also as ``softmax``), ``sparsemax``, ``entmax15``,
  ``sigmoid``, ``sparse_sigmoid``, ``poisson`` (the exponential), ``squared`` (the identity) and
  ``perceptron`` (the argmax as a one-hot vector).

:func:`make_fitzpatrick_loss`, :func:`make_fenchel_young_loss` and :func:`make_link` do the same for
a regularizer of your own. Losses on the simplex also take
:class:`~fitzpatrick.jax.SparseTargets`, which list the classes of an example, such as a teacher's
top k.

Gradients are maximizer minus target and Hessians come from the maximizer's Jacobian; neither
differentiates an iteration. Losses are differentiable in the targets too, for distillation and
learned targets: along directions that stay in the domain, such as those of a soft argmax.

Example:
    >>> import jax, jax.numpy as jnp
    >>> from fitzpatrick.jax import fitzpatrick_logistic_loss, sparsemax
    >>> scores = jnp.asarray([[1.0, 0.0, -1.0], [0.0, 0.0, 3.0]])
    >>> targets = jnp.asarray([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    >>> print(fitzpatrick_logistic_loss(scores, targets))
    [0.0974... 0.0353...]
    >>> objective = lambda scores: fitzpatrick_logistic_loss(scores, targets).mean()
    >>> print(jax.jit(jax.grad(objective))(scores).sum(axis=-1).round(6) + 0.0)
    [0. 0.]
    >>> print(sparsemax(scores))
    [[1. 0. 0.]
     [0. 0. 1.]]
"""

try:
    import jax as _jax  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fitzpatrick.jax needs JAX, which is not installed; install it with "
        "pip install 'fitzpatrick[jax]'"
    ) from error

from . import _entmax, _factory, _functions, _projections, _sparse_targets
from ._entmax import *  # noqa: F403 - all that its __all__ names
from ._factory import *  # noqa: F403
from ._functions import *  # noqa: F403
from ._projections import *  # noqa: F403
from ._sparse_targets import *  # noqa: F403

__all__ = _entmax.__all__ + _factory.__all__ + _functions.__all__
__all__ += _sparse_targets.__all__ + _projections.__all__
