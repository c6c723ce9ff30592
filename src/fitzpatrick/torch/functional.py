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
from ._docs import describe_function, describe_link
from ._handles import handle_of
from ._losses import Kind, class_loss, entry_loss, has_coins, kind_of, row_loss

LossFunction = Callable[..., Tensor]
LinkFunction = Callable[..., Tensor]

# By handle: the same function for the same loss, with what torch.compile made of it.
_LOSS_FUNCTIONS: dict[str, LossFunction] = {}
_LINK_FUNCTIONS: dict[str, LinkFunction] = {}


def own_code(function: Any) -> Any:
    """The function, with a code that no other function has.

    ``torch.compile`` counts how often it compiles a code, and gives up after eight.
    """
    function.__code__ = function.__code__.replace()
    return function


def apply_loss(handle: str, kind: Kind, input: Tensor, target: Tensor, **options: Any) -> Tensor:  # noqa: A002
    """The loss behind a handle, with the options of its kind."""
    if kind is Kind.CLASSES:
        return class_loss(handle, input, target, **options)
    if kind is Kind.ENTRIES:
        return entry_loss(handle, input, target, **options)
    return row_loss(handle, input, target, **options)


def apply_link(handle: str, kind: Kind, input: Tensor, dim: int | None) -> Tensor:  # noqa: A002
    """The link behind the handle of a Fenchel-Young loss, along an axis."""
    check_scores(input)
    if input.ndim == 0 and kind is Kind.ENTRIES:
        return apply_link(handle, kind, input.reshape(1), dim).reshape(())
    axis = class_dim(input, dim)
    if input.numel() == 0:
        return input.clone()
    moved = input.movedim(axis, -1)
    rows = link_rows(rows_along(input, axis), handle)
    return rows.reshape(moved.shape).movedim(-1, axis)


def loss_function(loss: Loss | str) -> LossFunction:
    """The function (input, target, …) ↦ loss of any loss of the core, or of a registry name.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> ball = fp.sets.L2Ball()
        >>> function = loss_function(fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(ball)))
        >>> function(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
        1.236...
    """
    loss = get_loss(loss)
    handle = handle_of(loss)
    if handle not in _LOSS_FUNCTIONS:
        _LOSS_FUNCTIONS[handle] = own_code(_loss_function(loss, handle))
    return _LOSS_FUNCTIONS[handle]


def _loss_function(loss: Loss, handle: str) -> LossFunction:
    """The function of a loss, with the options of its kind."""
    kind = kind_of(loss)
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


def link_function(loss: Loss | str) -> LinkFunction:
    """The function input ↦ ŷ(input), the predictions that belong to a loss, or to its name.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> entmax = link_function(fp.FenchelYoungLoss(fp.regularizers.Tsallis(1.25)))
        >>> entmax(torch.tensor([1.0, 1.0, -9.0]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    pair = FenchelYoungLoss(get_loss(loss).regularizer)
    handle = handle_of(pair)
    if handle not in _LINK_FUNCTIONS:
        _LINK_FUNCTIONS[handle] = own_code(_link_function(handle, kind_of(pair)))
    return _LINK_FUNCTIONS[handle]


def _link_function(handle: str, kind: Kind) -> LinkFunction:
    def link(input: Tensor, dim: int = -1) -> Tensor:  # noqa: A002
        return apply_link(handle, kind, input, dim)

    return link


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__module__ = __name__
    function.__doc__ = doc
    return function


def _losses() -> dict[str, LossFunction]:
    return {
        f"{name}_loss": _named(
            loss_function(get_loss(name)),
            f"{name}_loss",
            describe_function(get_loss(name), f"{name}_loss"),
        )
        for name in loss_names()
    }


def _links() -> dict[str, LinkFunction]:
    return {
        name: _named(
            link_function(get_loss(name)), name, describe_link(get_loss(name).regularizer, name)
        )
        for name in loss_names()
        if isinstance(get_loss(name), FenchelYoungLoss)
    }


_GENERATED = {**_losses(), **_links()}
globals().update(_GENERATED)

__all__ = ["link_function", "loss_function", *_GENERATED]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Tensor]: ...
