"""Structured outputs: soft ranks, soft sorts, top-k masks, and losses and links on any set.

The functions are public in :mod:`fitzpatrick.torch.functional`.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import functional as F
    >>> F.soft_rank(torch.tensor([[8.0, 0.0, 5.0, 3.0]]))
    tensor([[4., 1., 3., 2.]])
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

import math

import torch
from torch import Tensor, nn

from ..losses import FitzpatrickLoss
from ..regularizers import Regularizer, SquaredNorm
from ..sets import CappedSimplex, ConvexSet
from ..sets.isotonic import block_log_shares, decreasing_blocks, nearest_in_order
from ._arguments import check_same_shape, check_scores
from ._entmax import link_along
from ._handles import handle_at, handle_of
from ._losses import row_loss
from ._targets import working_dtype

__all__ = ["StructuredLink", "StructuredLoss"]


def _check_strength(scores: Tensor, strength: float) -> None:
    check_scores(scores)
    if not 0 < strength < math.inf:
        raise ValueError(
            f"regularization_strength must be a positive number, got {strength!r}; the smaller, "
            "the harder the result"
        )


def _check_soft(values: Tensor, regularization: str, strength: float) -> Tensor:
    """The values in working precision, with their items last."""
    _check_strength(values, strength)
    if regularization not in ("l2", "kl"):
        raise ValueError(f"regularization must be 'l2' or 'kl', got {regularization!r}")
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"values must have shape (…, n) with n >= 1, got {tuple(values.shape)}")
    return values.to(working_dtype(values))


def soft_rank(
    values: Tensor, regularization: str = "l2", regularization_strength: float = 1.0
) -> Tensor:
    r"""Ranks 1, …, n of the last axis, from the smallest value on, as a differentiable function.

    They are the point of the permutahedron of n, …, 1 next to values/strength: hard ranks for a
    small strength, and the mean rank for a large one. Differentiable any number of times.

    Args:
        values: (…, n).
        regularization: ``"l2"`` for the projection, or ``"kl"`` for the point p with the least
            :math:`\mathrm{KL}(p \| e^{\text{values}/\text{strength}})`, which is smoother.
        regularization_strength: how soft the ranks are, a positive number.

    Example:
        >>> values = torch.tensor([[8.0, 0.0, 5.0, 3.0, 2.0, 1.0, 6.0, 7.0, 9.0]])
        >>> soft_rank(values)
        tensor([[8., 1., 5., 4., 3., 2., 6., 7., 9.]])
        >>> soft_rank(torch.tensor([1.0, 1.1, 3.0]), regularization_strength=2.0)
        tensor([1.6500, 1.7000, 2.6500])
    """
    x = _check_soft(values, regularization, regularization_strength) / regularization_strength
    ordered, order = torch.sort(x, dim=-1, descending=True, stable=True)
    places = _places(ordered)
    if regularization == "l2":  # the projection onto Permutahedron(n)
        p: Tensor = nearest_in_order(ordered, places)
    else:
        p = _entropic_order(ordered, places.log()).exp()
    return p.scatter(-1, order, p).to(values.dtype)


def _entropic_order(z: Tensor, w: Tensor) -> Tensor:
    """log p of the p with the least KL(p ‖ eᶻ) in the permutahedron of eʷ; z and w do not rise."""
    starts = decreasing_blocks(z, w)
    log_p: Tensor = block_log_shares(z, starts) - block_log_shares(w, starts) + w
    return log_p


def soft_sort(
    values: Tensor, regularization: str = "l2", regularization_strength: float = 1.0
) -> Tensor:
    r"""The values of the last axis in increasing order, as a differentiable function.

    The projection of (1, …, n)/strength onto the permutahedron of the values: sorted values for a
    small strength, and their mean for a large one. With ``"kl"``, exp(−values) is sorted by the
    projection in KL, as in :func:`soft_rank`, whose arguments these are.

    Example:
        >>> values = torch.tensor([[8.0, 0.0, 5.0, 3.0, 2.0, 1.0, 6.0, 7.0, 9.0]])
        >>> soft_sort(values, regularization_strength=0.1)
        tensor([[0., 1., 2., 3., 5., 6., 7., 8., 9.]])
    """
    x = _check_soft(values, regularization, regularization_strength)
    ordered = torch.sort(-x, dim=-1, descending=True).values
    places = _places(ordered) / regularization_strength
    nearest = nearest_in_order if regularization == "l2" else _entropic_order
    return -nearest(places, ordered).to(values.dtype) + 0.0  # no −0


def _places(like: Tensor) -> Tensor:
    """n, …, 1 along the last axis."""
    n = like.shape[-1]
    return torch.arange(n, 0, -1, dtype=like.dtype, device=like.device).expand_as(like)


def topk_mask(
    scores: Tensor, k: float, regularization_strength: float = 1.0, dim: int = -1
) -> Tensor:
    r"""A mask with entries between 0 and 1 that sum to k, the largest at the highest scores.

    The projection of scores/strength onto ``CappedSimplex(k)``. It is the mask of the k highest
    scores where these are higher than the others by the strength, at least.

    Args:
        scores: the items along ``dim``.
        k: the sum of the mask, a positive number of at most their number.
        regularization_strength: how soft the mask is, a positive number.
        dim: the axis of the items.

    Example:
        >>> topk_mask(torch.tensor([2.0, 0.9, 0.6, -1.0]), 2)
        tensor([1.0000, 0.6500, 0.3500, 0.0000])
    """
    _check_strength(scores, regularization_strength)
    omega = handle_at(_on_capped_simplex, CappedSimplex(k).k)
    return link_along(omega, scores / regularization_strength, dim)


def _on_capped_simplex(k: float) -> Regularizer:
    return SquaredNorm(CappedSimplex(k))


class StructuredLoss(nn.Module):
    r"""The loss of a regularizer on any set: sparseMAP, its Fitzpatrick loss, Sinkhorn losses.

    Args:
        regularizer: Ω, such as ``SquaredNorm(Permutahedron(5))`` or ``Negentropy(Birkhoff())``; or
            a set C, which stands for ``SquaredNorm(C)``.
        tightness: c; 0 is the Fenchel-Young loss, 1 the Fitzpatrick loss.
        reduction: ``"mean"`` over the samples, ``"sum"`` or ``"none"``.

    Example:
        >>> import fitzpatrick as fp
        >>> criterion = StructuredLoss(fp.sets.Birkhoff())
        >>> scores = torch.zeros(8, 3, 3, requires_grad=True)
        >>> loss = criterion(scores, torch.eye(3).expand(8, 3, 3))
        >>> loss.backward()
        >>> scores.grad.shape
        torch.Size([8, 3, 3])
    """

    def __init__(
        self, regularizer: Regularizer | ConvexSet, tightness: float = 1.0, reduction: str = "mean"
    ) -> None:
        super().__init__()
        omega = _as_regularizer(regularizer)
        self.loss = FitzpatrickLoss(omega, tightness)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        check_scores(input)
        check_same_shape(target, input.shape)
        # points of any number of axes as vectors
        omega, scores, _ = self.loss.regularizer.on_vectors(input, lambda out: out)
        y = target.reshape(scores.shape)
        return row_loss(handle_of(omega), self.loss.tightness, scores, y, self.reduction)

    def extra_repr(self) -> str:
        return f"{self.loss!r}, reduction={self.reduction!r}"


def _as_regularizer(regularizer: Regularizer | ConvexSet) -> Regularizer:
    if isinstance(regularizer, ConvexSet):
        return SquaredNorm(regularizer)
    if not isinstance(regularizer, Regularizer):
        raise TypeError(
            "regularizer must be one of fitzpatrick.regularizers, or a set of fitzpatrick.sets, "
            f"got {regularizer!r}"
        )
    return regularizer


class StructuredLink(nn.Module):
    """The link of a regularizer on any set as a layer: projections, and Sinkhorn's scaling.

    Args:
        regularizer: Ω, or a set C, which stands for ``SquaredNorm(C)``.

    Example:
        >>> import fitzpatrick as fp
        >>> StructuredLink(fp.sets.OrderSimplex())(torch.tensor([1.5, 0.2, 0.4, -1.0]))
        tensor([1.0000, 0.3000, 0.3000, 0.0000])
    """

    def __init__(self, regularizer: Regularizer | ConvexSet) -> None:
        super().__init__()
        self.regularizer = _as_regularizer(regularizer)

    def forward(self, input: Tensor) -> Tensor:
        check_scores(input)
        omega, scores, _ = self.regularizer.on_vectors(input, lambda out: out)
        return link_along(handle_of(omega), scores, -1).reshape(input.shape)

    def extra_repr(self) -> str:
        return repr(self.regularizer)
