"""The principal directions of dense features, in which their Gram matrix is diagonal."""

from .._array import Array, as_library, eps, namespace
from ._threads import limited_blas
from ._vectors import cast

# Hessian products that a rotation may cost at most, by counts of arithmetic operations.
MAX_ROTATION_COST = 150


def rotation_pays(n_samples: int, n_features: int, n_scores: int) -> bool:
    """Whether the rotation costs less than the Hessian products it saves in a typical fit.

    The Gram matrix and the rotation take 4 n d m operations, m = min(n, d), the eigenvectors about
    10 m³, and a Hessian product 4 n d k.
    """
    smaller = min(n_samples, n_features)
    cost = smaller + 2.5 * smaller**3 / (n_samples * n_features)
    return cost <= MAX_ROTATION_COST * n_scores


def principal_directions(features: Array, weights: Array | None) -> Array:
    """Orthonormal columns V (d, r) that span the rows of the features, in float64.

    With fewer samples than features, r is at most the number of samples.
    """
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
