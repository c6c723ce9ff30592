"""Exact blocks of the Hessian, one per class, as a preconditioner.

They are for PyTorch, whose batches of small matrices run at once. With NumPy they cost more Hessian
products than they save.
"""

import math

from .._array import Array, is_torch
from ._preconditioner import Map

# What the blocks cost in Hessian products, from times on an H200: their operations are done twice
# as fast, a product also waits as long as so many operations take, and even the smallest blocks
# cost some products.
PRODUCT_LATENCY = 1.6e10
MIN_BLOCK_COST = 10
MAX_WORK_BYTES = 1 << 30  # of the largest array while blocks are made
MAX_BLOCK_BYTES = 4 << 30  # of the blocks themselves; where they need more there are none


def block_cost(matrix: Array, n_scores: int) -> float:
    """What :func:`block_inverse` costs in Hessian products."""
    n, p = map(int, matrix.shape)
    if not is_torch(matrix) or 8 * (n_scores * p * p + n * p) > MAX_BLOCK_BYTES:
        return math.inf
    return MIN_BLOCK_COST + 2 * n * p * p * n_scores / (8 * n * p * n_scores + PRODUCT_LATENCY)


def block_inverse(matrix: Array, curvature: Array, ridge: Array) -> Map | None:
    """R ↦ A_c⁻¹ r_c for each class c, A_c = Σ_i curvature_ic x_i x_iᵀ + diag(ridge).

    None where rounding errors leave an A_c without an inverse.
    """
    import torch

    matrix = matrix.to(torch.float64)
    n_scores, p = curvature.shape[1], ridge.shape[0]
    identity = torch.eye(p, dtype=torch.float64, device=matrix.device)
    inverses = torch.empty((n_scores, p, p), dtype=torch.float64, device=matrix.device)
    step = max(1, MAX_WORK_BYTES // (8 * matrix.numel()))
    for start in range(0, n_scores, step):
        weights = curvature[:, start : start + step].T.to(torch.float64)
        weighted = weights.unsqueeze(1) * matrix.T
        blocks = (weighted.flatten(0, 1) @ matrix).unflatten(0, (-1, p))
        blocks.diagonal(dim1=1, dim2=2).add_(ridge)
        factors, failed = torch.linalg.cholesky_ex(blocks)
        if bool(failed.any()):
            return None
        half = torch.linalg.solve_triangular(factors, identity.expand_as(blocks), upper=False)
        torch.bmm(half.mT, half, out=inverses[start : start + step])
    return lambda residual: torch.bmm(inverses, residual.T.unsqueeze(2)).squeeze(2).T
