"""Targets of PyTorch rows; smoothed labels among them without rows as large as the scores."""

from typing import NamedTuple

import torch
from torch import Tensor


class Smoothed(NamedTuple):
    """Rows of targets: the vector ``base`` times the row's share, and its own at the label.

    ``labels``, ``share`` and ``own`` have shape (n,); ``base`` has shape (k,), or (1,) where it is
    the same for all classes.
    """

    labels: Tensor
    base: Tensor
    share: Tensor
    own: Tensor

    def rows(self, k: int) -> Tensor:
        """The targets, shape (n, k)."""
        even = (self.base * self.share[:, None]).expand(-1, k)
        return even.scatter_add(-1, self.labels[:, None], self.own[:, None])


# labels (n,), rows (n, k), or smoothed labels
Target = Tensor | Smoothed


def smooth(
    labels: Tensor,
    k: Tensor | int,
    weight: Tensor | None,
    label_smoothing: float,
    dtype: torch.dtype,
) -> tuple[Smoothed, Tensor]:
    """Smoothed labels, and their weights.

    With class weights w, q becomes w∘q / ⟨w, q⟩ with the weight ⟨w, q⟩. That is how
    ``cross_entropy`` weighs them: Σ w_c q_c (−log p_c) is ⟨w, q⟩ times the cross-entropy of that
    distribution.
    """
    rest = label_smoothing / k
    if weight is None:
        ones = torch.ones_like(labels, dtype=dtype)
        base = ones.new_ones((1,)) * rest
        return Smoothed(labels, base, ones, (1 - label_smoothing) * ones), ones
    base = weight.to(dtype) * rest
    own = weight.to(dtype)[labels] * (1 - label_smoothing)
    total = base.sum() + own
    return Smoothed(labels, base, 1 / total, own / total), total
