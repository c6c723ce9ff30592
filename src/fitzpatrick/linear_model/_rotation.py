"""Principal directions of dense features, in which their Gram matrix is diagonal."""

import numpy as np

from .._array import Array
from ._threads import limited_blas

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
    weighted = features
    if weights is not None:
        weighted = features * np.sqrt(weights).astype(features.dtype)[:, None]
    if n_samples >= n_features:
        gram = (weighted.T @ weighted).astype(np.float64, copy=False)
        with limited_blas(1):  # faster for small matrices, and large ones are not rotated
            return np.asarray(np.linalg.eigh(gram).eigenvectors)
    with limited_blas(1):
        q, r = np.linalg.qr(weighted.T.astype(np.float64, copy=False))
        u, s, _ = np.linalg.svd(r)
    rank = int((s > s.max(initial=0) * n_features * np.finfo(features.dtype).eps).sum())
    return np.asarray(q @ u[:, : max(rank, 1)])
