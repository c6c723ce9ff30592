"""What multiplies the losses of PyTorch rows: their weights, and the reduction.

It is a vector with a number for each row, or, where all rows count the same, a whole number that
divides each (``torch.jit.trace`` makes tensors of these), or None for one over the number of labels
that count. The latter two cost a GPU nothing to make.
"""

import torch
from torch import Tensor

Scale = Tensor | int | None


def working_dtype(theta: Tensor) -> torch.dtype:
    """The dtype of the arithmetic: float64 for float64, else float32."""
    return torch.float64 if theta.dtype == torch.float64 else torch.float32


def as_tensor(scale: Scale, theta: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """The scale of each row, shape (n,)."""
    if isinstance(scale, Tensor) and scale.ndim == 1:
        return scale
    n, dtype = target.shape[0], working_dtype(theta)
    if scale is None:
        # infinite where nothing counts: 0 · ∞ makes the loss NaN, as in PyTorch
        return (target != ignore_index).sum(dtype=dtype).reciprocal().expand(n)
    return (torch.ones((1,), dtype=dtype, device=theta.device) / scale).expand(n)
