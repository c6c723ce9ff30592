"""Exact blocks of the Hessian, one per class, as a preconditioner.

They are for PyTorch, whose batches of small matrices run at once. With NumPy they cost more Hessian
products than they save.
"""

import math
from collections.abc import Iterator

from .._array import Array, is_torch
from ._preconditioner import Map

# What the blocks cost in Hessian products, from times on an H200: their operations are done twice
# as fast, a product also waits as long as so many operations take, and even the smallest blocks
# cost some products. Where most rows have no curvature they cost less.
PRODUCT_LATENCY = 1.6e10
MIN_BLOCK_COST = 10
MAX_WORK_BYTES = 1 << 30  # of the largest array while blocks are made
# Inverses of blocks up to this condition stay positive definite in float32: rounding errors are
# as good as random, and move eigenvalues by about 1e-7 of the largest.
MAX_CONDITION = 1e6
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

    matrix, curvature = matrix.to(torch.float64), curvature.to(torch.float64)
    n_scores, p = curvature.shape[1], ridge.shape[0]
    identity = torch.eye(p, dtype=torch.float64, device=matrix.device)
    # Blocks are scaled to diagonals of one. No eigenvalue is then larger than p, or smaller than
    # the least of the ridge, scaled likewise.
    scales = (curvature.T @ matrix.square() + ridge).rsqrt()
    if not bool(torch.isfinite(scales).all()):  # a feature of zeros without a penalty; NaN may pass
        return None
    is_narrow = torch.get_float32_matmul_precision() == "highest"  # not TF32
    is_narrow = is_narrow and bool(p <= MAX_CONDITION * (ridge * scales.square()).min())
    dtype = torch.float32 if is_narrow else torch.float64
    inverses = torch.empty((n_scores, p, p), dtype=dtype, device=matrix.device)
    for classes, blocks in _weighted_products(matrix, curvature):
        blocks.diagonal(dim1=1, dim2=2).add_(ridge)
        blocks *= scales[classes].unsqueeze(1)
        blocks *= scales[classes].unsqueeze(2)
        factors, failed = torch.linalg.cholesky_ex(blocks)
        if bool(failed.any()):
            return None
        half = torch.linalg.solve_triangular(factors, identity.expand_as(blocks), upper=False)
        inverses[classes] = (half.mT @ half).to(dtype)

    def apply(residual: Array) -> Array:
        rows = (residual.T * scales).to(dtype, memory_format=torch.contiguous_format)
        scaled = torch.bmm(rows.unsqueeze(1), inverses).squeeze(1)
        return (scaled * scales).T.to(residual.dtype)

    return apply


def _weighted_products(matrix: Array, weights: Array) -> Iterator[tuple[Array, Array]]:
    """Σ_i weights_ic x_i x_iᵀ of some classes at a time, which come first.

    Where most weights of a class are zero, as outside the support of sparse predictions, only its
    other rows are read. Classes with about as many of these are taken together.
    """
    import torch

    n, p = matrix.shape
    counts, order = torch.sort((weights != 0).sum(0), descending=True)
    sizes = counts.tolist()
    start = 0
    while start < len(sizes):
        size = n if 2 * sizes[start] > n else max(1, sizes[start])
        end = min(len(sizes), start + max(1, MAX_WORK_BYTES // (8 * size * p)))
        stop = start + 1
        while stop < end and 2 * sizes[stop] >= sizes[start]:
            stop += 1
        classes = order[start:stop]
        chosen = weights[:, classes].T
        if size == n:
            weighted = chosen.unsqueeze(1) * matrix.T
            yield classes, (weighted.flatten(0, 1) @ matrix).unflatten(0, (-1, p))
        else:
            rows = torch.topk((chosen != 0).to(matrix.dtype), size, dim=1).indices
            some = matrix[rows]
            yield classes, (some * chosen.gather(1, rows).unsqueeze(2)).mT @ some
        start = stop
