"""Rows on a CPU: the package's engine for NumPy arrays.

It works in blocks that stay in cache and stops iterating where a block has converged, neither of
which PyTorch's operations on whole tensors do.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..engines import BoundLoss, DenseTargets, Labels, bind_trusted
from ..engines._blocks import FloatArray
from ..losses import Loss
from ..sets import Simplex

__all__ = ["BlockSolution", "solve_blocks"]


@dataclass(frozen=True, eq=False)
class BlockSolution:
    """A loss bound to its targets, at θ; each answer is a pass over the rows, in fresh memory."""

    bound: BoundLoss
    theta: FloatArray

    def _empty(self) -> FloatArray:
        return np.empty(self.theta.shape, self.theta.dtype)  # in rows, whatever the order of θ

    def value(self) -> FloatArray:
        return np.asarray(self.bound.value(self.theta))

    def value_and_gradient(self) -> tuple[FloatArray, FloatArray]:
        out = np.empty(len(self.theta), self.theta.dtype), self._empty()
        return self.bound.value_and_gradient(self.theta, out)

    def y_star(self) -> FloatArray:
        return np.ascontiguousarray(self.bound.y_star(self.theta))

    def hessian_product(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.bound.hessian_product(self.theta, v, self._empty()))


def solve_blocks(loss: Loss, y: np.ndarray[Any, Any], theta: FloatArray) -> BlockSolution | None:
    """The loss at labels of shape (n,), or at rows, for float32 or float64 scores.

    None where the engine does not have the loss, or meets a row of targets without an entry, which
    only targets that nobody checked have.
    """
    targets: Labels | DenseTargets
    if y.ndim == 1:
        targets = Labels(theta.shape, theta.dtype, y)
    elif isinstance(loss.regularizer.domain, Simplex) and (y.sum(axis=-1) == 0).any():
        return None
    else:
        targets = DenseTargets(theta.shape, theta.dtype, y)
    bound = bind_trusted(loss, targets, torch.get_num_threads())
    return None if bound is None else BlockSolution(bound, theta)
