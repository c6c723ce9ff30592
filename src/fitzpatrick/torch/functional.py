r"""Losses and links as functions of tensors, one of each for every name of the registry.

A loss is its registry name plus ``_loss``; a link has the plain name of its Fenchel-Young loss
(:func:`sparsemax`, :func:`entmax15`, ``logistic`` for the soft argmax, …). Losses on the simplex
take the arguments of :func:`torch.nn.functional.cross_entropy`, losses of separate entries those of
:func:`torch.nn.functional.binary_cross_entropy_with_logits`. Fitzpatrick losses take a tightness.
A loss on the simplex with ``linear_`` before its name is that of a linear layer's scores.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import functional as F
    >>> scores = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.5, 0.0]], requires_grad=True)
    >>> loss = F.fitzpatrick_logistic_loss(scores, torch.tensor([0, 2]))
    >>> loss.backward()
    >>> round(loss.item(), 4), scores.grad.sum(-1).abs().max().item() < 1e-7
    (0.3108, True)
    >>> F.sparsemax(scores.detach())
    tensor([[1.0000, 0.0000, 0.0000],
            [0.1667, 0.6667, 0.1667]])
"""

# Written by tools/write_torch.py: change that and run it again.
# fmt: off
# ruff: noqa: A002  # ``input`` is PyTorch's name

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..losses import Loss, get_loss, name_of
from ._activations import (
    budget,
    entmax,
    entmax_loss,
    fitzpatrick_entmax_loss,
    normmax,
    normmax_loss,
)
from ._handles import handle_of
from ._linear import linear_class_loss
from ._losses import class_loss, entry_loss, link, loss_of_kind

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = [
    "budget",
    "entmax",
    "entmax15",
    "entmax15_loss",
    "entmax_loss",
    "fitzpatrick_entmax15_loss",
    "fitzpatrick_entmax_loss",
    "fitzpatrick_logistic_loss",
    "fitzpatrick_poisson_loss",
    "fitzpatrick_sigmoid_loss",
    "fitzpatrick_sparse_sigmoid_loss",
    "fitzpatrick_sparsemax_loss",
    "fitzpatrick_squared_loss",
    "linear_entmax15_loss",
    "linear_fitzpatrick_entmax15_loss",
    "linear_fitzpatrick_logistic_loss",
    "linear_fitzpatrick_sparsemax_loss",
    "linear_logistic_loss",
    "linear_perceptron_loss",
    "linear_sparsemax_loss",
    "link_function",
    "logistic",
    "logistic_loss",
    "loss_function",
    "normmax",
    "normmax_loss",
    "perceptron",
    "perceptron_loss",
    "poisson",
    "poisson_loss",
    "sigmoid",
    "sigmoid_loss",
    "sparse_sigmoid",
    "sparse_sigmoid_loss",
    "sparsemax",
    "sparsemax_loss",
    "squared",
    "squared_loss",
]


def entmax15_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, dim: int | None = None,
    engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.entmax15_loss(scores, target).item(), 4)
        0.5266
    """
    return class_loss("entmax15", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def fitzpatrick_entmax15_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, tightness: float = 1.0,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The tightness c is 1 if not given. The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.fitzpatrick_entmax15_loss(scores, target).item(), 4)
        0.249
    """
    return class_loss("entmax15", tightness, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def fitzpatrick_logistic_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, tightness: float = 1.0,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    With a tightness c ≥ 0 the loss of scores θ at targets y is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    where y* attains the maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss
    :func:`logistic_loss` at c = 0. It is never negative, 0 exactly where the target is the link
    ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in y, too.

    Args:
        input: scores; classes in axis 1 (axis 0 of a vector), or in ``dim``. Half precision is
            computed in float32. A class with the score −∞ is masked.
        target: class indices, with the shape of ``input`` without its classes, or proportions, with
            the shape of ``input``.
        weight: one weight per class. A class index weighs its class's weight, a row of proportions
            ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are
            as in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
            ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
        ignore_index: class index that counts for nothing; proportions have none.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        tightness: c, any finite number that is not negative.
        dim: axis of the classes.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: whether to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.
        process_group: processes that share the classes: each has the scores of some of them, next
            to one another, in the order of the ranks. Class indices and ``weight`` are of all
            classes and the same on every rank, proportions are those of the rank's classes. All
            ranks get the same loss, differentiable once, and each the gradient in its own scores. A
            ``DTensor`` that is sharded along the classes needs no group.

    Returns:
        The loss, in the dtype of ``input``, differentiable twice in it, and in a ``weight`` that
        leaves the target as it is. Smoothed targets and proportions count Ω(target), which
        ``cross_entropy`` leaves out.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.fitzpatrick_logistic_loss(scores, target).item(), 4)
        0.3908
    """
    return class_loss("logistic", tightness, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def fitzpatrick_poisson_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    tightness: float = 1.0, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The tightness c is 1 if not given. The link is :func:`poisson`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.fitzpatrick_poisson_loss(scores, target).item(), 4)
        0.2263
    """
    return entry_loss("poisson", tightness, input, target, weight, reduction, engine=engine,
                      validate=validate)


def fitzpatrick_sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, tightness: float = 1.0, engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Bernoulli()``, entry by entry.

    With a tightness c ≥ 0 the loss of scores θ at targets y is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    where y* attains the maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss
    :func:`sigmoid_loss` at c = 0. It is never negative, 0 exactly where the target is the link
    ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in y, too.

    Args:
        input: scores, of any shape. Half precision is computed in float32.
        target: numbers in ``Box(lower=0.0, upper=1.0)``, with the shape of ``input``.
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
            pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of
            the target pos_weight · y / (pos_weight · y + 1 − y).
        tightness: c, any finite number that is not negative.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Returns:
        The loss, in the dtype of ``input``, differentiable twice in it. It counts Ω(target), a
        constant that ``binary_cross_entropy_with_logits`` leaves out for targets between 0 and 1.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.fitzpatrick_sigmoid_loss(scores, target).item(), 4)
        0.2142
    """
    return entry_loss("sigmoid", tightness, input, target, weight, reduction, pos_weight,
                      engine=engine, validate=validate)


def fitzpatrick_sparse_sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, tightness: float = 1.0, engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The tightness c is 1 if not given. The link is :func:`sparse_sigmoid`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.fitzpatrick_sparse_sigmoid_loss(scores, target).item(), 4)
        0.026
    """
    return entry_loss("sparse_sigmoid", tightness, input, target, weight, reduction, pos_weight,
                      engine=engine, validate=validate)


def fitzpatrick_sparsemax_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, tightness: float = 1.0,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The tightness c is 1 if not given. The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.fitzpatrick_sparsemax_loss(scores, target).item(), 4)
        0.1953
    """
    return class_loss("sparsemax", tightness, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def fitzpatrick_squared_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    tightness: float = 1.0, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The tightness c is 1 if not given. The link is :func:`squared`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.fitzpatrick_squared_loss(scores, target).item(), 4)
        0.1094
    """
    return entry_loss("squared", tightness, input, target, weight, reduction, engine=engine,
                      validate=validate)


def logistic_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, dim: int | None = None,
    engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`logistic`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.logistic_loss(scores, target).item(), 4)
        0.9441
    """
    return class_loss("logistic", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def perceptron_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, dim: int | None = None,
    engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`perceptron`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.perceptron_loss(scores, target).item(), 4)
        0.25
    """
    return class_loss("perceptron", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def poisson_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`poisson`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.poisson_loss(scores, target).item(), 4)
        0.6002
    """
    return entry_loss("poisson", 0.0, input, target, weight, reduction, engine=engine,
                      validate=validate)


def sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Bernoulli()``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`sigmoid`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.sigmoid_loss(scores, target).item(), 4)
        0.5378
    """
    return entry_loss("sigmoid", 0.0, input, target, weight, reduction, pos_weight, engine=engine,
                      validate=validate)


def sparse_sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`sparse_sigmoid`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.sparse_sigmoid_loss(scores, target).item(), 4)
        0.0521
    """
    return entry_loss("sparse_sigmoid", 0.0, input, target, weight, reduction, pos_weight,
                      engine=engine, validate=validate)


def sparsemax_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, *, dim: int | None = None,
    engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.sparsemax_loss(scores, target).item(), 4)
        0.3906
    """
    return class_loss("sparsemax", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group)


def squared_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`squared`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.squared_loss(scores, target).item(), 4)
        0.2188
    """
    return entry_loss("squared", 0.0, input, target, weight, reduction, engine=engine,
                      validate=validate)


def entmax15(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Tsallis(alpha=1.5)``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an entry is
    kept, as in :func:`entmax`, which is this one at α = 1.5.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.entmax15(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [0.5879, 0.4118, 0.0003]
    """
    return link("entmax15", input, dim, mask=mask, engine=engine)


def logistic(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Negentropy(domain=Simplex())``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an entry is
    kept, as in :func:`entmax`, which is this one at α = 1.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.logistic(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [0.4995, 0.389, 0.1115]
    """
    return link("logistic", input, dim, mask=mask, engine=engine)


def perceptron(input: Tensor, dim: int = -1) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Indicator(domain=Simplex())``.

    Taken along ``dim``, and differentiable once.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.perceptron(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [1.0, 0.0, 0.0]
    """
    return link("perceptron", input, dim)


def poisson(input: Tensor, dim: int = -1) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Negentropy(domain=Orthant())``.

    Taken along ``dim``, and differentiable once.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.poisson(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [1.6487, 1.284, 0.3679]
    """
    return link("poisson", input, dim)


def sigmoid(input: Tensor, dim: int = -1) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Bernoulli()``.

    Taken along ``dim``, and differentiable once.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.sigmoid(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [0.6225, 0.5622, 0.2689]
    """
    return link("sigmoid", input, dim)


def sparse_sigmoid(input: Tensor, dim: int = -1) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    Taken along ``dim``, and differentiable once.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.sparse_sigmoid(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [0.5, 0.25, 0.0]
    """
    return link("sparse_sigmoid", input, dim)


def sparsemax(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Simplex())``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an entry is
    kept, as in :func:`entmax`, which is this one at α = 2.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.sparsemax(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [0.625, 0.375, 0.0]
    """
    return link("sparsemax", input, dim, mask=mask, engine=engine)


def squared(input: Tensor, dim: int = -1) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Reals())``.

    Taken along ``dim``, and differentiable once.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.squared(torch.tensor([0.5, 0.25, -1.0])).tolist()]
        [0.5, 0.25, -1.0]
    """
    return link("squared", input, dim)


def linear_entmax15_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal to :func:`entmax15_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_entmax15_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.5266
    """
    return linear_class_loss("entmax15", 0.0, input, linear_weight, target, linear_bias=linear_bias,
                             weight=weight, ignore_index=ignore_index, reduction=reduction,
                             label_smoothing=label_smoothing, chunk_size=chunk_size,
                             accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                             process_group=process_group)


def linear_fitzpatrick_entmax15_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal to :func:`fitzpatrick_entmax15_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_fitzpatrick_entmax15_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.249
    """
    return linear_class_loss("entmax15", tightness, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group)


def linear_fitzpatrick_logistic_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    Equal, up to rounding, to the loss of the scores, which are never all in memory:

    .. math:: L(y, X W^\top + b)

    The forward pass computes the scores of a chunk of rows, turns them into their gradient in
    place, and multiplies that by the weight and by the input. The backward pass scales the results.

    Args:
        input: features, (…, h).
        linear_weight: weight of the layer, (k, h).
        target: class indices, with the shape of ``input`` without its last axis, or proportions,
            (…, k).
        linear_bias: bias of the layer, (k,), or None.
        weight: one weight per class, as in :func:`fitzpatrick_logistic_loss`; it has no derivative
            here.
        ignore_index: class index that counts for nothing; its rows are left out of the matrix
            products.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        tightness: c, any finite number that is not negative.
        chunk_size: rows whose scores are held at once. None chooses so that they take 300 MiB on a
            GPU and 8 MiB on a CPU, or less.
        accumulate_dtype: dtype in which the gradient of ``linear_weight`` is summed over the
            chunks: ``torch.float32`` or its own. None keeps its error below twice that of a single
            product: its own dtype for at most 16 chunks on a GPU, else float32.
        engine: as in :func:`fitzpatrick_logistic_loss`.
        validate: whether to look at the targets' values, as in :func:`fitzpatrick_logistic_loss`.
        process_group: processes that share the classes: each has its rows of ``linear_weight`` and
            ``linear_bias``, and all have the same ``input``, whose gradient is summed over them;
            see :func:`fitzpatrick_logistic_loss`.

    Returns:
        The loss, in the dtype that the loss of ``torch.nn.functional.linear`` would have,
        differentiable once in ``input``, ``linear_weight`` and ``linear_bias``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_fitzpatrick_logistic_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.3908
    """
    return linear_class_loss("logistic", tightness, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group)


def linear_fitzpatrick_sparsemax_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal to :func:`fitzpatrick_sparsemax_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_fitzpatrick_sparsemax_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.1953
    """
    return linear_class_loss("sparsemax", tightness, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group)


def linear_logistic_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal to :func:`logistic_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_logistic_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.9441
    """
    return linear_class_loss("logistic", 0.0, input, linear_weight, target, linear_bias=linear_bias,
                             weight=weight, ignore_index=ignore_index, reduction=reduction,
                             label_smoothing=label_smoothing, chunk_size=chunk_size,
                             accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                             process_group=process_group)


def linear_perceptron_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal to :func:`perceptron_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_perceptron_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.25
    """
    return linear_class_loss("perceptron", 0.0, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group)


def linear_sparsemax_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal to :func:`sparsemax_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> weight, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_sparsemax_loss(torch.ones(1, 1), weight, target).item(), 4)
        0.3906
    """
    return linear_class_loss("sparsemax", 0.0, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group)


_LOSSES: dict[str, Callable[..., Tensor]] = {
    "entmax15": entmax15_loss,
    "fitzpatrick_entmax15": fitzpatrick_entmax15_loss,
    "fitzpatrick_logistic": fitzpatrick_logistic_loss,
    "fitzpatrick_poisson": fitzpatrick_poisson_loss,
    "fitzpatrick_sigmoid": fitzpatrick_sigmoid_loss,
    "fitzpatrick_sparse_sigmoid": fitzpatrick_sparse_sigmoid_loss,
    "fitzpatrick_sparsemax": fitzpatrick_sparsemax_loss,
    "fitzpatrick_squared": fitzpatrick_squared_loss,
    "logistic": logistic_loss,
    "perceptron": perceptron_loss,
    "poisson": poisson_loss,
    "sigmoid": sigmoid_loss,
    "sparse_sigmoid": sparse_sigmoid_loss,
    "sparsemax": sparsemax_loss,
    "squared": squared_loss,
}

_LINKS: dict[str, Callable[..., Tensor]] = {
    "entmax15": entmax15,
    "logistic": logistic,
    "perceptron": perceptron,
    "poisson": poisson,
    "sigmoid": sigmoid,
    "sparse_sigmoid": sparse_sigmoid,
    "sparsemax": sparsemax,
    "squared": squared,
}


def loss_function(loss: Loss | str) -> Callable[..., Tensor]:
    """The function (input, target, …) ↦ loss of any loss of the core, or of a registry name.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> ball = fp.sets.L2Ball()
        >>> function = loss_function(fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(ball)))
        >>> function(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
        1.236...
        >>> loss_function("sparsemax") is sparsemax_loss
        True
    """
    loss = get_loss(loss)
    name = name_of(loss)
    if name is not None:
        return _LOSSES[name]
    omega = loss.regularizer
    return functools.partial(loss_of_kind(omega), handle_of(omega), loss.tightness)


def link_function(loss: Loss | str) -> Callable[..., Tensor]:
    """The function (input, dim=-1) ↦ ŷ(input) of any loss of the core, or of a registry name.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> entmax = link_function(fp.FenchelYoungLoss(fp.regularizers.Tsallis(1.25)))
        >>> entmax(torch.tensor([1.0, 1.0, -9.0]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    omega = handle_of(get_loss(loss).regularizer)
    return _LINKS[omega] if omega in _LINKS else functools.partial(link, omega)
