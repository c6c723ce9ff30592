"""Losses as ``torch.nn.Module``, one class for every name of the registry.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import FitzpatrickLogisticLoss, LinearSparsemaxLoss
    >>> criterion = FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion
    FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion(torch.zeros(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
    >>> criterion.tightness = 0.5
    >>> criterion
    FitzpatrickLogisticLoss(tightness=0.5, label_smoothing=0.1)
    >>> head = LinearSparsemaxLoss(5, 3)
    >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
    >>> head.linear.weight.grad.shape
    torch.Size([3, 5])
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from .. import losses as core
from .._validation import as_tightness, check_order
from ..regularizers import Regularizer, Tsallis
from ..regularizers.norm import Norm
from ._arguments import as_chunk_size, as_integer, check_accumulate_dtype, check_options
from ._engines import check_engine
from ._entmax import link_along
from ._handles import handle_of, restore
from ._losses import linear_class_loss, loss_of_kind, option_defaults, supports_pos_weight
from ._sparse_targets import SparseTargets
from ._transform import as_scaling
from .activations import probabilities

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

_BUFFERS = ("weight", "pos_weight")


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
        self._defaults = option_defaults(self._function())
        if not supports_pos_weight(omega):
            self._defaults.pop("pos_weight", None)
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

        def check(function: Callable[..., Any], *names: str) -> None:
            function(**{name: options[name] for name in names if name in options})

        check(check_engine, "engine")
        check(as_chunk_size, "chunk_size")
        check(as_scaling, "temperature", "logit_scale", "softcap")
        check(check_options, "reduction", "label_smoothing", "validate")
        if "ignore_index" in options:
            self.ignore_index = as_integer(
                options["ignore_index"], "ignore_index must be a class index"
            )

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

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        compute = self._function()
        return compute(self._omega, self._tightness, input, target, **self._options())

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        if getattr(self, "process_group", None) is not None:
            raise NotImplementedError(
                "a link needs the scores of all classes; gather them from the process group and "
                "call the link's function, or a module without process_group"
            )
        dim = getattr(self, "dim", -1) if dim is None else dim
        return link_along(self._omega, input, dim)

    def probabilities(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The class probabilities that belong to the scores, along the axis of the loss."""
        if getattr(self, "process_group", None) is not None:
            raise NotImplementedError(
                "probabilities need the scores of all classes; gather them from the process group"
            )
        dim = getattr(self, "dim", -1) if dim is None else dim
        return probabilities(self.regularizer, self._tightness, input, dim)

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


class OrderLoss(LossModule):
    """The base class of the modules of a loss with an order α."""

    def _arguments(self) -> list[str]:
        alpha = f"alpha={self.regularizer.alpha:g}"  # type: ignore[attr-defined]
        return [alpha, f"tightness={self.tightness:g}"] if self.tightness else [alpha]


class NamedLoss(LossModule):
    """The base class of the modules that are named after a loss of the registry."""

    _name: ClassVar[str]

    def __init__(self, **options: Any) -> None:
        super().__init__(self._name, **options)

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
        in_features: int,
        num_classes: int,
        *,
        bias: bool = False,
        device: torch.device | str | int | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
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

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
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

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ that belong to features ``input``; these have all scores."""
        return super().link(self.linear(input), dim)

    def probabilities(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The class probabilities that belong to features ``input``; these have all scores."""
        return super().probabilities(self.linear(input), dim)

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
        tightness: c, 0 or a number from 1e-12 to 1e6.
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


class EntmaxLoss(OrderLoss):
    r"""Loss of an order α, with the link :func:`.functional.entmax`.

    A module; its options are those of :func:`.functional.entmax_loss`.
    """

    def __init__(
        self,
        alpha: float = 1.5,
        weight: Tensor | None = None,
        *,
        tightness: float = 0.0,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
        process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__(
            core.FitzpatrickLoss(Tsallis(check_order(alpha)), tightness),
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
            process_group=process_group,
        )

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)


class NormmaxLoss(OrderLoss):
    r"""Loss of an order α, with the link :func:`.functional.normmax`.

    A module; its options are those of :func:`.functional.normmax_loss`.
    """

    def __init__(
        self,
        alpha: float = 2.0,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            core.FenchelYoungLoss(Norm(alpha)),
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)


# Everything below is written by tools/write_front_ends.py: change that and run it again.
# fmt: off

__all__ = [
    "Entmax15Loss",
    "EntmaxLoss",
    "FenchelYoungLoss",
    "FitzpatrickEntmax15Loss",
    "FitzpatrickLogisticLoss",
    "FitzpatrickLoss",
    "FitzpatrickPoissonLoss",
    "FitzpatrickSigmoidLoss",
    "FitzpatrickSparseSigmoidLoss",
    "FitzpatrickSparsemaxLoss",
    "FitzpatrickSquaredLoss",
    "LinearEntmax15Loss",
    "LinearFitzpatrickEntmax15Loss",
    "LinearFitzpatrickLogisticLoss",
    "LinearFitzpatrickSparsemaxLoss",
    "LinearLogisticLoss",
    "LinearPerceptronLoss",
    "LinearSparsemaxLoss",
    "LogisticLoss",
    "LossModule",
    "NormmaxLoss",
    "PerceptronLoss",
    "PoissonLoss",
    "SigmoidLoss",
    "SparseSigmoidLoss",
    "SparsemaxLoss",
    "SquaredLoss",
]


class NamedClassLoss(NamedLoss):
    """A module of a loss at class indices or proportions."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None
    process_group: "ProcessGroup | None"
    temperature: float
    logit_scale: float | Tensor
    softcap: float | None
    return_stats: bool

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, dim: int | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
        temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
        return_stats: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, dim=dim, engine=engine, validate=validate,
                         process_group=process_group, temperature=temperature,
                         logit_scale=logit_scale, softcap=softcap, return_stats=return_stats)


class NamedEntryLoss(NamedLoss):
    """A module of a loss entry by entry."""

    weight: Tensor | None
    reduction: str
    engine: str | None
    validate: bool | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", *, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(weight=weight, reduction=reduction, engine=engine, validate=validate)


class NamedBinaryEntryLoss(NamedLoss):
    """A module of a loss entry by entry."""

    weight: Tensor | None
    reduction: str
    pos_weight: Tensor | None
    engine: str | None
    validate: bool | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean",
        pos_weight: Tensor | None = None, *, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight, engine=engine,
                         validate=validate)


class NamedLinearClassLoss(NamedLinearLoss):
    """A module of a loss of a linear layer."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    chunk_size: int | None
    accumulate_dtype: torch.dtype | None
    engine: str | None
    validate: bool | None
    process_group: "ProcessGroup | None"
    temperature: float
    logit_scale: float | Tensor
    softcap: float | None
    return_stats: bool

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
        temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
        return_stats: bool = False,
    ) -> None:
        super().__init__(in_features, num_classes, bias=bias, device=device, dtype=dtype,
                         weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group, temperature=temperature,
                         logit_scale=logit_scale, softcap=softcap, return_stats=return_stats)


class NamedTightClassLoss(NamedClassLoss):
    """A module of a loss at class indices or proportions, with a tightness."""

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, tightness: float = 1.0, dim: int | None = None,
        engine: str | None = None, validate: bool | None = None,
        process_group: "ProcessGroup | None" = None, temperature: float = 1.0,
        logit_scale: float | Tensor = 1.0, softcap: float | None = None, return_stats: bool = False,
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, dim=dim, engine=engine, validate=validate,
                         process_group=process_group, temperature=temperature,
                         logit_scale=logit_scale, softcap=softcap, return_stats=return_stats)
        self.tightness = as_tightness(tightness)


class NamedTightEntryLoss(NamedEntryLoss):
    """A module of a loss entry by entry, with a tightness."""

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", *, tightness: float = 1.0,
        engine: str | None = None, validate: bool | None = None,
    ) -> None:
        super().__init__(weight=weight, reduction=reduction, engine=engine, validate=validate)
        self.tightness = as_tightness(tightness)


class NamedTightBinaryEntryLoss(NamedBinaryEntryLoss):
    """A module of a loss entry by entry, with a tightness."""

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean",
        pos_weight: Tensor | None = None, *, tightness: float = 1.0, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(weight=weight, reduction=reduction, pos_weight=pos_weight, engine=engine,
                         validate=validate)
        self.tightness = as_tightness(tightness)


class NamedTightLinearClassLoss(NamedLinearClassLoss):
    """A module of a loss of a linear layer, with a tightness."""

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
        temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None,
        return_stats: bool = False,
    ) -> None:
        super().__init__(in_features, num_classes, bias=bias, device=device, dtype=dtype,
                         weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group, temperature=temperature,
                         logit_scale=logit_scale, softcap=softcap, return_stats=return_stats)
        self.tightness = as_tightness(tightness)


class Entmax15Loss(NamedClassLoss):
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    A module; its options are those of :func:`.functional.entmax15_loss`.
    """

    _name = "entmax15"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickEntmax15Loss(NamedTightClassLoss):
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    A module; its options are those of :func:`.functional.fitzpatrick_entmax15_loss`.
    """

    _name = "fitzpatrick_entmax15"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickLogisticLoss(NamedTightClassLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.fitzpatrick_logistic_loss`.
    """

    _name = "fitzpatrick_logistic"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickPoissonLoss(NamedTightEntryLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_poisson_loss`.
    """

    _name = "fitzpatrick_poisson"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSigmoidLoss(NamedTightBinaryEntryLoss):
    r"""Fitzpatrick loss of ``Bernoulli()``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_sigmoid_loss`.
    """

    _name = "fitzpatrick_sigmoid"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSparseSigmoidLoss(NamedTightBinaryEntryLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_sparse_sigmoid_loss`.
    """

    _name = "fitzpatrick_sparse_sigmoid"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSparsemaxLoss(NamedTightClassLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.fitzpatrick_sparsemax_loss`.
    """

    _name = "fitzpatrick_sparsemax"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSquaredLoss(NamedTightEntryLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_squared_loss`.
    """

    _name = "fitzpatrick_squared"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LogisticLoss(NamedClassLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.logistic_loss`.
    """

    _name = "logistic"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class PerceptronLoss(NamedClassLoss):
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.perceptron_loss`.
    """

    _name = "perceptron"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class PoissonLoss(NamedEntryLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``, entry by entry.

    A module; its options are those of :func:`.functional.poisson_loss`.
    """

    _name = "poisson"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SigmoidLoss(NamedBinaryEntryLoss):
    r"""Fenchel-Young loss of ``Bernoulli()``, entry by entry.

    A module; its options are those of :func:`.functional.sigmoid_loss`.
    """

    _name = "sigmoid"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SparseSigmoidLoss(NamedBinaryEntryLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    A module; its options are those of :func:`.functional.sparse_sigmoid_loss`.
    """

    _name = "sparse_sigmoid"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SparsemaxLoss(NamedClassLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.sparsemax_loss`.
    """

    _name = "sparsemax"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SquaredLoss(NamedEntryLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    A module; its options are those of :func:`.functional.squared_loss`.
    """

    _name = "squared"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearEntmax15Loss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_entmax15_loss`.
    """

    _name = "entmax15"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearFitzpatrickEntmax15Loss(NamedTightLinearClassLoss):
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_fitzpatrick_entmax15_loss`.
    """

    _name = "fitzpatrick_entmax15"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearFitzpatrickLogisticLoss(NamedTightLinearClassLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_fitzpatrick_logistic_loss`.
    """

    _name = "fitzpatrick_logistic"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearFitzpatrickSparsemaxLoss(NamedTightLinearClassLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_fitzpatrick_sparsemax_loss`.
    """

    _name = "fitzpatrick_sparsemax"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearLogisticLoss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_logistic_loss`.
    """

    _name = "logistic"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearPerceptronLoss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_perceptron_loss`.
    """

    _name = "perceptron"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearSparsemaxLoss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    A module; its options are those of :func:`.functional.linear_sparsemax_loss`.
    """

    _name = "sparsemax"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)
