r"""Functions that have a parameter beside the scores: α-entmax and its losses, budget, normmax."""

# ruff: noqa: A002  # ``input`` is PyTorch's name

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from .._validation import check_order
from ..engines.triton.scale import working_dtype
from ..regularizers import Tsallis
from ._arguments import check_scores, check_weight, class_dim, expand_over_rows
from ._autograd import apply
from ._handles import handle_of
from ._losses import class_loss
from ._losses import entmax as _entmax


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
        dim: axis of the classes.
        mask: boolean, broadcast to ``input``, True where an entry is kept. The others are 0, and so
            is a row without any entry left; its gradient is 0.
        engine: ``"triton"`` or ``"reference"``; None chooses.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores = torch.tensor([[1.0, 0.5, -1.0]])
        >>> F.entmax(scores, 1.25)
        tensor([[0.6315, 0.3451, 0.0235]])
        >>> alpha = torch.tensor([[1.25]], requires_grad=True)
        >>> F.entmax(scores, alpha)[0, 0].backward()
        >>> alpha.grad
        tensor([[0.2300]])
        >>> F.entmax(scores, 1.25, mask=torch.tensor([True, False, True]))
        tensor([[0.9443, 0.0000, 0.0557]])
    """
    return _entmax(input, alpha, dim, mask=mask, engine=engine)


def entmax_loss(
    input: Tensor, target: Tensor, alpha: float = 1.5, *, tightness: float = 0.0, **options: Any
) -> Tensor:
    """Fenchel-Young loss of ``Tsallis(alpha)``, whose link is :func:`entmax`, and its family.

    Args:
        input: scores.
        target: class indices or proportions.
        alpha: a number between 1 and 2.
        tightness: 0 for the Fenchel-Young loss, 1 for the Fitzpatrick loss, or between and beyond.
        **options: as in :func:`entmax15_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])
        >>> round(F.entmax_loss(scores, target, 1.25).item(), 4)
        0.6659
    """
    return class_loss(handle_of(Tsallis(check_order(alpha))), tightness, input, target, **options)


def fitzpatrick_entmax_loss(
    input: Tensor, target: Tensor, alpha: float = 1.5, *, tightness: float = 1.0, **options: Any
) -> Tensor:
    """Fitzpatrick loss of ``Tsallis(alpha)``: :func:`entmax_loss` at the tightness 1 by default."""
    return entmax_loss(input, target, alpha, tightness=tightness, **options)


class _OnceDifferentiable(Function):
    """A function whose derivative is that of one differentiable step at its solution."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, parameter: Tensor, solve: Callable[..., Tensor]) -> Tensor:
        ctx.save_for_backward(x, parameter)
        ctx.solve = solve
        return solve(x, parameter)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        inputs = [
            x.detach().requires_grad_(needed)
            for x, needed in zip(ctx.saved_tensors, ctx.needs_input_grad, strict=False)
        ]
        with torch.enable_grad():
            out = ctx.solve(*inputs)
            wanted = [x for x in inputs if x.requires_grad]
            found = iter(torch.autograd.grad(out, wanted, upstream))
        return *[next(found) if x.requires_grad else None for x in inputs], None


def _along(
    input: Tensor,
    parameter: float | Tensor,
    name: str,
    dim: int,
    solve: Callable[..., Tensor],
) -> Tensor:
    """A function of rows along an axis, in working precision."""
    check_scores(input)
    axis = class_dim(input, dim)
    x = input.to(working_dtype(input)).movedim(axis, -1)
    if isinstance(parameter, Tensor):
        check_weight(parameter, input, name)
        parameter = expand_over_rows(parameter, input, axis, name).to(x.dtype)
    else:
        parameter = torch.full((), float(parameter), dtype=x.dtype, device=x.device)
    return apply(_OnceDifferentiable, x, parameter, solve).movedim(-1, axis).to(input.dtype)


def _bisect(low: Tensor, high: Tensor, is_below: Callable[[Tensor], Tensor]) -> Tensor:
    """The middle of what is left of an interval, which the root is in, at working precision."""
    steps = 30 if low.dtype == torch.float32 else 60
    for _ in range(steps):
        middle = (low + high) / 2
        below = is_below(middle)
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2


def _solve_budget(x: Tensor, total: Tensor) -> Tensor:
    with torch.no_grad():
        low, high = x.amin(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
        tau = _bisect(low, high, lambda tau: (x - tau).clamp(0, 1).sum(-1, keepdim=True) >= total)
        free = ((x > tau) & (x < tau + 1)).to(x.dtype)
    # one Newton step, exact where the free entries are known
    excess = (x - tau).clamp(0, 1).sum(-1, keepdim=True) - total
    tau = tau + excess / free.sum(-1, keepdim=True).clamp_min(1)
    return (x - tau).clamp(0, 1)


def budget(
    input: Tensor,
    budget: float | Tensor = 2.0,
    dim: int = -1,
) -> Tensor:
    r"""Sparsemax with a budget: the point of :math:`[0, 1]^k` that sums to it and is nearest.

    Differentiable once, in ``input`` and, if it is a tensor, in ``budget``.

    Args:
        input: scores.
        budget: what the entries sum to, between 0 and the number of classes; a number, or a tensor
            that broadcasts to ``input`` with one entry in place of the classes.
        dim: axis of the classes.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> F.budget(torch.tensor([2.0, 0.9, 0.6, -1.0]), 2.0)
        tensor([1.0000, 0.6500, 0.3500, 0.0000])
    """
    check_scores(input)
    k = input.shape[class_dim(input, dim)]
    if not isinstance(budget, Tensor) and not 0 <= budget <= k:
        raise ValueError(f"budget must be between 0 and the number of classes, {k}, got {budget}")
    return _along(input, budget, "budget", dim, _solve_budget)


def _solve_normmax(x: Tensor, alpha: Tensor) -> Tensor:
    with torch.no_grad():
        exponent = alpha / (alpha - 1)
        top = x.amax(-1, keepdim=True)
        least = x.shape[-1] ** (1 / alpha.to(x.dtype) - 1)  # k^(−1/exponent)
        tau = _bisect(top - 1, top - least, lambda tau: _sum_of_powers(x - tau, exponent) >= 1)
    # a differentiable Newton step for Σ r^exponent = 1, r = (x − τ)₊
    exponent = alpha / (alpha - 1)
    with torch.no_grad():
        slope = exponent * _sum_of_powers(x - tau, exponent - 1)
    tau = tau + (_sum_of_powers(x - tau, exponent) - 1) / slope
    r = x - tau
    p = torch.where(r > 0, torch.where(r > 0, r, 1.0) ** (1 / (alpha - 1)), 0.0)
    return p / p.sum(-1, keepdim=True)


def _sum_of_powers(r: Tensor, exponent: Tensor) -> Tensor:
    safe = torch.where(r > 0, r, 1.0)
    return torch.where(r > 0, safe**exponent, 0.0).sum(-1, keepdim=True)


def normmax(
    input: Tensor,
    alpha: float | Tensor = 2.0,
    dim: int = -1,
) -> Tensor:
    r"""α-normmax, the link of the norm :math:`\|p\|_\alpha` on the simplex.

    Differentiable once, in ``input`` and, if it is a tensor, in ``alpha``.

    Args:
        input: scores.
        alpha: above 1; a number, or a tensor that broadcasts to ``input`` with one entry in place
            of the classes.
        dim: axis of the classes.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> F.normmax(torch.tensor([0.5, 0.25, -1.0]))
        tensor([0.5898, 0.4102, 0.0000])
    """
    if not isinstance(alpha, Tensor) and not alpha > 1:
        raise ValueError(f"alpha must be above 1, got {alpha}")
    return _along(input, alpha, "alpha", dim, _solve_normmax)


def normmax_loss(
    input: Tensor,
    target: Tensor,
    alpha: float = 2.0,
    reduction: str = "mean",
) -> Tensor:
    r"""Fenchel-Young loss of :math:`\|p\|_\alpha` at class indices, classes in axis 1.

    Differentiable once.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> round(F.normmax_loss(torch.tensor([[0.5, 0.25, -1.0]]), torch.tensor([1])).item(), 4)
        0.429
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    axis = class_dim(input, None)
    p = normmax(input.detach(), alpha, axis).to(working_dtype(input))
    own = input.gather(axis, target.unsqueeze(axis)).squeeze(axis)
    # differentiating ⟨p, θ⟩ at the maximizer p leaves p
    loss: Tensor = (p * input).sum(axis) - torch.linalg.vector_norm(p, alpha, dim=axis) + 1 - own
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()
