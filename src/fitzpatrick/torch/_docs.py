r"""Docstrings of the generated functions and modules, from the loss itself.

Their examples show numbers of the core, and are run as tests of the functions and modules.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..losses import FenchelYoungLoss, Loss
from ..regularizers import Regularizer
from ._losses import Kind, has_coins, kind_of

__all__ = ["describe_function", "describe_link", "describe_module"]

_FENCHEL_YOUNG = r"""Fenchel-Young loss of ``{omega!r}``, {how}.

.. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
          \qquad \nabla_\theta L = \hat y(\theta) - y,

for scores θ and targets y. It is never negative, and 0 exactly where the target is the link ŷ(θ).
"""

_FITZPATRICK = r"""Fitzpatrick loss of ``{omega!r}``, {how}.

.. math:: L(y, \theta) = \sup_{{\theta' \in \partial\Omega(y')}} \langle y - y', \theta' - \theta
          \rangle, \qquad \nabla_\theta L = y^\star(y, \theta) - y,

for scores θ and targets y, where y* attains the supremum. It is never negative, 0 exactly where the
target is the link ŷ(θ), and never above the Fenchel-Young loss.
"""

_HOW = {
    Kind.CLASSES: "on the simplex, with the options of ``cross_entropy``",
    Kind.ENTRIES: "entry by entry, with the options of ``binary_cross_entropy_with_logits``",
    Kind.ROWS: "vector by vector",
}

_TENSORS = {
    Kind.CLASSES: """\
    input: scores; classes in axis 1 (axis 0 of a vector), or in ``dim``. Half precision is computed
        in float32. A class with the score −∞ is masked.
    target: class indices, with the shape of ``input`` without its classes, or proportions, with the
        shape of ``input``.
""",
    Kind.ENTRIES: """\
    input: scores, of any shape. Half precision is computed in float32.
    target: numbers in ``{domain!r}``, with the shape of ``input``.
""",
    Kind.ROWS: """\
    input: scores, vectors along ``dim``. Half precision is computed in float32.
    target: vectors of ``{domain!r}``, with the shape of ``input``.
""",
}

_OPTIONS = {
    Kind.CLASSES: """\
    weight: one weight per class. A class index weighs its class's weight, a row of proportions
        ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are as
        in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
        ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
    ignore_index: class index that counts for nothing; proportions have none.
    reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
        proportions), ``"sum"`` or ``"none"``.
    label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
    dim: axis of the classes.
    engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for the
        faster one that is there.
    validate: whether to look at the targets' values: labels in range, proportions that sum to one.
        None looks on the CPU alone, since a GPU would have to wait. What is not looked at is not
        repaired: a label out of range makes its row NaN.
""",
    Kind.ENTRIES: """\
    weight: weights that can be broadcast to ``input``.
    reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
{pos_weight}    engine: ``"reference"`` or None; there are no kernels for this loss.
    validate: whether to look at the targets' values; None looks on the CPU alone.
""",
    Kind.ROWS: """\
    reduction: ``"mean"`` (over vectors), ``"sum"`` or ``"none"``.
    dim: axis of the vectors.
    engine: ``"reference"`` or None; there are no kernels for this loss.
    validate: whether to look at the targets' values; None looks on the CPU alone.
""",
}

_POS_WEIGHT = """\
    pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
        pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of the
        target pos_weight · y / (pos_weight · y + 1 − y).
"""

_RETURNS = {
    Kind.CLASSES: """\
    The loss, in the dtype of ``input``, differentiable twice in it, and in a ``weight`` that leaves
    the target as it is. Smoothed targets and proportions count Ω(target), which ``cross_entropy``
    leaves out.
""",
    Kind.ENTRIES: """\
    The loss, in the dtype of ``input``, differentiable twice in it. It counts Ω(target), a constant
    that ``binary_cross_entropy_with_logits`` leaves out for targets between 0 and 1.
""",
    Kind.ROWS: """\
    The loss, in the dtype of ``input``, differentiable twice in it.
""",
}

_FUNCTION_EXAMPLE = """
Example:
    >>> import torch
    >>> from fitzpatrick.torch import functional as F
    >>> scores = torch.tensor([{scores}])
    >>> round(F.{function}(scores, torch.tensor({target})).item(), 4)
    {value}
"""

_MODULE_EXAMPLE = """
Example:
    >>> import torch
    >>> from fitzpatrick.torch import {module}
    >>> criterion = {module}()
    >>> scores = torch.tensor([{scores}], requires_grad=True)
    >>> loss = criterion(scores, torch.tensor({target}))
    >>> round(loss.item(), 4)
    {value}
    >>> loss.backward()
    >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
    {gradient}
"""

_LINK = """Link of ``{omega!r}``: the predictions ŷ(input) = ∇Ω*(input).

Args:
    input: scores. Half precision is computed in float32.
    dim: axis of the classes.

Returns:
    A tensor like ``input``, differentiable once.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import functional as F
    >>> [round(p, 4) for p in F.{name}(torch.tensor({scores})).tolist()]
    {link}
"""


@dataclass(frozen=True)
class _Example:
    """One row of scores and a target, as they are printed, with what the core says about them."""

    scores: list[float]
    target: Any
    value: float
    gradient: list[float]


def _rounded(x: Any) -> list[float]:
    # adding zero makes −0 a 0, as rounding in another precision may
    return [round(float(entry), 4) + 0.0 for entry in x]


def _example(loss: Loss) -> _Example:
    """The mean loss of one row."""
    kind = kind_of(loss)
    scores = [0.5, 0.25, -1.0]
    target: Any = [1] if kind is Kind.CLASSES else [[1.0, 0.0, 0.0]]
    value, gradient = loss.value_and_gradient(np.asarray(target), np.asarray([scores]))
    count = len(scores) if kind is Kind.ENTRIES else 1
    return _Example(
        scores, target, round(float(value[0]) / count, 4), _rounded(gradient[0] / count)
    )


def _head(loss: Loss) -> str:
    head = _FENCHEL_YOUNG if isinstance(loss, FenchelYoungLoss) else _FITZPATRICK
    return head.format(omega=loss.regularizer, how=_HOW[kind_of(loss)])


def _options(loss: Loss) -> str:
    return _OPTIONS[kind_of(loss)].format(pos_weight=_POS_WEIGHT if has_coins(loss) else "")


def describe_function(loss: Loss, name: str) -> str:
    """The docstring of the function ``name`` of a loss."""
    kind, example = kind_of(loss), _example(loss)
    tensors = _TENSORS[kind].format(domain=loss.regularizer.domain)
    arguments = f"\nArgs:\n{tensors}{_options(loss)}\nReturns:\n{_RETURNS[kind]}"
    return f"{_head(loss)}{arguments}" + _FUNCTION_EXAMPLE.format(
        function=name, scores=example.scores, target=example.target, value=example.value
    )


def describe_module(loss: Loss, name: str) -> str:
    """The docstring of the module ``name`` of a loss."""
    example = _example(loss)
    return f"{_head(loss)}\nArgs:\n{_options(loss)}" + _MODULE_EXAMPLE.format(
        module=name,
        scores=example.scores,
        target=example.target,
        value=example.value,
        gradient=example.gradient,
    )


def describe_link(regularizer: Regularizer, name: str) -> str:
    """The docstring of the function ``name`` that is the link of a regulariser."""
    scores = [0.5, 0.25, -1.0]
    link = _rounded(regularizer.link(np.asarray(scores)))
    return _LINK.format(omega=regularizer, name=name, scores=scores, link=link)
