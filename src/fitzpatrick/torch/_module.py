"""Any loss as a ``torch.nn.Module``: the base class of the named modules, and modules of any Ω."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .. import losses as core
from .._validation import as_tightness
from ..regularizers import Regularizer
from ._arguments import as_chunk_size, as_class_index, check_accumulate_dtype, check_options
from ._engine import check_engine
from ._handles import handle_of, restore
from ._linear import linear_class_loss
from ._losses import link, loss_of_kind, supports_pos_weight

_BUFFERS = ("weight", "pos_weight")


def _option_defaults(function: Callable[..., Tensor], omega: Regularizer) -> dict[str, Any]:
    """The options of a function of a regularizer's losses, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    defaults.pop("linear_bias", None)  # a parameter of the module
    if not supports_pos_weight(omega):
        defaults.pop("pos_weight", None)
    return defaults


class LossModule(nn.Module):
    """A loss of the core as a module; its options are those of its function.

    Options are attributes, which may be changed. Weights are buffers: they move and are saved with
    the module.

    Args:
        loss: a loss of the core, or its registry name.
        **options: keyword arguments of ``functional.loss_function(loss)``.

    Attributes:
        regularizer: Ω.

    Example:
        >>> import fitzpatrick as fp
        >>> LossModule("sparsemax", reduction="sum")
        LossModule(FenchelYoungLoss(regularizer=SquaredNorm(domain=Simplex())), reduction='sum')
        >>> criterion = LossModule(fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3), tightness=0.5))
        >>> criterion.tightness = 2
        >>> criterion
        LossModule(FitzpatrickLoss(regularizer=Tsallis(alpha=1.3), tightness=2))
    """

    def __init__(self, loss: core.Loss | str, **options: Any) -> None:
        super().__init__()
        loss = core.get_loss(loss)
        omega = self.regularizer = loss.regularizer
        self._omega = handle_of(omega)
        self._tightness = loss.tightness
        self._is_fenchel_young = isinstance(loss, core.FenchelYoungLoss)
        self._defaults = _option_defaults(self._function(), omega)
        for option in options:
            if option not in self._defaults:
                raise TypeError(
                    f"{type(self).__name__} of {omega!r} has no option {option!r}; "
                    f"its options are {', '.join(self._defaults)}"
                )
        for name, default in self._defaults.items():
            value = options.get(name, default)
            if name not in _BUFFERS:
                setattr(self, name, value)
                continue
            if not (value is None or isinstance(value, Tensor)):
                raise TypeError(
                    f"{name} must be a tensor, got {type(value).__name__}; "
                    "convert it with torch.tensor()"
                )
            self.register_buffer(name, value)
        self._check_options()

    def _function(self) -> Callable[..., Tensor]:
        """What computes the loss, of a handle, a tightness, tensors and options."""
        return loss_of_kind(self.regularizer)

    def _check_options(self) -> None:
        options = self._options()
        check_engine(options.pop("engine"))
        options.pop("process_group", None)
        options.pop("dim", None)
        as_chunk_size(options.pop("chunk_size", None))
        options.pop("accumulate_dtype", None)
        if "ignore_index" in options:
            self.ignore_index = as_class_index(options.pop("ignore_index"))
        for name in _BUFFERS:
            options.pop(name, None)
        check_options(**options)

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._defaults}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # PyTorch's is not annotated
        self.regularizer = restore(self._omega, self.regularizer)

    @property
    def tightness(self) -> float:
        """0 for a Fenchel-Young loss, 1 for a Fitzpatrick loss that was given no other number."""
        return self._tightness

    @tightness.setter
    def tightness(self, tightness: float) -> None:
        if self._is_fenchel_young:
            raise AttributeError(
                f"{type(self).__name__} is a Fenchel-Young loss, of tightness 0; "
                "Fitzpatrick losses have other values"
            )
        self._tightness = as_tightness(tightness)

    @property
    def loss(self) -> core.Loss:
        """The loss of the core."""
        if self._is_fenchel_young:
            return core.FenchelYoungLoss(self.regularizer)
        return core.FitzpatrickLoss(self.regularizer, self._tightness)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of scores ``input`` and ``target``."""
        compute = self._function()
        return compute(self._omega, self._tightness, input, target, **self._options())

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:  # noqa: A002
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        if getattr(self, "process_group", None) is not None:
            raise NotImplementedError(
                "a link needs the scores of all classes; gather them from the process group and "
                "call the link's function, or a module without process_group"
            )
        dim = getattr(self, "dim", -1) if dim is None else dim
        return link(self._omega, input, dim)

    def _arguments(self) -> list[str]:
        """What the name of the class leaves open, as it is written."""
        return [repr(self.loss)]

    def _changed_tightness(self) -> list[str]:
        return [] if self.tightness == 1 else [f"tightness={self.tightness:g}"]

    def extra_repr(self) -> str:
        """The arguments that are not the default."""
        options = {name: getattr(self, name) for name in self._defaults if name not in _BUFFERS}
        changed = [f"{k}={value!r}" for k, value in options.items() if value != self._defaults[k]]
        return ", ".join(self._arguments() + changed)


class NamedLoss(LossModule):
    """The base class of the modules that are named after a loss of the registry."""

    def _arguments(self) -> list[str]:
        return [] if self._is_fenchel_young else self._changed_tightness()


class NamedLinearLoss(NamedLoss):
    """The base class of the modules with a linear layer, which are named after a loss.

    Attributes:
        linear: the layer, a ``torch.nn.Linear``.
    """

    num_classes: int
    linear: nn.Linear

    def __init__(
        self,
        loss: str,
        in_features: int,
        num_classes: int,
        *,
        bias: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(loss, **options)
        weight = options.get("weight")
        is_whole = options.get("process_group") is None
        if weight is not None and is_whole and weight.shape != (num_classes,):
            raise ValueError(
                f"weight must have one entry per class, ({num_classes},), got {tuple(weight.shape)}"
            )
        self.num_classes = num_classes
        self.linear = nn.Linear(in_features, num_classes, bias, device, dtype)
        check_accumulate_dtype(options.get("accumulate_dtype"), self.linear.weight.dtype)

    def _function(self) -> Callable[..., Tensor]:
        return linear_class_loss

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002
        """The loss of the scores that the layer has for features ``input``, and ``target``."""
        layer = self.linear
        if type(layer).forward is not nn.Linear.forward:
            raise TypeError(
                f"a head reads the weight and bias of its layer and does not call it, so that "
                f"linear must be a torch.nn.Linear, got {type(layer).__name__}; apply it yourself "
                "and use the plain loss"
            )
        return linear_class_loss(
            self._omega,
            self._tightness,
            input,
            layer.weight,
            target,
            linear_bias=layer.bias,
            **self._options(),
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:  # noqa: A002
        """The predictions ŷ that belong to features ``input``; these have all scores."""
        return super().link(self.linear(input), dim)

    def _arguments(self) -> list[str]:
        layer = self.linear
        shape = f"in_features={layer.in_features}", f"num_classes={self.num_classes}"
        return [*shape, f"bias={layer.bias is not None}", *super()._arguments()]


def _check_regularizer(regularizer: Regularizer) -> Regularizer:
    if not isinstance(regularizer, Regularizer):
        raise TypeError(
            f"regularizer must be a fitzpatrick.regularizers.Regularizer, such as Negentropy(), "
            f"got {regularizer!r}; for a loss, or the name of one, use LossModule"
        )
    return regularizer


class FenchelYoungLoss(LossModule):
    r"""Fenchel-Young loss of any regularizer: Ω(y) + Ω*(θ) − ⟨y, θ⟩.

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

    def _arguments(self) -> list[str]:
        return [repr(self.regularizer)]


class FitzpatrickLoss(LossModule):
    r"""Fitzpatrick loss of any regularizer: F[∂Ω](y, θ) − ⟨y, θ⟩.

    With a tightness c it is one of a family, the Fenchel-Young loss of the target-dependent
    regularizer Ω + c D_Ω(y, ·): the Fenchel-Young loss of Ω at c = 0, the Fitzpatrick loss at
    c = 1, and lower still beyond. The link is the same for all of them.

    Args:
        regularizer: Ω, from ``fitzpatrick.regularizers`` or your own.
        tightness: c, any finite number that is not negative.
        **options: as for :class:`FenchelYoungLoss`.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> ball = fp.regularizers.SquaredNorm(fp.sets.L2Ball())
        >>> scores, target = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> FitzpatrickLoss(ball)(scores, target).item()
        1.236...
        >>> criterion = FitzpatrickLoss(ball, tightness=0.5)
        >>> criterion(scores, target).item()
        1.5615...
        >>> criterion
        FitzpatrickLoss(SquaredNorm(domain=L2Ball(radius=1.0)), tightness=0.5)
    """

    def __init__(self, regularizer: Regularizer, tightness: float = 1.0, **options: Any) -> None:
        omega = _check_regularizer(regularizer)
        super().__init__(core.FitzpatrickLoss(omega, tightness), **options)

    def _arguments(self) -> list[str]:
        return [repr(self.regularizer), *self._changed_tightness()]
