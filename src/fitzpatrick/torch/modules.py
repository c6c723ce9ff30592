"""Losses as ``torch.nn.Module``, one class for every name of the registry.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import FitzpatrickLogisticLoss
    >>> criterion = FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion
    FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion(torch.zeros(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
"""

import inspect
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from .. import losses as core
from ..regularizers import Regularizer
from . import functional
from ._arguments import as_class_index, check_options
from ._docs import describe_module
from ._engine import check_engine
from ._handles import handle_of, restore
from ._losses import kind_of

_BUFFERS = ("weight", "pos_weight")


class LossModule(nn.Module):
    """A loss of the core as a module; its options are those of its function.

    Options are attributes, which may be changed. Weights are buffers: they move and are saved with
    the module.

    Args:
        loss: a loss of the core, or its registry name.
        **options: keyword arguments of ``functional.loss_function(loss)``.

    Example:
        >>> LossModule("sparsemax", reduction="sum")
        LossModule(SquaredNorm(domain=Simplex()), reduction='sum')
    """

    def __init__(self, loss: core.Loss | str, **options: Any) -> None:
        super().__init__()
        loss = core.get_loss(loss)
        known = dict([*inspect.signature(functional.loss_function(loss)).parameters.items()][2:])
        for option in options:
            if option not in known:
                raise TypeError(
                    f"{type(self).__name__} of {loss!r} has no option {option!r}; "
                    f"its options are {', '.join(known)}"
                )
        self.loss = loss
        self._handle, self._kind = handle_of(loss), kind_of(loss)
        self._link_handle = handle_of(core.FenchelYoungLoss(loss.regularizer))
        self._weights = tuple(name for name in _BUFFERS if name in known)
        self._defaults = {name: known[name].default for name in known if name not in _BUFFERS}
        for name, default in self._defaults.items():
            setattr(self, name, options.get(name, default))
        for name in self._weights:
            weights = options.get(name)
            if not (weights is None or isinstance(weights, Tensor)):
                raise TypeError(
                    f"{name} must be a tensor, got {type(weights).__name__}; "
                    "convert it with torch.tensor()"
                )
            self.register_buffer(name, weights)
        chosen = self._options()
        check_engine(chosen.pop("engine"))
        chosen.pop("dim", None)
        if "ignore_index" in chosen:
            self.ignore_index = as_class_index(chosen.pop("ignore_index"))
        check_options(**chosen)

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._defaults}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # PyTorch's is not annotated
        self.loss = restore(self._handle, self.loss)
        restore(self._link_handle, core.FenchelYoungLoss(self.loss.regularizer))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of scores ``input`` and ``target``."""
        weights = {name: getattr(self, name) for name in self._weights}
        return functional.apply_loss(
            self._handle, self._kind, input, target, **weights, **self._options()
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:  # noqa: A002
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        dim = self._options().get("dim", -1) if dim is None else dim
        return functional.apply_link(self._link_handle, self._kind, input, dim)

    def extra_repr(self) -> str:
        regularizer = [repr(self.loss.regularizer)] if type(self) in _ANY_REGULARIZER else []
        changed = [
            f"{name}={value!r}"
            for name, value in self._options().items()
            if value != self._defaults[name]
        ]
        return ", ".join(regularizer + changed)


def _check_regularizer(regularizer: Regularizer) -> Regularizer:
    if not isinstance(regularizer, Regularizer):
        raise TypeError(
            f"regularizer must be a fitzpatrick.regularizers.Regularizer, such as Negentropy(), "
            f"got {regularizer!r}; for a loss, or the name of one, use LossModule"
        )
    return regularizer


class FenchelYoungLoss(LossModule):
    r"""Fenchel-Young loss of any regulariser: Ω(y) + Ω*(θ) − ⟨y, θ⟩.

    Args:
        regularizer: Ω, from ``fitzpatrick.regularizers`` or your own.
        **options: keyword arguments of the loss's function: those of ``cross_entropy`` on the
            simplex, of ``binary_cross_entropy_with_logits`` for separate entries, ``reduction`` and
            ``dim`` on other sets; everywhere ``engine`` and ``validate``.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> criterion = FenchelYoungLoss(fp.regularizers.Tsallis(1.25), reduction="sum")
        >>> criterion(torch.zeros(1, 4), torch.tensor([3])).item()
        0.93...
    """

    def __init__(self, regularizer: Regularizer, **options: Any) -> None:
        super().__init__(core.FenchelYoungLoss(_check_regularizer(regularizer)), **options)


class FitzpatrickLoss(LossModule):
    r"""Fitzpatrick loss of any regulariser: F[∂Ω](y, θ) − ⟨y, θ⟩.

    Args:
        regularizer: Ω, from ``fitzpatrick.regularizers`` or your own.
        **options: as for :class:`FenchelYoungLoss`.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> criterion = FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
        >>> criterion(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
        1.236...
    """

    def __init__(self, regularizer: Regularizer, **options: Any) -> None:
        super().__init__(core.FitzpatrickLoss(_check_regularizer(regularizer)), **options)


_ANY_REGULARIZER = (LossModule, FenchelYoungLoss, FitzpatrickLoss)


def module_name(name: str) -> str:
    """The class of a registry name.

    Example:
        >>> module_name("fitzpatrick_sparse_sigmoid")
        'FitzpatrickSparseSigmoidLoss'
    """
    return "".join(word.capitalize() for word in name.split("_")) + "Loss"


def _module_class(name: str) -> type[LossModule]:
    loss, own_name = core.get_loss(name), module_name(name)
    options = [*inspect.signature(functional.loss_function(loss)).parameters.values()][2:]
    constructor = inspect.Signature(options)
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)

    def __init__(self: LossModule, *args: Any, **options: Any) -> None:  # noqa: N807
        try:
            bound = constructor.bind(*args, **options)
        except TypeError as error:
            known = ", ".join(constructor.parameters)
            raise TypeError(f"{own_name}: {error}; its options are {known}") from None
        LossModule.__init__(self, loss, **bound.arguments)

    # what help() and inspect.signature() show
    __init__.__signature__ = inspect.Signature([me, *options], return_annotation=None)  # type: ignore[attr-defined]  # functions may have one
    __init__.__qualname__ = f"{own_name}.__init__"

    def forward(self: LossModule, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        return LossModule.forward(self, input, target)

    def link(self: LossModule, input: Tensor, dim: int | None = None) -> Tensor:  # noqa: A002
        return LossModule.link(self, input, dim)

    for method in (forward, link):
        functional.own_code(method)
        method.__qualname__ = f"{own_name}.{method.__name__}"
        method.__doc__ = getattr(LossModule, method.__name__).__doc__
    members = {
        "__init__": __init__,
        "forward": forward,
        "link": link,
        "__doc__": describe_module(loss, own_name),
        "__module__": __name__,
    }
    return type(own_name, (LossModule,), members)


_GENERATED = {module_name(name): _module_class(name) for name in core.loss_names()}
globals().update(_GENERATED)

__all__ = ["FenchelYoungLoss", "FitzpatrickLoss", "LossModule", *_GENERATED]

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[LossModule]: ...
