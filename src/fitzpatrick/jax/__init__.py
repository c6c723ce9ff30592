r"""Losses for JAX in optax's conventions: pure functions that jit, vmap and differentiate.

Every name of the registry is here three ways, for instance ``sparsemax``:

- ``sparsemax_loss(scores, targets, axis=-1, where=None)`` and ``fitzpatrick_sparsemax_loss``: one
  loss per example, without a reduction;
- ``sparsemax_loss_with_integer_labels(scores, labels, axis=-1, where=None)``, for losses on the
  simplex: the same at hard labels, without a one-hot array;
- ``sparsemax(scores, axis=-1, where=None)``: the link that both losses share. It has the plain
  name of the Fenchel-Young loss: ``logistic`` (also as ``softmax``), ``sparsemax``, ``entmax15``,
  ``sigmoid``, ``sparse_sigmoid``, ``poisson`` (the exponential), ``squared`` (the identity) and
  ``perceptron`` (the argmax as a one-hot vector).

:func:`make_fitzpatrick_loss` and :func:`make_fenchel_young_loss` do the same for a regulariser of
your own.

Gradients are maximiser minus target and Hessians come from the maximiser's Jacobian, neither from
differentiating an iteration. Losses are differentiable in the targets too, for distillation and
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

from collections.abc import Callable
from typing import TYPE_CHECKING

try:
    import jax as _jax
except ImportError as error:
    raise ImportError(
        "fitzpatrick.jax needs JAX, which is not installed; install it with "
        "pip install 'fitzpatrick[jax]'"
    ) from error

from ..losses import FenchelYoungLoss, get_loss, loss_names
from ..sets import Simplex
from ._factory import (
    LinkFunction,
    LossFunction,
    loss_function,
    make_fenchel_young_loss,
    make_fitzpatrick_loss,
    make_link,
)

# Fenchel-Young name → the name under which its link is known.
_LINK_ALIASES = {"logistic": "softmax"}


def _registry_functions() -> dict[str, LossFunction | LinkFunction]:
    """Every loss of the registry, with its labels and its link, under their public names."""
    functions: dict[str, LossFunction | LinkFunction] = {}
    for name in loss_names():
        loss = get_loss(name)
        functions[f"{name}_loss"] = loss_function(loss, f"{name}_loss")
        if isinstance(loss.regularizer.domain, Simplex):
            on_labels = f"{name}_loss_with_integer_labels"
            functions[on_labels] = loss_function(loss, on_labels, integer_labels=True)
        if isinstance(loss, FenchelYoungLoss):
            functions[name] = make_link(loss.regularizer, name)
    for name, alias in _LINK_ALIASES.items():
        functions[alias] = functions[name]
    for function in functions.values():
        function.__module__ = __name__
    return functions


_FUNCTIONS = _registry_functions()
globals().update(_FUNCTIONS)

__all__ = ["LinkFunction", "LossFunction", "make_fenchel_young_loss", "make_fitzpatrick_loss"]
__all__ += sorted(_FUNCTIONS)

if TYPE_CHECKING:
    # the generated names, for type checkers
    def __getattr__(name: str) -> Callable[..., _jax.Array]: ...
