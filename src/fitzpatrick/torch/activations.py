"""Links with a parameter, as functions and as ``torch.nn.Module``, for layers such as attention.

The functions are public in :mod:`fitzpatrick.torch.functional`.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import Sparsemax
    >>> Sparsemax()(torch.tensor([[2.0, 1.5, -1.0]]))
    tensor([[0.7500, 0.2500, 0.0000]])
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

import math
from typing import Any

import torch
from torch import Tensor, nn

from .._validation import as_tightness, check_order
from ..regularizers import Regularizer, Tsallis
from . import _arguments as arguments
from ._autograd import computed_loss
from ._engines import choose_engine, has_probability_kernel, launcher
from ._entmax import EntmaxCall, along, entmax_rows, link_along
from ._handles import handle_at
from ._losses import class_loss
from ._prepare import ClassOptions, prepare
from ._reference import widen
from ._targets import as_rows, rows_of_lists, scale_vector, working_dtype

__all__ = ["Budget", "Entmax", "Entmax15", "Normmax", "Sparsemax"]


def entmax(
    input: Tensor,
    alpha: float | Tensor = 1.5,
    dim: int = -1,
    *,
    mask: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    r"""α-entmax, the link of ``Tsallis(alpha)``: the soft argmax at α = 1, sparsemax at α = 2.

    .. math:: \operatorname{argmax}_{p \in \triangle} \; \langle p, \theta\rangle
              - \frac{\sum_i p_i^\alpha - 1}{\alpha (\alpha - 1)}

    Differentiable in ``input``, and in ``alpha`` if that is a tensor, any number of times.

    Args:
        input: scores.
        alpha: a number between 1 and 2, or a tensor that broadcasts to ``input`` with one entry in
            place of the classes: shape (heads, 1, 1) for scores (batch, heads, queries, keys).
            Values out of range are an error on a CPU and make rows NaN on a GPU.
        dim: axis of the classes; the losses have theirs in axis 1 unless told otherwise.
        mask: boolean, broadcast to ``input``, True where an entry is kept. The others are 0, and so
            is a row without any entry left; its gradient is 0.
        engine: ``"triton"`` or ``"reference"``; None chooses.

    Returns:
        The predictions, in the shape and dtype of ``input``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores = torch.tensor([[1.0, 0.5, -1.0]])
        >>> F.entmax(scores, 1.25)
        tensor([[0.6315, 0.3451, 0.0235]])
        >>> F.entmax(scores, 1.25, mask=torch.tensor([True, False, True]))
        tensor([[0.9443, 0.0000, 0.0557]])
    """
    arguments.check_scores(input)
    if not isinstance(alpha, Tensor):
        omega = handle_at(Tsallis, check_order(alpha))
        return link_along(omega, input, dim, mask=mask, engine=engine)
    arguments.check_parameters(alpha, input, "alpha", 1, 2)
    call = EntmaxCall("", 0.0, choose_engine(engine, input, "sparsemax"))
    return along(input, alpha, call, dim, mask)


def _along(
    kind: str,
    input: Tensor,
    parameter: float | Tensor,
    bounds: tuple[float, float],
    dim: int,
    mask: Tensor | None,
) -> Tensor:
    """A link of a kind that has no kernels, with its parameter checked if it is a tensor."""
    arguments.check_scores(input)
    if not isinstance(parameter, Tensor):
        return along(input, None, EntmaxCall("", float(parameter), "reference", kind), dim, mask)
    arguments.check_parameters(parameter, input, "budget" if kind == "budget" else "alpha", *bounds)
    return along(input, parameter, EntmaxCall("", 0.0, "reference", kind), dim, mask)


def probabilities(omega: Regularizer, tightness: float, input: Tensor, dim: int | None) -> Tensor:
    """The class probabilities that belong to scores along ``dim``, in the dtype of the scores."""
    arguments.check_scores(input)
    axis, c = arguments.class_dim(input, dim), as_tightness(tightness)
    if input.numel() == 0:
        return input.clone()

    def solve(theta: Tensor) -> Tensor:
        """The core's formulas, with classes in the last axis."""
        q: Tensor = omega.solve_probabilities(widen(theta), c)
        return q.to(theta.dtype)

    def pull_back(tensors: Any, _: Any, upstream: Tensor, __: Any) -> Any:
        """The derivatives of probabilities by a kernel are those of the formulas."""
        (theta,), graph = tensors, torch.is_grad_enabled()
        with torch.enable_grad():
            theta = theta if graph else theta.detach().requires_grad_()
            return torch.autograd.grad(solve(theta), theta, upstream, create_graph=graph)

    theta = input.movedim(axis, -1)
    if not (arguments.is_eager(input) and has_probability_kernel(omega, c, input)):
        return solve(theta).movedim(-1, axis)
    rows = arguments.rows_along(input, axis)
    q = launcher("probabilities").probabilities(rows.detach(), c)
    return computed_loss(q, pull_back, None, rows).reshape(theta.shape).movedim(-1, axis)


def budget(
    input: Tensor, budget: float | Tensor = 2.0, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparsemax with a budget: the point of :math:`[0, 1]^k` that sums to it and is nearest.

    Differentiable in ``input`` and, if it is a tensor, in ``budget``; second derivatives are 0.

    Args:
        input: scores; a class with the score −∞ is masked.
        budget: what the entries sum to, between 0 and the number of classes; a number, or a tensor
            that broadcasts to ``input`` with one entry in place of the classes.
        dim: axis of the classes.
        mask: boolean, broadcast to ``input``, True where an entry is kept. Where fewer classes than
            the budget are kept, each of them is 1.

    Returns:
        The predictions, in the shape and dtype of ``input``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> F.budget(torch.tensor([2.0, 0.9, 0.6, -1.0]), 2.0)
        tensor([1.0000, 0.6500, 0.3500, 0.0000])
    """
    arguments.check_scores(input)
    k = input.shape[arguments.class_dim(input, dim)]
    if not isinstance(budget, Tensor) and not 0 <= budget <= k:
        raise ValueError(f"budget must be between 0 and the number of classes, {k}, got {budget}")
    return _along("budget", input, budget, (0, k), dim, mask)


def _check_norm(alpha: float) -> None:
    if not 1 < alpha < math.inf:
        raise ValueError(f"alpha must be above 1, and finite, got {alpha}")


def normmax(
    input: Tensor, alpha: float | Tensor = 2.0, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""α-normmax, the link of the norm :math:`\|p\|_\alpha` on the simplex.

    Differentiable in ``input``, and in ``alpha`` if that is a tensor, any number of times.

    Args:
        input: scores; a class with the score −∞ is masked.
        alpha: above 1; a number, or a tensor that broadcasts to ``input`` with one entry in place
            of the classes.
        dim: axis of the classes.
        mask: boolean, broadcast to ``input``, True where an entry is kept, as in :func:`entmax`.

    Returns:
        The predictions, in the shape and dtype of ``input``.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> F.normmax(torch.tensor([0.5, 0.25, -1.0]))
        tensor([0.5898, 0.4102, 0.0000])
    """
    if not isinstance(alpha, Tensor):
        _check_norm(alpha)
    above_one = 1 + torch.finfo(torch.float32).eps
    return _along("normmax", input, alpha, (above_one, math.inf), dim, mask)


def entmax_class_loss(
    alpha: float | Tensor, tightness: float, input: Tensor, target: Tensor, **options: Any
) -> Tensor:
    """The loss of ``Tsallis(alpha)`` at class indices or proportions."""
    if isinstance(alpha, Tensor):
        if tightness != 0 or options["process_group"] is not None or options["engine"] == "triton":
            raise ValueError(
                "a tensor alpha is for a loss of tightness 0 by the reference engine in one "
                "process; pass a number"
            )
        return _loss_of_orders(input, target, alpha, ClassOptions(**options))
    return class_loss(handle_at(Tsallis, check_order(alpha)), tightness, input, target, **options)


def _tsallis(q: Tensor, alpha: Tensor) -> Tensor:
    """Ω(q) = Σ q (q^β − 1)/(α β) of each row, β = α − 1, which tends to Σ q log q."""
    log_q = torch.log(torch.where(q > 0, q, 1.0))
    t = (alpha - 1) * log_q
    is_small = t.abs() < 1e-3
    safe = torch.where(is_small, 1.0, t)
    series = 1 + t / 2 * (1 + t / 3 * (1 + t / 4 * (1 + t / 5)))  # (e^t − 1)/t
    return (q * log_q * torch.where(is_small, series, torch.expm1(safe) / safe) / alpha).sum(-1)


def _loss_of_orders(input: Tensor, target: Tensor, alpha: Tensor, options: ClassOptions) -> Tensor:
    """Ω(y) − Ω(p) + ⟨p − y, θ⟩, differentiable in α, which has the shape of class indices."""
    arguments.check_scores(input)
    rows = prepare("entmax15", 0.0, input, target, options)
    arguments.check_parameters(alpha, input, "alpha", 1, 2)
    if alpha.ndim not in (0, len(rows.shape)):
        raise ValueError(
            f"alpha must be one number, or have the shape of class indices, {tuple(rows.shape)}, "
            f"got {tuple(alpha.shape)}"
        )
    orders = arguments.expand_to(alpha, rows.shape, "alpha", "the shape of class indices")
    theta = arguments.rows_along(input, rows.axis)
    dtype, k = working_dtype(theta), theta.shape[1]
    theta = theta.to(dtype)
    y, scale, nan_of_no_rows = rows.weighing.weigh_all(rows.target, dtype)
    weights = scale_vector(scale, theta, rows.target, rows.call.ignore_index)
    y = as_rows(y, k)
    if y.ndim == 3:
        y = rows_of_lists(y, k, dtype)
    if y.ndim == 1:
        is_label = torch.arange(k, device=y.device) == y[:, None]
        weights = torch.where(y == rows.call.ignore_index, 0.0, weights)
        weights = torch.where(is_label.any(-1) | (weights == 0), weights, torch.nan)
        y = is_label
    theta = theta.masked_fill((weights == 0)[:, None], 0.0)  # rows that count for nothing
    orders = orders.reshape(-1)
    p = entmax_rows(theta, orders, None, EntmaxCall("", 0.0, "reference"))
    y, orders = y.to(dtype), orders.to(dtype)[:, None]
    shifted = theta - theta.detach().amax(-1, keepdim=True)
    # a masked class has neither, and the score −∞
    gap = (p - y) * torch.where((p == 0) & (y == 0), 0.0, shifted)
    loss = _tsallis(y, orders) - _tsallis(p, orders) + gap.sum(-1)
    loss = torch.where(loss < 0, loss - loss.detach(), loss)  # a rounding error
    loss = loss * weights
    loss = loss.reshape(rows.shape) if options.reduction == "none" else loss.sum()
    loss = loss if nan_of_no_rows is None else loss + nan_of_no_rows
    return loss.to(arguments.output_dtype(input))


class Entmax(nn.Module):
    r"""α-entmax along an axis; see :func:`.functional.entmax`.

    A learnable α is kept between 1 and 2 by a sigmoid: the parameter is log((α − 1)/(2 − α)).

    Args:
        alpha: a number, or a tensor of them, that broadcasts to the scores with one entry in place
            of the classes: shape (heads, 1, 1) for scores (batch, heads, queries, keys).
        dim: axis of the classes: the last one, as in attention. The links of the loss modules
            follow the losses, which have their classes in axis 1: on scores (N, C, H, W)
            ``SparsemaxLoss().link`` is ``Sparsemax(dim=1)``.
        learnable: True if α is a parameter, which starts at ``alpha``.

    Example:
        >>> import torch
        >>> layer = Entmax(torch.full((8, 1, 1), 1.5), learnable=True)  # one α per head
        >>> attention = layer(torch.zeros(2, 8, 5, 5), mask=torch.ones(5, 5).tril().bool())
        >>> attention[0, 0, 1]
        tensor([0.5000, 0.5000, 0.0000, 0.0000, 0.0000], grad_fn=<SelectBackward0>)
        >>> layer.alpha.shape
        torch.Size([8, 1, 1])
    """

    fixed_alpha: Tensor

    def __init__(
        self, alpha: float | Tensor = 1.5, dim: int = -1, *, learnable: bool = False
    ) -> None:
        super().__init__()
        self.dim = dim
        self.learnable = learnable
        self._number: float | None = None
        if not learnable and not isinstance(alpha, Tensor):
            self._number = check_order(alpha)
            return
        start = alpha if isinstance(alpha, Tensor) else torch.tensor(check_order(alpha))
        if not learnable:
            self.register_buffer("fixed_alpha", start)
            return
        if not start.is_meta and not bool(((start > 1) & (start < 2)).all()):
            raise ValueError("a learnable alpha must start strictly between 1 and 2")
        self.logit_alpha = nn.Parameter(torch.logit(start.detach().clone() - 1))

    @property
    def alpha(self) -> float | Tensor:
        """α as it is now."""
        if self._number is not None:
            return self._number
        return 1 + torch.sigmoid(self.logit_alpha) if self.learnable else self.fixed_alpha

    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:
        """The predictions; entries where ``mask`` is False are 0."""
        return entmax(input, self.alpha, self.dim, mask=mask)

    def extra_repr(self) -> str:
        alpha = self.alpha
        shown = f"{alpha:g}" if isinstance(alpha, float) else f"shape {tuple(alpha.shape)}"
        return f"alpha={shown}, dim={self.dim}" + (", learnable=True" if self.learnable else "")


class Sparsemax(Entmax):
    """Sparsemax along an axis: the distribution nearest to the scores."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(2.0, dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Entmax15(Entmax):
    """1.5-entmax along an axis."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(1.5, dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Normmax(nn.Module):
    """α-normmax along an axis; see :func:`.functional.normmax`.

    Args:
        alpha: the order, above 1.
        dim: axis of the classes.

    Example:
        >>> import torch
        >>> Normmax()(torch.tensor([0.5, 0.25, -1.0]))
        tensor([0.5898, 0.4102, 0.0000])
    """

    def __init__(self, alpha: float = 2.0, dim: int = -1) -> None:
        super().__init__()
        _check_norm(alpha)
        self.alpha, self.dim = alpha, dim

    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:
        """The predictions; entries where ``mask`` is False are 0."""
        return normmax(input, self.alpha, self.dim, mask=mask)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha:g}, dim={self.dim}"


class Budget(nn.Module):
    """Sparsemax with a budget; see :func:`.functional.budget`.

    Args:
        budget: what the entries sum to.
        dim: axis of the classes.

    Example:
        >>> import torch
        >>> Budget(2.0)(torch.tensor([2.0, 0.9, 0.6, -1.0]))
        tensor([1.0000, 0.6500, 0.3500, 0.0000])
    """

    def __init__(self, budget: float = 2.0, dim: int = -1) -> None:
        super().__init__()
        if not (budget >= 0 and math.isfinite(budget)):
            raise ValueError(f"budget must be a finite number that is not negative, got {budget}")
        self.budget, self.dim = budget, dim

    def forward(self, input: Tensor, mask: Tensor | None = None) -> Tensor:
        """The predictions; entries where ``mask`` is False are 0."""
        return budget(input, self.budget, self.dim, mask=mask)

    def extra_repr(self) -> str:
        return f"budget={self.budget:g}, dim={self.dim}"
