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
# ruff: noqa: A002  # ``input`` is PyTorch's name

from torch import Tensor

from . import functional
from ._losses import link as apply_link
from ._module import FenchelYoungLoss, FitzpatrickLoss, LossModule, NamedLoss

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
    "LogisticLoss",
    "LossModule",
    "PerceptronLoss",
    "PoissonLoss",
    "SigmoidLoss",
    "SparseSigmoidLoss",
    "SparsemaxLoss",
    "SquaredLoss",
]


class Entmax15Loss(NamedLoss):
    r"""Fenchel-Young loss of ``Tsallis(alpha=1.5)``.

    The options are those of ``cross_entropy``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: one weight per class. A class index weighs its class's weight, a row of proportions
            ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are
            as in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
            ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
        ignore_index: class index that counts for nothing; proportions have none.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        dim: axis of the classes.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: whether to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import Entmax15Loss
        >>> criterion = Entmax15Loss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.5266
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.5879, -0.5882, 0.0003]
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "entmax15",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.entmax15_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("entmax15", input, self.dim if dim is None else dim)


class FitzpatrickEntmax15Loss(NamedLoss):
    r"""Fitzpatrick loss of ``Tsallis(alpha=1.5)``.

    The options are those of ``cross_entropy``. With a tightness c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`Entmax15Loss` at c = 0. It is never negative, 0 exactly where the
    target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in
    y, too.

    Args:
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

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickEntmax15Loss
        >>> criterion = FitzpatrickEntmax15Loss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.249
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.2849, -0.2861, 0.0011]
        >>> FitzpatrickEntmax15Loss(tightness=0.5)
        FitzpatrickEntmax15Loss(tightness=0.5)
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        tightness: float = 1.0,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_entmax15",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_entmax15_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            tightness=self.tightness,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("entmax15", input, self.dim if dim is None else dim)


class FitzpatrickLogisticLoss(NamedLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Simplex())``.

    The options are those of ``cross_entropy``. With a tightness c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`LogisticLoss` at c = 0. It is never negative, 0 exactly where the
    target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in
    y, too.

    Args:
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

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickLogisticLoss
        >>> criterion = FitzpatrickLogisticLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.3908
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.2298, -0.281, 0.0513]
        >>> FitzpatrickLogisticLoss(tightness=0.5)
        FitzpatrickLogisticLoss(tightness=0.5)
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        tightness: float = 1.0,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_logistic",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_logistic_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            tightness=self.tightness,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("logistic", input, self.dim if dim is None else dim)


class FitzpatrickPoissonLoss(NamedLoss):
    r"""Fitzpatrick loss of ``Negentropy(domain=Orthant())``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``. With a tightness
    c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`PoissonLoss` at c = 0. It is never negative, 0 exactly where the
    target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in
    y, too.

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        tightness: c, any finite number that is not negative.
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickPoissonLoss
        >>> criterion = FitzpatrickPoissonLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.2263
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.1017, 0.1575, 0.0451]
        >>> FitzpatrickPoissonLoss(tightness=0.5)
        FitzpatrickPoissonLoss(tightness=0.5)
    """

    weight: Tensor | None
    reduction: str
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        *,
        tightness: float = 1.0,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_poisson",
            weight=weight,
            reduction=reduction,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_poisson_loss(
            input,
            target,
            self.weight,
            self.reduction,
            tightness=self.tightness,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("poisson", input, -1 if dim is None else dim)


class FitzpatrickSigmoidLoss(NamedLoss):
    r"""Fitzpatrick loss of ``Bernoulli()``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``. With a tightness
    c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`SigmoidLoss` at c = 0. It is never negative, 0 exactly where the
    target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in
    y, too.

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
            pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of
            the target pos_weight · y / (pos_weight · y + 1 − y).
        tightness: c, any finite number that is not negative.
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSigmoidLoss
        >>> criterion = FitzpatrickSigmoidLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.2142
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.0521, 0.0841, 0.0357]
        >>> FitzpatrickSigmoidLoss(tightness=0.5)
        FitzpatrickSigmoidLoss(tightness=0.5)
    """

    weight: Tensor | None
    reduction: str
    pos_weight: Tensor | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        *,
        tightness: float = 1.0,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_sigmoid",
            weight=weight,
            reduction=reduction,
            pos_weight=pos_weight,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_sigmoid_loss(
            input,
            target,
            self.weight,
            self.reduction,
            self.pos_weight,
            tightness=self.tightness,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("sigmoid", input, -1 if dim is None else dim)


class FitzpatrickSparseSigmoidLoss(NamedLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``. With a tightness
    c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`SparseSigmoidLoss` at c = 0. It is never negative, 0 exactly where
    the target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is
    convex in y, too.

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
            pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of
            the target pos_weight · y / (pos_weight · y + 1 − y).
        tightness: c, any finite number that is not negative.
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSparseSigmoidLoss
        >>> criterion = FitzpatrickSparseSigmoidLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.026
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.0833, 0.0417, 0.0]
        >>> FitzpatrickSparseSigmoidLoss(tightness=0.5)
        FitzpatrickSparseSigmoidLoss(tightness=0.5)
    """

    weight: Tensor | None
    reduction: str
    pos_weight: Tensor | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        *,
        tightness: float = 1.0,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_sparse_sigmoid",
            weight=weight,
            reduction=reduction,
            pos_weight=pos_weight,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_sparse_sigmoid_loss(
            input,
            target,
            self.weight,
            self.reduction,
            self.pos_weight,
            tightness=self.tightness,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("sparse_sigmoid", input, -1 if dim is None else dim)


class FitzpatrickSparsemaxLoss(NamedLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Simplex())``.

    The options are those of ``cross_entropy``. With a tightness c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`SparsemaxLoss` at c = 0. It is never negative, 0 exactly where the
    target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in
    y, too.

    Args:
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

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSparsemaxLoss
        >>> criterion = FitzpatrickSparsemaxLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.1953
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.3125, -0.3125, 0.0]
        >>> FitzpatrickSparsemaxLoss(tightness=0.5)
        FitzpatrickSparsemaxLoss(tightness=0.5)
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        tightness: float = 1.0,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_sparsemax",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_sparsemax_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            tightness=self.tightness,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("sparsemax", input, self.dim if dim is None else dim)


class FitzpatrickSquaredLoss(NamedLoss):
    r"""Fitzpatrick loss of ``SquaredNorm(domain=Reals())``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``. With a tightness
    c ≥ 0 it is one of a family,

    .. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    for scores θ and targets y, where y* attains the maximum: the Fitzpatrick loss at c = 1, the
    Fenchel-Young loss :class:`SquaredLoss` at c = 0. It is never negative, 0 exactly where the
    target is the link ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in
    y, too.

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        tightness: c, any finite number that is not negative.
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import FitzpatrickSquaredLoss
        >>> criterion = FitzpatrickSquaredLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.1094
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.0833, 0.0417, -0.1667]
        >>> FitzpatrickSquaredLoss(tightness=0.5)
        FitzpatrickSquaredLoss(tightness=0.5)
    """

    weight: Tensor | None
    reduction: str
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        *,
        tightness: float = 1.0,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "fitzpatrick_squared",
            weight=weight,
            reduction=reduction,
            engine=engine,
            validate=validate,
        )
        self.tightness = tightness

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.fitzpatrick_squared_loss(
            input,
            target,
            self.weight,
            self.reduction,
            tightness=self.tightness,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("squared", input, -1 if dim is None else dim)


class LogisticLoss(NamedLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Simplex())``.

    The options are those of ``cross_entropy``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: one weight per class. A class index weighs its class's weight, a row of proportions
            ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are
            as in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
            ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
        ignore_index: class index that counts for nothing; proportions have none.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        dim: axis of the classes.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: whether to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import LogisticLoss
        >>> criterion = LogisticLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.9441
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.4995, -0.611, 0.1115]
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "logistic",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.logistic_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("logistic", input, self.dim if dim is None else dim)


class PerceptronLoss(NamedLoss):
    r"""Fenchel-Young loss of ``Indicator(domain=Simplex())``.

    The options are those of ``cross_entropy``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: one weight per class. A class index weighs its class's weight, a row of proportions
            ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are
            as in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
            ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
        ignore_index: class index that counts for nothing; proportions have none.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        dim: axis of the classes.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: whether to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import PerceptronLoss
        >>> criterion = PerceptronLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.25
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [1.0, -1.0, 0.0]
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "perceptron",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.perceptron_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("perceptron", input, self.dim if dim is None else dim)


class PoissonLoss(NamedLoss):
    r"""Fenchel-Young loss of ``Negentropy(domain=Orthant())``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import PoissonLoss
        >>> criterion = PoissonLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.6002
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.2162, 0.428, 0.1226]
    """

    weight: Tensor | None
    reduction: str
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        *,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "poisson",
            weight=weight,
            reduction=reduction,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.poisson_loss(
            input,
            target,
            self.weight,
            self.reduction,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("poisson", input, -1 if dim is None else dim)


class SigmoidLoss(NamedLoss):
    r"""Fenchel-Young loss of ``Bernoulli()``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
            pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of
            the target pos_weight · y / (pos_weight · y + 1 − y).
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SigmoidLoss
        >>> criterion = SigmoidLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.5378
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.1258, 0.1874, 0.0896]
    """

    weight: Tensor | None
    reduction: str
    pos_weight: Tensor | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        *,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "sigmoid",
            weight=weight,
            reduction=reduction,
            pos_weight=pos_weight,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.sigmoid_loss(
            input,
            target,
            self.weight,
            self.reduction,
            self.pos_weight,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("sigmoid", input, -1 if dim is None else dim)


class SparseSigmoidLoss(NamedLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Box(lower=0.0, upper=1.0))``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        pos_weight: weight of the positive side of each target, broadcast to ``input``: a loss
            pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of
            the target pos_weight · y / (pos_weight · y + 1 − y).
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SparseSigmoidLoss
        >>> criterion = SparseSigmoidLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.0521
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.1667, 0.0833, 0.0]
    """

    weight: Tensor | None
    reduction: str
    pos_weight: Tensor | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        *,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "sparse_sigmoid",
            weight=weight,
            reduction=reduction,
            pos_weight=pos_weight,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.sparse_sigmoid_loss(
            input,
            target,
            self.weight,
            self.reduction,
            self.pos_weight,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("sparse_sigmoid", input, -1 if dim is None else dim)


class SparsemaxLoss(NamedLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Simplex())``.

    The options are those of ``cross_entropy``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: one weight per class. A class index weighs its class's weight, a row of proportions
            ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are
            as in ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight
            ⟨weight, q⟩, so that they and smoothed one-hot proportions are not the same.
        ignore_index: class index that counts for nothing; proportions have none.
        reduction: ``"mean"`` (over the total weight of class indices, over the number of rows of
            proportions), ``"sum"`` or ``"none"``.
        label_smoothing: ε in [0, 1]; targets become (1 − ε) target + ε / k.
        dim: axis of the classes.
        engine: ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for
            the faster one that is there.
        validate: whether to look at the targets' values: labels in range, proportions that sum to
            one. None looks on the CPU alone, since a GPU would have to wait. What is not looked at
            is not repaired: a label out of range makes its row NaN.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SparsemaxLoss
        >>> criterion = SparsemaxLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([1]))
        >>> round(loss.item(), 4)
        0.3906
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [0.625, -0.625, 0.0]
    """

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        dim: int | None = None,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "sparsemax",
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            dim=dim,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.sparsemax_loss(
            input,
            target,
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
            dim=self.dim,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("sparsemax", input, self.dim if dim is None else dim)


class SquaredLoss(NamedLoss):
    r"""Fenchel-Young loss of ``SquaredNorm(domain=Reals())``.

    Entry by entry; the options are those of ``binary_cross_entropy_with_logits``.

    .. math:: L(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
              \qquad \nabla_\theta L = \hat y(\theta) - y,

    for scores θ and targets y. It is never negative, and 0 exactly where the target is the link
    ŷ(θ).

    Args:
        weight: weights that can be broadcast to ``input``.
        reduction: ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
        engine: ``"reference"`` or None; there are no kernels for this loss.
        validate: whether to look at the targets' values; None looks on the CPU alone.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SquaredLoss
        >>> criterion = SquaredLoss()
        >>> scores = torch.tensor([[0.5, 0.25, -1.0]], requires_grad=True)
        >>> loss = criterion(scores, torch.tensor([[1.0, 0.0, 0.0]]))
        >>> round(loss.item(), 4)
        0.2188
        >>> loss.backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        [-0.1667, 0.0833, -0.3333]
    """

    weight: Tensor | None
    reduction: str
    engine: str | None
    validate: bool | None

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        *,
        engine: str | None = None,
        validate: bool | None = None,
    ) -> None:
        super().__init__(
            "squared",
            weight=weight,
            reduction=reduction,
            engine=engine,
            validate=validate,
        )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of scores ``input`` and ``target``."""
        return functional.squared_loss(
            input,
            target,
            self.weight,
            self.reduction,
            engine=self.engine,
            validate=self.validate,
        )

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        """The predictions ŷ(input) that belong to the scores, along the axis of the loss."""
        return apply_link("squared", input, -1 if dim is None else dim)
