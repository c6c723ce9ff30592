r"""Losses and links as functions of tensors, one of each for every name of the registry.

A loss is its registry name plus ``_loss``; a link has the plain name of its Fenchel-Young loss
(:func:`sparsemax`, :func:`entmax15`, ``logistic`` for the soft argmax, …). Losses on the simplex
take the arguments of :func:`torch.nn.functional.cross_entropy`, losses of separate entries those of
:func:`torch.nn.functional.binary_cross_entropy_with_logits`. Fitzpatrick losses take a tightness.
A loss on the simplex with ``linear_`` before its name is the loss of a linear layer's scores.
Losses have the classes in axis 1, links in the last axis, unless ``dim`` says otherwise.

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

# ruff: noqa: A002  # ``input`` is PyTorch's name

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._validation import check_order
from ..losses import Loss, get_loss, name_of, regularizers_by_name
from ..regularizers import Tsallis
from ..regularizers.norm import Norm
from ._arguments import as_float
from ._entmax import link_along
from ._entmax_attention import entmax_attention
from ._handles import handle_at, handle_of
from ._head import Layer
from ._losses import class_loss, distill, entry_loss, linear_class_loss, loss_of_kind
from ._sparse_targets import SparseTargets
from ._structured import soft_rank, soft_sort, topk_mask
from ._transform import as_scaling
from .activations import (
    budget,
    entmax,
    entmax_class_loss,
    normmax,
    probabilities,
)

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def __dir__() -> list[str]:
    return __all__


def fitzpatrick_logistic_loss(
    input: Tensor,
    target: Tensor | SparseTargets,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    tightness: float = 1.0,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0,
    softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss :func:`logistic_loss` at c = 0.
    It is never negative, 0 exactly where the target is the link ŷ(θ), convex in θ, and the lower
    the larger c is. Up to c = 1 it is convex in y, too.

    Args:
        input: scores; classes in axis 1 (axis 0 of a vector), or in ``dim``. Half precision is
            computed in float32. A class with the score −∞ is masked.
        target: class indices, with the shape of ``input`` without its classes; or proportions, with
            the shape of ``input``; or :class:`~fitzpatrick.torch.SparseTargets`, which list
            the classes that have some. Proportions may be a sparse COO or CSR tensor.
        weight: one weight per class. A class index weighs its class's weight, a row of proportions
            ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are
            as in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
            ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
        ignore_index: class index that counts for nothing; proportions have none.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        tightness: c, 0 or a number from 1e-12 to 1e6. It is chosen, not learned: the loss
            decreases in c.
        dim: axis of the classes.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: True to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.
        process_group: processes that share the classes: each has the scores of some of them, next
            to one another, in the order of the ranks. Class indices and ``weight`` are of all
            classes and the same on every rank, proportions are those of the rank's classes. All
            ranks get the same loss, differentiable once, and each the gradient in its own scores. A
            ``DTensor`` that is sharded along classes or rows needs no group.
        temperature: T, which divides the scores. In distillation, losses are often multiplied by T²
            afterwards; that is left to you.
        logit_scale: a number that multiplies the scores, or a tensor of one, which is learned.
        softcap: a cap C, if scores θ are to be C tanh(θ/C); masked classes stay masked. It comes
            before ``logit_scale`` and ``temperature``.
        return_stats: True for a pair of the loss and :class:`~fitzpatrick.torch.RowStats`, with the
            log-sum-exp, the entropy, the target's score and the correctness of each row.

    Returns:
        The loss, in the dtype of ``input``, differentiable twice in it, and in a ``weight`` that
        leaves the target as it is. Smoothed targets and proportions count Ω(target), which
        ``cross_entropy`` leaves out.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[1.0, 0.0, -1.0]]), torch.tensor([1])
        >>> round(F.fitzpatrick_logistic_loss(scores, target).item(), 4)
        0.6143
    """
    return class_loss(
        "logistic",
        tightness,
        input,
        target,
        weight,
        ignore_index,
        reduction,
        label_smoothing,
        dim=dim,
        engine=engine,
        validate=validate,
        process_group=process_group,
        temperature=temperature,
        logit_scale=logit_scale,
        softcap=softcap,
        return_stats=return_stats,
    )


def fitzpatrick_sigmoid_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    *,
    tightness: float = 1.0,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Bernoulli()``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
    maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss :func:`sigmoid_loss` at c = 0. It
    is never negative, 0 exactly where the target is the link ŷ(θ), convex in θ, and the lower the
    larger c is. Up to c = 1 it is convex in y, too.

    Args:
        input: scores, of any shape. Half precision is computed in float32.
        target: numbers in the domain of Ω, with the shape of ``input``.
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
            pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of
            the target pos_weight · y / (pos_weight · y + 1 − y).
        tightness: c, 0 or a number from 1e-12 to 1e6. It is chosen, not learned: the loss
            decreases in c.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: True to look at the targets' values; None looks on the CPU alone.

    Returns:
        The loss, in the dtype of ``input``, differentiable twice in it. It counts Ω(target), a
        constant that ``binary_cross_entropy_with_logits`` leaves out for targets between 0 and 1.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[1.0, 0.0, -1.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> round(F.fitzpatrick_sigmoid_loss(scores, target).item(), 4)
        0.1728
    """
    return entry_loss(
        "sigmoid",
        tightness,
        input,
        target,
        weight,
        reduction,
        pos_weight,
        engine=engine,
        validate=validate,
    )


def linear_fitzpatrick_logistic_loss(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor | SparseTargets,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    tightness: float = 1.0,
    chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0,
    softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`fitzpatrick_logistic_loss` of the scores, which are never all
    in memory. The forward pass computes the scores of a chunk of rows, turns them into their
    gradient in place, and multiplies that by the weight and by the input. The backward pass scales
    the results.

    Args:
        input: features, (…, h).
        linear_weight: weight of the layer, (k, h).
        target: class indices, with the shape of ``input`` without its last axis, or proportions,
            (…, k).
        linear_bias: bias of the layer, (k,), or None.
        weight: one weight per class; it has no derivative here.
        ignore_index: class index that counts for nothing; its rows are left out of the matrix
            products.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        tightness: c, 0 or a number from 1e-12 to 1e6. It is chosen, not learned: the loss
            decreases in c.
        chunk_size: rows whose scores are held at once. None chooses so that they take 300 MiB on a
            GPU and 8 MiB on a CPU, or less.
        accumulate_dtype: dtype in which the gradient of ``linear_weight`` is summed over the
            chunks: ``torch.float32`` or its own. None keeps its error below twice that of a single
            product: its own dtype for at most 16 chunks on a GPU, else float32.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: True to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.
        process_group: processes that share the classes: each has its rows of ``linear_weight`` and
            ``linear_bias``, and all have the same ``input``, whose gradient is summed over them.
        temperature: T, which divides the scores.
        logit_scale: a number that multiplies the scores, or a tensor of one, which is learned.
        softcap: a cap C, if scores θ are to be C tanh(θ/C), before they are scaled.
        return_stats: True for a pair of the loss and :class:`~fitzpatrick.torch.RowStats`, with the
            log-sum-exp, the entropy, the target's score and the correctness of each row.

    Returns:
        The loss, in the dtype that the loss of ``torch.nn.functional.linear`` would have,
        differentiable once in ``input``, ``linear_weight``, ``linear_bias`` and a tensor
        ``logit_scale``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[1.0], [0.0], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_fitzpatrick_logistic_loss(torch.ones(1, 1), scores, target).item(), 4)
        0.6143
    """
    return linear_class_loss(
        "logistic",
        tightness,
        input,
        linear_weight,
        target,
        linear_bias=linear_bias,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        chunk_size=chunk_size,
        accumulate_dtype=accumulate_dtype,
        engine=engine,
        validate=validate,
        process_group=process_group,
        temperature=temperature,
        logit_scale=logit_scale,
        softcap=softcap,
        return_stats=return_stats,
    )


def distillation_loss(
    input: Tensor,
    linear_weight: Tensor,
    teacher_input: Tensor,
    teacher_weight: Tensor,
    *,
    linear_bias: Tensor | None = None,
    teacher_bias: Tensor | None = None,
    loss: Loss | str = "fitzpatrick_logistic",
    temperature: float = 1.0,
    softcap: float | None = None,
    teacher_softcap: float | None = None,
    reduction: str = "mean",
    chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None,
    engine: str | None = None,
) -> Tensor:
    r"""Loss between the heads of a student and of a teacher, over all classes.

    .. math:: L(\hat y(\theta_T / T),\, \theta_S / T)

    Here :math:`\theta_S` and :math:`\theta_T` are the scores of the two linear layers and ŷ is the
    link of the loss. A chunk of rows of each is computed at a time: neither matrix of scores is
    ever held as a whole. The gradient goes to the student alone. For a teacher's top k, which needs
    no teacher at hand, pass :class:`~fitzpatrick.torch.SparseTargets` to a linear loss.

    Args:
        input: features of the student, shape (…, h).
        linear_weight: its layer, shape (k, h).
        teacher_input: features of the teacher, shape (…, h'), with the student's rows.
        teacher_weight: its layer, shape (k, h').
        linear_bias: of the student, shape (k,), or None.
        teacher_bias: of the teacher, shape (k,), or None.
        loss: a loss on the simplex, or its registry name.
        temperature: T. Multiply the loss by T² yourself, if its gradient shall not shrink with T.
        softcap: cap of the student's scores, as in :func:`linear_fitzpatrick_logistic_loss`.
        teacher_softcap: cap of the teacher's scores.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``. Leave rows out by indexing both features.
        chunk_size: rows whose scores are held at once, twice; None chooses.
        accumulate_dtype: as in :func:`linear_fitzpatrick_logistic_loss`.
        engine: likewise.

    Returns:
        The loss, differentiable once in ``input``, ``linear_weight`` and ``linear_bias``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> small, large = torch.ones(2, 3), torch.ones(2, 5)
        >>> student, teacher = torch.zeros(4, 3), torch.arange(20.0).reshape(4, 5) / 20
        >>> round(F.distillation_loss(small, student, large, teacher, temperature=2.0).item(), 4)
        0.1026
    """
    loss = get_loss(loss)
    student = Layer(input, linear_weight, linear_bias)
    teacher = Layer(teacher_input, teacher_weight, teacher_bias)
    out: Tensor = distill(
        handle_of(loss.regularizer),
        loss.tightness,
        student,
        teacher,
        as_scaling(temperature, softcap=softcap),
        as_scaling(temperature, softcap=teacher_softcap),
        reduction=reduction,
        chunk_size=chunk_size,
        accumulate_dtype=accumulate_dtype,
        engine=engine,
    )
    return out


def entmax_loss(
    input: Tensor,
    target: Tensor,
    alpha: float | Tensor = 1.5,
    *,
    tightness: float = 0.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Tsallis(alpha)``, whose link is :func:`entmax`.

    ``alpha`` is a number between 1 and 2, or, at tightness 0, a tensor: one for all rows, without
    axes, or one for each, in the shape of class indices. The loss is differentiable in it.
    ``tightness`` is 0 for the Fenchel-Young loss and 1 for the Fitzpatrick loss.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.entmax_loss(scores, target, 1.25).item(), 4)
        0.6659
    """
    return entmax_class_loss(
        alpha,
        tightness,
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        dim=dim,
        engine=engine,
        validate=validate,
        process_group=process_group,
    )


def fitzpatrick_entmax_loss(
    input: Tensor,
    target: Tensor,
    alpha: float = 1.5,
    *,
    tightness: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Tsallis(alpha)``: :func:`entmax_loss` at another tightness.

    ``alpha`` is a number between 1 and 2.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return entmax_class_loss(
        alpha,
        tightness,
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        dim=dim,
        engine=engine,
        validate=validate,
        process_group=process_group,
    )


def linear_entmax_loss(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor | SparseTargets,
    alpha: float = 1.5,
    *,
    tightness: float = 0.0,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0,
    softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Loss of ``Tsallis(alpha)``, of a linear layer: :func:`entmax_loss` of its scores.

    ``alpha`` is a number between 1 and 2; ``tightness`` is 0 for the Fenchel-Young loss and 1 for
    the Fitzpatrick loss.
    The other arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5], [0.25], [-1.0]]), torch.tensor([1])
        >>> round(F.linear_entmax_loss(torch.ones(1, 1), scores, target, 1.25).item(), 4)
        0.6659
    """
    return linear_class_loss(
        handle_at(Tsallis, check_order(alpha)),
        tightness,
        input,
        linear_weight,
        target,
        linear_bias=linear_bias,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        chunk_size=chunk_size,
        accumulate_dtype=accumulate_dtype,
        engine=engine,
        validate=validate,
        process_group=process_group,
        temperature=temperature,
        logit_scale=logit_scale,
        softcap=softcap,
        return_stats=return_stats,
    )


def normmax_loss(
    input: Tensor,
    target: Tensor,
    alpha: float = 2.0,
    reduction: str = "mean",
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of the norm :math:`\|p\|_\alpha`, whose link is :func:`normmax`.

    ``alpha`` is a number above 1.
    The other arguments are explained in :func:`fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> round(F.normmax_loss(torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])).item(), 4)
        0.429
    """
    return class_loss(
        handle_at(Norm, as_float(alpha, "alpha")),
        0.0,
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        dim=dim,
        engine=engine,
        validate=validate,
    )


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
        function: Callable[..., Tensor] = globals()[f"{name}_loss"]
        return function
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
    if omega not in regularizers_by_name():
        return functools.partial(link_along, omega)
    function: Callable[..., Tensor] = globals()[omega]
    return function


# Everything below is written by tools/write_front_ends.py: change that and run it again.
# fmt: off

__all__ = [
    "budget",
    "distillation_loss",
    "entmax",
    "entmax15",
    "entmax15_loss",
    "entmax15_probabilities",
    "entmax_attention",
    "entmax_loss",
    "fitzpatrick_entmax15_loss",
    "fitzpatrick_entmax15_probabilities",
    "fitzpatrick_entmax_loss",
    "fitzpatrick_logistic_loss",
    "fitzpatrick_logistic_probabilities",
    "fitzpatrick_poisson_loss",
    "fitzpatrick_sigmoid_loss",
    "fitzpatrick_sigmoid_probabilities",
    "fitzpatrick_sparse_sigmoid_loss",
    "fitzpatrick_sparse_sigmoid_probabilities",
    "fitzpatrick_sparsemax_loss",
    "fitzpatrick_sparsemax_probabilities",
    "fitzpatrick_squared_loss",
    "linear_entmax15_loss",
    "linear_entmax_loss",
    "linear_fitzpatrick_entmax15_loss",
    "linear_fitzpatrick_logistic_loss",
    "linear_fitzpatrick_sparsemax_loss",
    "linear_logistic_loss",
    "linear_perceptron_loss",
    "linear_sparsemax_loss",
    "link_function",
    "logistic",
    "logistic_loss",
    "logistic_probabilities",
    "loss_function",
    "normmax",
    "normmax_loss",
    "perceptron",
    "perceptron_loss",
    "poisson",
    "poisson_loss",
    "sigmoid",
    "sigmoid_loss",
    "sigmoid_probabilities",
    "soft_rank",
    "soft_sort",
    "sparse_sigmoid",
    "sparse_sigmoid_loss",
    "sparse_sigmoid_probabilities",
    "sparsemax",
    "sparsemax_loss",
    "sparsemax_probabilities",
    "squared",
    "squared_loss",
    "topk_mask",
]


def entmax15_loss(
    input: Tensor, target: Tensor | SparseTargets, weight: Tensor | None = None,
    ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, *,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return class_loss("entmax15", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group, temperature=temperature, logit_scale=logit_scale,
                      softcap=softcap, return_stats=return_stats)


def fitzpatrick_entmax15_loss(
    input: Tensor, target: Tensor | SparseTargets, weight: Tensor | None = None,
    ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, *,
    tightness: float = 1.0, dim: int | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`entmax15`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return class_loss("entmax15", tightness, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group, temperature=temperature, logit_scale=logit_scale,
                      softcap=softcap, return_stats=return_stats)


def fitzpatrick_poisson_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    tightness: float = 1.0, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`poisson`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("poisson", tightness, input, target, weight, reduction, engine=engine,
                      validate=validate)


def fitzpatrick_sparse_sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, tightness: float = 1.0, engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`sparse_sigmoid`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("sparse_sigmoid", tightness, input, target, weight, reduction, pos_weight,
                      engine=engine, validate=validate)


def fitzpatrick_sparsemax_loss(
    input: Tensor, target: Tensor | SparseTargets, weight: Tensor | None = None,
    ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, *,
    tightness: float = 1.0, dim: int | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return class_loss("sparsemax", tightness, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group, temperature=temperature, logit_scale=logit_scale,
                      softcap=softcap, return_stats=return_stats)


def fitzpatrick_squared_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    tightness: float = 1.0, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The link is :func:`squared`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("squared", tightness, input, target, weight, reduction, engine=engine,
                      validate=validate)


def logistic_loss(
    input: Tensor, target: Tensor | SparseTargets, weight: Tensor | None = None,
    ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, *,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`logistic`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return class_loss("logistic", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group, temperature=temperature, logit_scale=logit_scale,
                      softcap=softcap, return_stats=return_stats)


def perceptron_loss(
    input: Tensor, target: Tensor | SparseTargets, weight: Tensor | None = None,
    ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, *,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`perceptron`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return class_loss("perceptron", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group, temperature=temperature, logit_scale=logit_scale,
                      softcap=softcap, return_stats=return_stats)


def poisson_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`poisson`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("poisson", 0.0, input, target, weight, reduction, engine=engine,
                      validate=validate)


def sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``Bernoulli()``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sigmoid`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("sigmoid", 0.0, input, target, weight, reduction, pos_weight, engine=engine,
                      validate=validate)


def sparse_sigmoid_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None, *, engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sparse_sigmoid`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("sparse_sigmoid", 0.0, input, target, weight, reduction, pos_weight,
                      engine=engine, validate=validate)


def sparsemax_loss(
    input: Tensor, target: Tensor | SparseTargets, weight: Tensor | None = None,
    ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0, *,
    dim: int | None = None, engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`sparsemax`.
    The arguments are explained in :func:`fitzpatrick_logistic_loss`.
    """
    return class_loss("sparsemax", 0.0, input, target, weight, ignore_index, reduction,
                      label_smoothing, dim=dim, engine=engine, validate=validate,
                      process_group=process_group, temperature=temperature, logit_scale=logit_scale,
                      softcap=softcap, return_stats=return_stats)


def squared_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", *,
    engine: str | None = None, validate: bool | None = None,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The link is :func:`squared`.
    The arguments are explained in :func:`fitzpatrick_sigmoid_loss`.
    """
    return entry_loss("squared", 0.0, input, target, weight, reduction, engine=engine,
                      validate=validate)


def linear_entmax15_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor | SparseTargets, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`entmax15_loss` of the scores.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.
    """
    return linear_class_loss("entmax15", 0.0, input, linear_weight, target, linear_bias=linear_bias,
                             weight=weight, ignore_index=ignore_index, reduction=reduction,
                             label_smoothing=label_smoothing, chunk_size=chunk_size,
                             accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                             process_group=process_group, temperature=temperature,
                             logit_scale=logit_scale, softcap=softcap, return_stats=return_stats)


def linear_fitzpatrick_entmax15_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor | SparseTargets, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, tightness: float = 1.0,
    chunk_size: int | None = None, accumulate_dtype: torch.dtype | None = None,
    engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
) -> Tensor:
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`fitzpatrick_entmax15_loss` of the scores.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.
    """
    return linear_class_loss("entmax15", tightness, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group,
                             temperature=temperature, logit_scale=logit_scale, softcap=softcap,
                             return_stats=return_stats)


def linear_fitzpatrick_sparsemax_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor | SparseTargets, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, tightness: float = 1.0,
    chunk_size: int | None = None, accumulate_dtype: torch.dtype | None = None,
    engine: str | None = None, validate: bool | None = None,
    process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
) -> Tensor:
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`fitzpatrick_sparsemax_loss` of the scores.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.
    """
    return linear_class_loss("sparsemax", tightness, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group,
                             temperature=temperature, logit_scale=logit_scale, softcap=softcap,
                             return_stats=return_stats)


def linear_logistic_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor | SparseTargets, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`logistic_loss` of the scores.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.
    """
    return linear_class_loss("logistic", 0.0, input, linear_weight, target, linear_bias=linear_bias,
                             weight=weight, ignore_index=ignore_index, reduction=reduction,
                             label_smoothing=label_smoothing, chunk_size=chunk_size,
                             accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                             process_group=process_group, temperature=temperature,
                             logit_scale=logit_scale, softcap=softcap, return_stats=return_stats)


def linear_perceptron_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor | SparseTargets, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`perceptron_loss` of the scores.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.
    """
    return linear_class_loss("perceptron", 0.0, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group,
                             temperature=temperature, logit_scale=logit_scale, softcap=softcap,
                             return_stats=return_stats)


def linear_sparsemax_loss(
    input: Tensor, linear_weight: Tensor, target: Tensor | SparseTargets, *,
    linear_bias: Tensor | None = None, weight: Tensor | None = None, ignore_index: int = -100,
    reduction: str = "mean", label_smoothing: float = 0.0, chunk_size: int | None = None,
    accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
    validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    .. math:: L(y, X W^\top + b)

    Equal, up to rounding, to :func:`sparsemax_loss` of the scores.
    The arguments are explained in :func:`linear_fitzpatrick_logistic_loss`.
    """
    return linear_class_loss("sparsemax", 0.0, input, linear_weight, target,
                             linear_bias=linear_bias, weight=weight, ignore_index=ignore_index,
                             reduction=reduction, label_smoothing=label_smoothing,
                             chunk_size=chunk_size, accumulate_dtype=accumulate_dtype,
                             engine=engine, validate=validate, process_group=process_group,
                             temperature=temperature, logit_scale=logit_scale, softcap=softcap,
                             return_stats=return_stats)


def entmax15(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Tsallis(alpha=1.5)``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an
    entry is kept, as in :func:`entmax`, which is this one at α = 1.5.
    """
    return link_along("entmax15", input, dim, mask=mask, engine=engine)


def logistic(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Negentropy(domain=Simplex())``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an
    entry is kept, as in :func:`entmax`, which is this one at α = 1.
    """
    return link_along("logistic", input, dim, mask=mask, engine=engine)


def perceptron(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Indicator(domain=Simplex())``.

    Taken along ``dim``, and differentiable once.
    """
    return link_along("perceptron", input, dim)


def poisson(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Negentropy(domain=Orthant())``.

    Taken along ``dim``, and differentiable once.
    """
    return link_along("poisson", input, dim)


def sigmoid(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``Bernoulli()``.

    Taken along ``dim``, and differentiable once.
    """
    return link_along("sigmoid", input, dim)


def sparse_sigmoid(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    Taken along ``dim``, and differentiable once.
    """
    return link_along("sparse_sigmoid", input, dim)


def sparsemax(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Simplex())``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an
    entry is kept, as in :func:`entmax`, which is this one at α = 2.
    """
    return link_along("sparsemax", input, dim, mask=mask, engine=engine)


def squared(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``SquaredNorm(domain=Reals())``.

    Taken along ``dim``, and differentiable once.
    """
    return link_along("squared", input, dim)


def entmax15_probabilities(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Class probabilities that belong to scores of :func:`entmax15_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`entmax15` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["entmax15"]
    return probabilities(omega, 0.0, input, dim)


def fitzpatrick_entmax15_probabilities(
    input: Tensor, tightness: float = 1.0, dim: int = -1,
) -> Tensor:
    r"""Class probabilities that belong to scores of :func:`fitzpatrick_entmax15_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`entmax15` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["entmax15"]
    return probabilities(omega, tightness, input, dim)


def fitzpatrick_logistic_probabilities(
    input: Tensor, tightness: float = 1.0, dim: int = -1,
) -> Tensor:
    r"""Class probabilities that belong to scores of :func:`fitzpatrick_logistic_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`logistic` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["logistic"]
    return probabilities(omega, tightness, input, dim)


def fitzpatrick_sigmoid_probabilities(
    input: Tensor, tightness: float = 1.0, dim: int = -1,
) -> Tensor:
    r"""Probabilities of entries that belong to scores of :func:`fitzpatrick_sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sigmoid` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["sigmoid"]
    return probabilities(omega, tightness, input, dim)


def fitzpatrick_sparse_sigmoid_probabilities(
    input: Tensor, tightness: float = 1.0, dim: int = -1,
) -> Tensor:
    r"""Probabilities of entries that belong to scores of :func:`fitzpatrick_sparse_sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparse_sigmoid` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["sparse_sigmoid"]
    return probabilities(omega, tightness, input, dim)


def fitzpatrick_sparsemax_probabilities(
    input: Tensor, tightness: float = 1.0, dim: int = -1,
) -> Tensor:
    r"""Class probabilities that belong to scores of :func:`fitzpatrick_sparsemax_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparsemax` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["sparsemax"]
    return probabilities(omega, tightness, input, dim)


def logistic_probabilities(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Class probabilities that belong to scores of :func:`logistic_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`logistic` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["logistic"]
    return probabilities(omega, 0.0, input, dim)


def sigmoid_probabilities(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Probabilities of entries that belong to scores of :func:`sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sigmoid` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["sigmoid"]
    return probabilities(omega, 0.0, input, dim)


def sparse_sigmoid_probabilities(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Probabilities of entries that belong to scores of :func:`sparse_sigmoid_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparse_sigmoid` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["sparse_sigmoid"]
    return probabilities(omega, 0.0, input, dim)


def sparsemax_probabilities(
    input: Tensor, dim: int = -1,
) -> Tensor:
    r"""Class probabilities that belong to scores of :func:`sparsemax_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`sparsemax` is theirs at 0. Along
    ``dim``, differentiable, in the dtype of the scores.
    """
    omega = regularizers_by_name()["sparsemax"]
    return probabilities(omega, 0.0, input, dim)
