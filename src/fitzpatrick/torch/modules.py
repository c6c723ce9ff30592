"""Losses as ``torch.nn.Module``, one class for every name of the registry.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import FitzpatrickLogisticLoss
    >>> criterion = FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion
    FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion(torch.zeros(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
    >>> criterion.tightness = 0.5
    >>> criterion
    FitzpatrickLogisticLoss(tightness=0.5, label_smoothing=0.1)
"""

# Written by tools/write_torch.py: change that and run it again.
# Every class has methods of its own: torch.compile counts how often it compiles a function.
# fmt: off
# ruff: noqa: A002  # ``input`` is PyTorch's name

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._module import FenchelYoungLoss, FitzpatrickLoss, LossModule, NamedLinearLoss, NamedLoss

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = [
    "Entmax15Loss",
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


class NamedEntryLoss(NamedLoss):
    """A module of a loss entry by entry."""

    weight: Tensor | None
    reduction: str
    engine: str | None
    validate: bool | None


class NamedLinearClassLoss(NamedLinearLoss):
    """A module of a loss at class indices or proportions, of a linear layer."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    chunk_size: int | None
    accumulate_dtype: torch.dtype | None
    engine: str | None
    validate: bool | None
    process_group: "ProcessGroup | None"


class Entmax15Loss(NamedClassLoss):
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    A module; its options are those of :func:`.functional.entmax15_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import Entmax15Loss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> Entmax15Loss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.5879, -0.5882, 0.0003]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, dim: int | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("entmax15", weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, dim=dim, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickEntmax15Loss(NamedClassLoss):
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, at class indices or proportions.

    A module; its options are those of :func:`.functional.fitzpatrick_entmax15_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickEntmax15Loss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickEntmax15Loss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.2849, -0.2861, 0.0011]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, tightness: float = 1.0, dim: int | None = None,
        engine: str | None = None, validate: bool | None = None,
        process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("fitzpatrick_entmax15", weight=weight, ignore_index=ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing, dim=dim,
                         engine=engine, validate=validate, process_group=process_group)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickLogisticLoss(NamedClassLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickLogisticLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickLogisticLoss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.2298, -0.281, 0.0513]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, tightness: float = 1.0, dim: int | None = None,
        engine: str | None = None, validate: bool | None = None,
        process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("fitzpatrick_logistic", weight=weight, ignore_index=ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing, dim=dim,
                         engine=engine, validate=validate, process_group=process_group)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickPoissonLoss(NamedEntryLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_poisson_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickPoissonLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickPoissonLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.1017, 0.1575, 0.0451]
    """

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", *, tightness: float = 1.0,
        engine: str | None = None, validate: bool | None = None,
    ) -> None:
        super().__init__("fitzpatrick_poisson", weight=weight, reduction=reduction, engine=engine,
                         validate=validate)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSigmoidLoss(NamedEntryLoss):
    r"""Fitzpatrick loss of ``Bernoulli()``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSigmoidLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickSigmoidLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.0521, 0.0841, 0.0357]
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean",
        pos_weight: Tensor | None = None, *, tightness: float = 1.0, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__("fitzpatrick_sigmoid", weight=weight, reduction=reduction,
                         pos_weight=pos_weight, engine=engine, validate=validate)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSparseSigmoidLoss(NamedEntryLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_sparse_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSparseSigmoidLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickSparseSigmoidLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.0833, 0.0417, 0.0]
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean",
        pos_weight: Tensor | None = None, *, tightness: float = 1.0, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__("fitzpatrick_sparse_sigmoid", weight=weight, reduction=reduction,
                         pos_weight=pos_weight, engine=engine, validate=validate)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSparsemaxLoss(NamedClassLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.fitzpatrick_sparsemax_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSparsemaxLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickSparsemaxLoss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.3125, -0.3125, 0.0]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, tightness: float = 1.0, dim: int | None = None,
        engine: str | None = None, validate: bool | None = None,
        process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("fitzpatrick_sparsemax", weight=weight, ignore_index=ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing, dim=dim,
                         engine=engine, validate=validate, process_group=process_group)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class FitzpatrickSquaredLoss(NamedEntryLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    A module; its options are those of :func:`.functional.fitzpatrick_squared_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSquaredLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> FitzpatrickSquaredLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.0833, 0.0417, -0.1667]
    """

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", *, tightness: float = 1.0,
        engine: str | None = None, validate: bool | None = None,
    ) -> None:
        super().__init__("fitzpatrick_squared", weight=weight, reduction=reduction, engine=engine,
                         validate=validate)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LogisticLoss(NamedClassLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LogisticLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> LogisticLoss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.4995, -0.611, 0.1115]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, dim: int | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("logistic", weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, dim=dim, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class PerceptronLoss(NamedClassLoss):
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.perceptron_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import PerceptronLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> PerceptronLoss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [1.0, -1.0, 0.0]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, dim: int | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("perceptron", weight=weight, ignore_index=ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing, dim=dim,
                         engine=engine, validate=validate, process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class PoissonLoss(NamedEntryLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``, entry by entry.

    A module; its options are those of :func:`.functional.poisson_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import PoissonLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> PoissonLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.2162, 0.428, 0.1226]
    """

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", *, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__("poisson", weight=weight, reduction=reduction, engine=engine,
                         validate=validate)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SigmoidLoss(NamedEntryLoss):
    r"""Fenchel-Young loss of ``Bernoulli()``, entry by entry.

    A module; its options are those of :func:`.functional.sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SigmoidLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> SigmoidLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.1258, 0.1874, 0.0896]
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean",
        pos_weight: Tensor | None = None, *, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__("sigmoid", weight=weight, reduction=reduction, pos_weight=pos_weight,
                         engine=engine, validate=validate)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SparseSigmoidLoss(NamedEntryLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``, entry by entry.

    A module; its options are those of :func:`.functional.sparse_sigmoid_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SparseSigmoidLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> SparseSigmoidLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.1667, 0.0833, 0.0]
    """

    pos_weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean",
        pos_weight: Tensor | None = None, *, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__("sparse_sigmoid", weight=weight, reduction=reduction,
                         pos_weight=pos_weight, engine=engine, validate=validate)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SparsemaxLoss(NamedClassLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, at class indices or proportions.

    A module; its options are those of :func:`.functional.sparsemax_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SparsemaxLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> SparsemaxLoss()(scores, torch.tensor([1])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.625, -0.625, 0.0]
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, *, dim: int | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("sparsemax", weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, dim=dim, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class SquaredLoss(NamedEntryLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``, entry by entry.

    A module; its options are those of :func:`.functional.squared_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SquaredLoss
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> SquaredLoss()(scores, torch.tensor([[1.0, 0.0, 0.0]])).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.1667, 0.0833, -0.3333]
    """

    def __init__(
        self, weight: Tensor | None = None, reduction: str = "mean", *, engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__("squared", weight=weight, reduction=reduction, engine=engine,
                         validate=validate)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearEntmax15Loss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_entmax15_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearEntmax15Loss
        >>> head = LinearEntmax15Loss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("entmax15", in_features, num_classes, bias=bias, device=device,
                         dtype=dtype, weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearFitzpatrickEntmax15Loss(NamedLinearClassLoss):
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_fitzpatrick_entmax15_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearFitzpatrickEntmax15Loss
        >>> head = LinearFitzpatrickEntmax15Loss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("fitzpatrick_entmax15", in_features, num_classes, bias=bias, device=device,
                         dtype=dtype, weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearFitzpatrickLogisticLoss(NamedLinearClassLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_fitzpatrick_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearFitzpatrickLogisticLoss
        >>> head = LinearFitzpatrickLogisticLoss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("fitzpatrick_logistic", in_features, num_classes, bias=bias, device=device,
                         dtype=dtype, weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearFitzpatrickSparsemaxLoss(NamedLinearClassLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_fitzpatrick_sparsemax_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearFitzpatrickSparsemaxLoss
        >>> head = LinearFitzpatrickSparsemaxLoss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, tightness: float = 1.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("fitzpatrick_sparsemax", in_features, num_classes, bias=bias,
                         device=device, dtype=dtype, weight=weight, ignore_index=ignore_index,
                         reduction=reduction, label_smoothing=label_smoothing,
                         chunk_size=chunk_size, accumulate_dtype=accumulate_dtype, engine=engine,
                         validate=validate, process_group=process_group)
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearLogisticLoss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_logistic_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearLogisticLoss
        >>> head = LinearLogisticLoss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("logistic", in_features, num_classes, bias=bias, device=device,
                         dtype=dtype, weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearPerceptronLoss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_perceptron_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearPerceptronLoss
        >>> head = LinearPerceptronLoss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("perceptron", in_features, num_classes, bias=bias, device=device,
                         dtype=dtype, weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)


class LinearSparsemaxLoss(NamedLinearClassLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_sparsemax_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LinearSparsemaxLoss
        >>> head = LinearSparsemaxLoss(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
        self, in_features: int, num_classes: int, *, bias: bool = False,
        device: torch.device | str | int | None = None, dtype: torch.dtype | None = None,
        weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0, chunk_size: int | None = None,
        accumulate_dtype: torch.dtype | None = None, engine: str | None = None,
        validate: bool | None = None, process_group: "ProcessGroup | None" = None,
    ) -> None:
        super().__init__("sparsemax", in_features, num_classes, bias=bias, device=device,
                         dtype=dtype, weight=weight, ignore_index=ignore_index, reduction=reduction,
                         label_smoothing=label_smoothing, chunk_size=chunk_size,
                         accumulate_dtype=accumulate_dtype, engine=engine, validate=validate,
                         process_group=process_group)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)
