r"""A matrix M near the Hessian of the objective, whose inverse is cheap, and what serves it.

.. math:: M_0 = C \otimes \mathrm{diag}(\mathrm{spectrum}) + \alpha, \qquad
          C = \sum_i w_i \nabla^2 L_i

is the Hessian if the curvature of a row did not depend on its features. Hessian products that have
been computed improve it: for each pair of a direction s and H s, one BFGS update makes M agree with
the Hessian along s. The pairs serve every alpha, since the penalty adds a multiple of s to H s.

With PyTorch, exact blocks of the Hessian, one per class, take the place of M₀ once they are worth
their price: its batches of small matrices run at once. With NumPy they cost more Hessian products
than they save. Dense features are rotated to their principal directions, in which their Gram matrix
is diagonal, as M₀ takes it to be.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._array import Array, as_library, eps, is_torch, namespace, to_numpy
from ._threads import limited_blas
from ._vectors import cast, flat

if TYPE_CHECKING:
    from ._sums import SampleSums

Map = Callable[[Array], Array]
Pair = tuple[Array, Array, float]  # s, H s at alpha, alpha

MIN_CURVATURE = 1e-8  # a mean curvature below this counts as none
MIN_DIAGONAL = 1e-12  # of a diagonal, relative to its largest entry: directions without curvature
MAX_PAIRS, MAX_PAIR_BYTES = 20, 1 << 26  # Hessian products that are remembered
BLOCKS_LAST = 4  # times what they cost: old blocks are nearly as good as new ones
# A share of the mean curvature that each class gets on top. Measured on delicious, as REACH.
KINK_CURVATURE_SHARE = 0.5
# What the blocks cost in Hessian products, from times on an H200: their operations take half as
# long, the latency of a product is worth PRODUCT_LATENCY operations, and even the smallest blocks
# cost some products. They cost less if most rows have no curvature.
PRODUCT_LATENCY = 1.6e10
MIN_BLOCK_COST = 10
MAX_WORK_BYTES = 1 << 30  # of the largest array while blocks are made
# Inverses of blocks up to this condition stay positive definite in float32: rounding errors are
# as good as random, and move eigenvalues by about 1e-7 of the largest.
MAX_CONDITION = 1e6
MAX_BLOCK_BYTES = 4 << 30  # of the blocks themselves; where they need more there are none
# Hessian products that a rotation may cost at most, by counts of arithmetic operations.
MAX_ROTATION_COST = 150


class Preconditioner:
    """M for any alpha, from what has been seen of the Hessian, which jumps at kinks."""

    def __init__(self, sums: "SampleSums", *, has_kinks: bool = False) -> None:
        self._sums = sums
        self._space = sums.space
        self._has_kinks = has_kinks
        pair_bytes = 16 * self._space.n_parameters * sums.n_scores
        size = min(MAX_PAIRS, max(1, MAX_PAIR_BYTES // pair_bytes))
        self._pairs: deque[Pair] = deque(maxlen=size)
        self._spectrum = self._space.place(self._space.spectrum)
        self.curvature: Array | None = None  # eigenvalues of C, or what stands for them, (k,)
        self._vectors: Array | None = None  # its eigenvectors in columns; None for the identity
        self._blocks: dict[float, Map] = {}  # the inverse of the blocks at the last alpha
        self._products = 0  # since blocks were made
        # curvature relative to the largest, below which it may be rounding errors
        self._negligible = math.sqrt(eps(self._space.like))

    def add(self, direction: Array, product: Array, alpha: float) -> None:
        """Keep a direction and its product with the Hessian at alpha, for inverses to come."""
        self._products += 1
        self._pairs.append((direction, product, alpha))

    def learn(self, curvature: Array) -> None:
        """M₀ from the curvature of all classes together, of each alone, or their mean."""
        n_scores, total_weight = self._sums.n_scores, self._sums.total_weight
        vectors = None
        if curvature.ndim == 2:
            curvature, vectors = np.linalg.eigh(curvature)
        elif curvature.ndim == 0:
            curvature = np.full(n_scores, max(float(curvature), 0.0))
        if curvature.max() <= MIN_CURVATURE * total_weight:  # on the flat part of a loss
            curvature, vectors = np.full(n_scores, total_weight), None
        # directions without curvature, as on the simplex, hold nothing but rounding errors
        least = self._negligible * curvature.max()
        self.curvature = self._space.place(np.maximum(curvature, least))
        self._vectors = None if vectors is None else self._space.place(vectors)

    def inverse(self, alpha: float) -> Map:
        """R ↦ M⁻¹ R."""
        base = self._blocks.get(alpha) or self._spectral_inverse(alpha)
        return updated_inverse(base, self._pairs, alpha, self._space.n_penalized, self._space.place)

    def _spectral_inverse(self, alpha: float) -> Map:
        """R ↦ M₀⁻¹ R."""
        diagonal = self._diagonal(self._spectrum, self.curvature, alpha)
        vectors = self._vectors
        if vectors is None:
            return lambda residual: residual / diagonal
        return lambda residual: (residual @ vectors / diagonal) @ vectors.T

    def _diagonal(self, spectrum: Array, curvature: Array, alpha: float) -> Array:
        """spectrum × curvature + alpha, shape (p, k), kept above zero."""
        diagonal = spectrum[:, None] * curvature
        diagonal[: self._space.n_penalized, :] += alpha
        xp = namespace(diagonal)
        largest = float(xp.max(diagonal))
        return diagonal + 1.0 if largest <= 0 else xp.clip(diagonal, min=MIN_DIAGONAL * largest)

    def scales(self, alpha: float) -> Array:
        """Lengths of the parameters in which the curvature is about one, (p, 1), in NumPy."""
        mean = to_numpy(self.curvature).mean(keepdims=True)
        return 1 / np.sqrt(self._diagonal(self._space.spectrum, mean, alpha))

    def renew_blocks(self, hessian: Any, alpha: float) -> None:
        """Make exact blocks for a penalty if the products so far have paid for them."""
        if self._products > self._sums.block_cost * (BLOCKS_LAST if alpha in self._blocks else 1):
            self._blocks = {}  # their memory is needed
            inverse = self._block_inverse(hessian, alpha)
            self._blocks = {} if inverse is None else {alpha: inverse}
            self._products = 0

    def _block_inverse(self, hessian: Any, alpha: float) -> Map | None:
        """M₀⁻¹ from the exact blocks of the classes.

        Where the entries of a row are coupled, what is the same for all classes changes nothing
        but the penalty, and is kept apart.
        """
        d = self._space.n_penalized
        # Directions without curvature are as in the spectral M₀; where there are kinks, curvature
        # may be beyond the next one, so that M would call steps short that are not.
        xp = namespace(self.curvature)
        if self._has_kinks:
            least = KINK_CURVATURE_SHARE * float(xp.mean(self.curvature))
        else:
            least = self._negligible * float(xp.max(self.curvature))
        ridge = self._spectrum * least
        ridge[:d] += alpha
        inverse = self._sums.block_inverse(hessian, ridge)
        if inverse is None or hessian.total is None:
            return inverse
        constant = np.full((self._space.n_parameters, 1), self._sums.total_weight)
        common = self._space.place(constant)
        if alpha > 0:
            common[:d, :] = alpha

        def apply(residual: Array) -> Array:
            mean = xp.mean(residual, axis=1, keepdims=True)
            z = inverse(residual - mean)
            return z - xp.mean(z, axis=1, keepdims=True) + mean / common

        return apply


def updated_inverse(
    base: Map, pairs: Sequence[Pair], alpha: float, n_penalized: int, place: Map
) -> Map:
    r"""R ↦ M⁻¹ R, in terms of the inverse of M₀ and pairs (s, H s), the oldest first.

    With the pairs in the rows of S and Y, L the upper triangle of :math:`S Y^\top` and D its
    diagonal, the two loops of L-BFGS are

    .. math:: a = L^{-1} S r, \quad z = M_0^{-1} (r - Y^\top a), \quad
              M^{-1} r = z + S^\top L^{-\top} (D a - Y z).

    Alpha falls on ``n_penalized`` rows of a parameter array; ``place`` takes NumPy arrays there.
    """
    if not pairs:
        return base
    directions, images, alphas = zip(*pairs, strict=True)
    xp = namespace(*directions)
    s, y = (xp.stack([flat(array) for array in arrays]) for arrays in (directions, images))
    end = n_penalized * directions[0].shape[1]
    y[:, :end] += place(alpha - np.asarray(alphas))[:, None] * s[:, :end]
    products = to_numpy(s @ y.T)  # a few numbers: NumPy is the fastest at them
    curved = np.flatnonzero(np.diagonal(products) > 0)
    if curved.size == 0:
        return base
    if curved.size < len(products):  # rounding errors, or directions without curvature
        s, y = (xp.stack([a[i, :] for i in curved.tolist()]) for a in (s, y))
    triangle = np.triu(products[np.ix_(curved, curved)])
    diagonal = place(np.diagonal(triangle).copy())
    inverse = place(np.linalg.inv(triangle))

    def apply(residual: Array) -> Array:
        row = flat(residual)
        a = inverse @ (s @ row)
        z = flat(base(xp.reshape(row - a @ y, residual.shape)))
        z = z + (inverse.T @ (diagonal * a - y @ z)) @ s
        return xp.reshape(z, residual.shape)

    return apply


def block_cost(matrix: Array, n_scores: int) -> float:
    """What :func:`block_inverse` costs in Hessian products."""
    n, p = map(int, matrix.shape)
    if not is_torch(matrix) or 8 * (n_scores * p * p + n * p) > MAX_BLOCK_BYTES:
        return math.inf
    return MIN_BLOCK_COST + 2 * n * p * p * n_scores / (8 * n * p * n_scores + PRODUCT_LATENCY)


def block_inverse(matrix: Array, curvature: Array, ridge: Array) -> Map | None:
    """R ↦ A_c⁻¹ r_c for each class c, A_c = Σ_i curvature_ic x_i x_iᵀ + diag(ridge).

    Returns None if rounding errors leave some A_c without an inverse.
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
    other rows are read. Classes with similar numbers of such rows are taken together.
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


def rotation_pays(n_samples: int, n_features: int, n_scores: int) -> bool:
    """True if the rotation costs less than the Hessian products it saves in a typical fit.

    The Gram matrix and the rotation take 4 n d m operations, m = min(n, d), the eigenvectors about
    10 m³, and a Hessian product 4 n d k.
    """
    smaller = min(n_samples, n_features)
    cost = smaller + 2.5 * smaller**3 / (n_samples * n_features)
    return cost <= MAX_ROTATION_COST * n_scores


def principal_directions(features: Array, weights: Array | None) -> Array:
    """Orthonormal columns V (d, r ≤ n) that span the n rows of the features, in float64."""
    n_samples, n_features = features.shape
    if n_samples >= n_features:
        return directions_of_gram(gram(features, weights))
    xp = namespace(features)
    weighted = _weighted(features, weights)
    with limited_blas(1):
        q, r = xp.linalg.qr(cast(weighted.T, xp.float64))
        u, s, _ = xp.linalg.svd(r)
    rank = int(xp.sum(xp.astype(s > xp.max(s) * n_features * eps(features), xp.int64)))
    return q @ u[:, : max(rank, 1)]


def gram(features: Array, weights: Array | None) -> Array:
    """Σ w_i x_i x_iᵀ, shape (d, d), in float64."""
    weighted = _weighted(features, weights)
    return cast(weighted.T @ weighted, namespace(features).float64)


def directions_of_gram(matrix: Array) -> Array:
    """The eigenvectors of a Gram matrix, in columns."""
    with limited_blas(1):  # faster for small matrices, and large ones are not rotated
        return namespace(matrix).linalg.eigh(matrix)[1]


def _weighted(features: Array, weights: Array | None) -> Array:
    """Rows times the square roots of their weights."""
    if weights is None:
        return features
    roots = namespace(features).sqrt(as_library(weights, features))
    return features * cast(roots, features.dtype)[:, None]
