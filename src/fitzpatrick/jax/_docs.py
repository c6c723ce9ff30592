"""Docstrings of the generated functions, from the loss and the docstring of its regulariser."""

import inspect

from ..losses import FitzpatrickLoss, Loss
from ..regularizers import Regularizer
from ..sets import Simplex

__all__ = ["describe_link", "describe_loss"]

_FITZPATRICK = r"""Fitzpatrick loss of ``{omega!r}``, one value per example.

.. math:: L_F(y, \theta) = F[\partial\Omega](y, \theta) - \langle y, \theta\rangle,
          \qquad \nabla_\theta L_F(y, \theta) = y^\star(y, \theta) - y,

where y* attains the supremum in the Fitzpatrick function F. Never negative, 0 exactly where the
targets are the link of the scores, and never above the Fenchel-Young loss.
"""

_FENCHEL_YOUNG = r"""Fenchel-Young loss of ``{omega!r}``, one value per example.

.. math:: L_{{FY}}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
          \qquad \nabla_\theta L_{{FY}}(y, \theta) = \hat y(\theta) - y.

Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included.
"""

_ARGUMENTS = """
About Ω: {about}

Args:
    scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
        precision is computed in float32. A score of −∞ removes a class whose target is 0.
    {second}
    axis: the axis of the classes.
    where: boolean, broadcast to the shape of scores; classes that are False are left out,
        {left_out}

Returns:
    The losses, of the shape of scores without ``axis``, in the dtype of scores.
"""

_TARGETS = """targets: y, of the shape of scores, points of ``{domain!r}``{sum_to_one};
        their values are not checked. Derivatives in the targets hold along directions that stay
        in the domain; where Ω is infinitely steep (entropies at 0) they are infinite."""

_LABELS = """labels: integers, the shape of scores without ``axis``, the class that has all of y. A
        label outside 0..k-1 makes the loss of its example NaN, with gradient 0."""

_LEFT_OUT = """as by a score of −∞: the loss is infinite if one of them has a positive target. An
        example without a class left has the loss 0."""

_LINK = r"""Link of ``{omega!r}``: the predictions that belong to scores.

.. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
          = \operatorname{{argmax}}_y \langle y, \theta\rangle - \Omega(y).

About Ω: {about}

Args:
    scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half
        precision is computed in float32.
    axis: the axis of the classes.
    where: boolean, broadcast to the shape of scores; classes that are False are predicted as 0.

Returns:
    Predictions of the shape and dtype of scores.
"""


def _about(regularizer: Regularizer) -> str:
    """What the regulariser's docstring says before its arguments and examples."""
    text = inspect.getdoc(type(regularizer)) or ""
    for section in ("Args:", "Example:"):
        text = text.split(f"\n{section}")[0]
    return text.strip()


def describe_loss(loss: Loss, *, integer_labels: bool) -> str:
    """Docstring of a loss function."""
    omega = loss.regularizer
    on_simplex = isinstance(omega.domain, Simplex)
    head = _FITZPATRICK if isinstance(loss, FitzpatrickLoss) else _FENCHEL_YOUNG
    targets = _TARGETS.format(
        domain=omega.domain, sum_to_one=", proportions that sum to one" if on_simplex else ""
    )
    arguments = _ARGUMENTS.format(
        about=_about(omega),
        second=_LABELS if integer_labels else targets,
        left_out=_LEFT_OUT if on_simplex else "with their targets.",
    )
    return head.format(omega=omega) + arguments.replace(" \n", "\n")


def describe_link(regularizer: Regularizer) -> str:
    """Docstring of a link function."""
    return _LINK.format(omega=regularizer, about=_about(regularizer))
