r"""Losses and links as functions of tensors, one of each for every name of the registry.

A loss is its registry name plus ``_loss``; a link has the plain name of its Fenchel-Young loss
(:func:`sparsemax`, :func:`entmax15`, ``logistic`` for the soft argmax, …). Losses on the simplex
take the arguments of :func:`torch.nn.functional.cross_entropy`, losses of separate entries those of
:func:`torch.nn.functional.binary_cross_entropy_with_logits`.

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

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..losses import FenchelYoungLoss, Loss, get_loss, loss_names
from ._arguments import check_scores, class_dim, rows_along
from ._autograd import link_rows
from ._handles import handle_of
from ._losses import Kind, class_loss, entry_loss, has_coins, kind_of, row_loss

LossFunction = Callable[..., Tensor]
LinkFunction = Callable[..., Tensor]


_CLASS_DOC = """{title}, on the simplex, with the arguments of ``cross_entropy``.

{body}

Args:
    input: scores; classes in axis 1 (axis 0 of a vector), or in ``dim``. Half precision is computed
        in float32. A class with the score −∞ is masked.
    target: class indices, with the shape of ``input`` without its classes, or proportions, with the
        shape of ``input``.
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

The loss is differentiable twice in ``input``, and in a ``weight`` that leaves the target as it is.

Returns:
    The loss, non-negative and 0 exactly where the target is the link of the scores. Smoothed
    targets and proportions count Ω(target), which ``cross_entropy`` leaves out.
"""

_ENTRY_DOC = """{title}, entry by entry, with the arguments of ``binary_cross_entropy_with_logits``.

{body}

Args:
    input: scores, of any shape. Half precision is computed in float32.
    target: numbers in {domain}, with the shape of ``input``.
    weight: weights that can be broadcast to ``input``.
    reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
{pos_weight}    engine: ``"reference"`` or None; there are no kernels for this loss.
    validate: whether to look at the targets' values; None looks on the CPU alone.

Returns:
    The loss, non-negative and 0 exactly where the target is the link of the scores. It counts
    Ω(target), a constant that ``binary_cross_entropy_with_logits`` leaves out for targets between
    0 and 1.
"""

_POS_WEIGHT_DOC = """\
    pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
        pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of the
        target pos_weight · y / (pos_weight · y + 1 − y).
"""

_ROW_DOC = """{title}, vector by vector.

{body}

Args:
    input: scores, vectors along ``dim``. Half precision is computed in float32.
    target: vectors of {domain}, with the shape of ``input``.
    reduction: ``"mean"`` (over vectors), ``"sum"`` or ``"none"``.
    dim: axis of the vectors.
    engine: ``"reference"`` or None; there are no kernels for this loss.
    validate: whether to look at the targets' values; None looks on the CPU alone.

Returns:
    The loss, non-negative and 0 exactly where the target is the link of the scores.
"""


def describe(loss: Loss, name: str) -> str:
    """The docstring of the function, or module, of a loss."""
    pair = "Fenchel-Young" if isinstance(loss, FenchelYoungLoss) else "Fitzpatrick"
    title = f"{pair} loss of {loss.regularizer!r}"
    domain = repr(loss.regularizer.domain)
    coins = _POS_WEIGHT_DOC if has_coins(loss) else ""
    doc = {Kind.CLASSES: _CLASS_DOC, Kind.ENTRIES: _ENTRY_DOC, Kind.ROWS: _ROW_DOC}[kind_of(loss)]
    body = f'The loss ``fitzpatrick.get_loss("{name}")`` of tensors, with its link as predictions.'
    return doc.format(title=title, body=body, domain=domain, pos_weight=coins)


def apply_loss(handle: str, kind: Kind, input: Tensor, target: Tensor, **options: Any) -> Tensor:  # noqa: A002
    """The loss behind a handle, with the options of its kind."""
    if kind is Kind.CLASSES:
        return class_loss(handle, input, target, **options)
    if kind is Kind.ENTRIES:
        return entry_loss(handle, input, target, **options)
    return row_loss(handle, input, target, **options)


def loss_function(loss: Loss) -> LossFunction:
    """The function (input, target, …) ↦ loss of any loss of the core.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> ball = fp.sets.L2Ball()
        >>> function = loss_function(fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(ball)))
        >>> function(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
        1.236...
    """
    handle, kind = handle_of(loss), kind_of(loss)
    if kind is Kind.CLASSES:

        def classes(
            input: Tensor,  # noqa: A002
            target: Tensor,
            weight: Tensor | None = None,
            ignore_index: int = -100,
            reduction: str = "mean",
            label_smoothing: float = 0.0,
            dim: int | None = None,
            engine: str | None = None,
            validate: bool | None = None,
        ) -> Tensor:
            return class_loss(
                handle,
                input,
                target,
                weight,
                ignore_index,
                reduction,
                label_smoothing,
                dim,
                engine,
                validate,
            )

        return classes
    if kind is Kind.ROWS:

        def rows(
            input: Tensor,  # noqa: A002
            target: Tensor,
            reduction: str = "mean",
            dim: int = -1,
            engine: str | None = None,
            validate: bool | None = None,
        ) -> Tensor:
            return row_loss(handle, input, target, reduction, dim, engine, validate)

        return rows
    if has_coins(loss):

        def coins(
            input: Tensor,  # noqa: A002
            target: Tensor,
            weight: Tensor | None = None,
            reduction: str = "mean",
            pos_weight: Tensor | None = None,
            engine: str | None = None,
            validate: bool | None = None,
        ) -> Tensor:
            return entry_loss(
                handle, input, target, weight, reduction, pos_weight, engine, validate
            )

        return coins

    def entries(
        input: Tensor,  # noqa: A002
        target: Tensor,
        weight: Tensor | None = None,
        reduction: str = "mean",
        engine: str | None = None,
        validate: bool | None = None,
    ) -> Tensor:
        return entry_loss(handle, input, target, weight, reduction, None, engine, validate)

    return entries


def link_function(loss: Loss) -> LinkFunction:
    """The function input ↦ ŷ(input), the predictions that belong to a loss of the core.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> entmax = link_function(fp.FenchelYoungLoss(fp.regularizers.Tsallis(1.25)))
        >>> entmax(torch.tensor([1.0, 1.0, -9.0]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    handle = handle_of(FenchelYoungLoss(loss.regularizer))

    def link(input: Tensor, dim: int = -1) -> Tensor:  # noqa: A002
        check_scores(input)
        axis = class_dim(input, dim)
        if input.numel() == 0:
            return input.clone()
        moved = input.movedim(axis, -1)
        rows = link_rows(rows_along(input, axis), handle)
        return rows.reshape(moved.shape).movedim(-1, axis)

    return link


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = doc
    return function


_LINK_DOC = """Link of {omega!r}: the predictions ŷ(input) = ∇Ω*(input).

Args:
    input: scores. Half precision is computed in float32.
    dim: axis of the classes.

Returns:
    A tensor like ``input``, differentiable once.
"""


def _losses() -> dict[str, LossFunction]:
    return {
        f"{name}_loss": _named(
            loss_function(get_loss(name)), f"{name}_loss", describe(get_loss(name), name)
        )
        for name in loss_names()
    }


def _links() -> dict[str, LinkFunction]:
    return {
        name: _named(
            link_function(get_loss(name)), name, _LINK_DOC.format(omega=get_loss(name).regularizer)
        )
        for name in loss_names()
        if isinstance(get_loss(name), FenchelYoungLoss)
    }


_GENERATED = {**_losses(), **_links()}
globals().update(_GENERATED)

__all__ = ["link_function", "loss_function", *_GENERATED]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Tensor]: ...
