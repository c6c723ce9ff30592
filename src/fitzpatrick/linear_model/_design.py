r"""The features as a linear map from parameters to scores.

Parameters are a matrix P of shape (p, k): one row per feature and, with an intercept, a last row of
ones' coefficients. Features may be centered and scaled,

.. math:: \Theta = (X - 1 \mu^\top) \, \mathrm{diag}(1/\sigma) \, P_{1:d} + 1 \, P_{d+1},

and the map to coefficients of the original X is

.. math:: W = P_{1:d}^\top \mathrm{diag}(1/\sigma), \qquad b = P_{d+1} - W \mu.

With an intercept, which is not penalized, centering changes nothing but the conditioning of the
problem, for the better. A dense X is centered in a copy. A sparse X never becomes dense: its
centering is a rank-one correction of the two products.

A dense X is also rotated to its principal directions where that pays, :math:`X V P'` instead of
:math:`X P`: the penalty stays what it is, the Gram matrix becomes diagonal, which is what the
solvers precondition with, and with fewer samples than features the parameters shrink to the former.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from .._array import Array
from ._preconditioner import Map
from ._rotation import principal_directions, rotation_pays


@dataclass(frozen=True, eq=False)
class Scaling:
    """Shift and scale of each feature; zeros and ones where a feature is left as it is.

    A feature of infinite scale is all zeros for the model, and its coefficient is zero.
    """

    shift: Array
    scale: Array


def measure(X: Array, weights: Array | None, *, center: bool, standardize: bool) -> Scaling:
    """Weighted means, and standard deviations with ``standardize``, in float64.

    With ``standardize``, a constant column has an infinite scale.
    """
    n_features = X.shape[1]
    if not center:
        return Scaling(np.zeros(n_features), np.ones(n_features))
    if not standardize:
        return Scaling(_mean(X, weights), np.ones(n_features))
    mean, variance = _moments(X, weights)
    low, high = _range(X)
    constant = _is_constant(low, high, X.dtype) | (variance == 0)
    return Scaling(mean, np.where(constant, np.inf, np.sqrt(variance)))


def constant_columns(
    X: Array, sample_weight: Array | None = None, *, zero_only: bool = False
) -> Array:
    """Indices of the columns that hold one value only, in the rows of positive weight.

    There is nothing to learn from them once they are centered. Where nothing is centered, a column
    of ones is an intercept: ``zero_only`` names columns of zeros.

    Example:
        >>> constant_columns(np.asarray([[1.0, 7.0, 0.0], [2.0, 7.0, 0.0]]))
        array([1, 2])
    """
    if sample_weight is not None and not np.all(sample_weight):
        X = X[np.flatnonzero(sample_weight)]
    low, high = _range(X)
    if zero_only:
        return np.flatnonzero((low == 0) & (high == 0))
    return np.flatnonzero(_is_constant(low, high, X.dtype))


def _mean(X: Array, weights: Array | None) -> Array:
    if sparse.issparse(X):
        return _moments(X, weights)[0]
    if weights is None:
        return np.asarray(X.mean(axis=0, dtype=np.float64))
    return np.asarray(np.average(X, axis=0, weights=weights))


def _moments(X: Array, weights: Array | None) -> tuple[Array, Array]:
    """Weighted means and variances."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X.astype(np.float64), axis=0, weights=weights)
        return mean, variance
    mean = _mean(X, weights)
    centered = X - mean
    correction = _mean(centered, weights)  # the sum of many rows is rounded
    variance = _mean(np.square(centered, out=centered), weights) - np.square(correction)
    return mean + correction, np.maximum(variance, 0.0)


def _range(X: Array) -> tuple[Array, Array]:
    """The smallest and the largest entry of each column."""
    if sparse.issparse(X):
        low, high = min_max_axis(X, axis=0)
    else:
        low, high = X.min(axis=0), X.max(axis=0)
    return low.astype(np.float64), high.astype(np.float64)


def _is_constant(low: Array, high: Array, dtype: Any) -> Array:
    """Columns whose entries differ by rounding errors at most."""
    largest = np.maximum(np.abs(low), np.abs(high))
    return high - low <= 4 * np.finfo(dtype).eps * largest


class Design(ABC):
    """Centered and scaled features, with or without an intercept.

    Attributes:
        n_features: d.
        n_penalized: rows of the parameters without the intercept.
        fit_intercept: whether the last row of the parameters is an intercept.
        scaling: shift and scale of the features.
    """

    def __init__(self, scaling: Scaling, fit_intercept: bool) -> None:
        self.scaling = scaling
        self.fit_intercept = fit_intercept
        self.n_features = int(scaling.shift.shape[0])
        self.n_penalized = self.n_features

    @property
    def n_parameters(self) -> int:
        """Parameters per class, p."""
        return self.n_penalized + int(self.fit_intercept)

    @property
    @abstractmethod
    def spectrum(self) -> Array:
        """Mean square of the column that each parameter multiplies, shape (p,)."""

    @property
    @abstractmethod
    def matrix(self) -> Array:
        """What the products multiply with, shape (n, d) or, with the ones inside, (n, d + 1)."""

    @property
    def n_samples(self) -> int:
        """Rows of X."""
        return int(self.matrix.shape[0])

    @property
    def dtype(self) -> Any:
        """Precision of the products."""
        return self.matrix.dtype

    @abstractmethod
    def scores(self, parameters: Array, out: Array) -> Array:
        """Θ, shape (n, k), written into ``out``."""

    @abstractmethod
    def adjoint(self, gradient: Array) -> Array:
        """The transposed map: (n, k) → (p, k)."""

    def place(self, array: Array) -> Array:
        """A NumPy array where parameters and scores are, as ``scores`` and ``adjoint`` take it."""
        return array

    def fetch(self, array: Array) -> Array:
        """The inverse of :meth:`place`."""
        return np.asarray(array)

    @property
    def block_cost(self) -> float:
        """What :meth:`block_inverse` costs in Hessian products."""
        return math.inf

    def block_inverse(self, curvature: Array, ridge: Array) -> Map | None:
        """R ↦ A_c⁻¹ r_c for each class c, A_c = Σ_i curvature_ic x_i x_iᵀ + diag(ridge).

        None where rounding errors leave an A_c without an inverse.
        """
        raise NotImplementedError(f"{type(self).__name__} has no blocks of finite cost")

    def to_original(self, parameters: Array) -> tuple[Array, Array]:
        """Coefficients (k, d) and intercepts (k,) for the X that the user has."""
        parameters = self.fetch(parameters)
        coef = self._to_features(parameters[: self.n_penalized]).T / self.scaling.scale
        intercept = parameters[-1] if self.fit_intercept else np.zeros(coef.shape[0])
        return coef, intercept - coef @ self.scaling.shift

    def from_original(self, coef: Array, intercept: Array) -> Array:
        """The parameters of given coefficients; without an intercept, b is left behind."""
        parameters = np.empty((self.n_parameters, coef.shape[0]))
        scale = np.where(np.isinf(self.scaling.scale), 0.0, self.scaling.scale)
        parameters[: self.n_penalized] = self._from_features((coef * scale).T)
        if self.fit_intercept:
            parameters[-1] = intercept + coef @ self.scaling.shift
        return self.place(parameters)

    def _to_features(self, parameters: Array) -> Array:
        """From penalized parameters to coefficients of the scaled features, (d, k)."""
        return parameters

    def _from_features(self, parameters: Array) -> Array:
        """The transpose of :meth:`_to_features`."""
        return parameters


class DenseDesign(Design):
    """Features in memory as one matrix; a copy only where they are changed.

    Args:
        X: features.
        weights: of the samples, or None.
        scaling: shift and scale.
        fit_intercept: whether to append a column of ones.
        n_scores: k, which decides whether a rotation pays.
    """

    def __init__(
        self,
        X: Array,
        weights: Array | None,
        scaling: Scaling,
        fit_intercept: bool,
        n_scores: int,
    ) -> None:
        super().__init__(scaling, fit_intercept)
        features = self._standardized(X)
        self._basis = None
        if rotation_pays(X.shape[0], X.shape[1], n_scores):
            self._basis = principal_directions(features, weights)
            self.n_penalized = self._basis.shape[1]
            features = features @ self._basis.astype(X.dtype)
        self._matrix = features
        if fit_intercept:
            self._matrix = np.hstack([features, np.ones((X.shape[0], 1), dtype=X.dtype)])
        if weights is None:
            squares = np.einsum("ij,ij->j", self._matrix, self._matrix)
            self._spectrum = squares / np.asarray(X.shape[0], dtype=np.float64)
        else:
            self._spectrum = np.average(np.square(self._matrix), axis=0, weights=weights)

    def _standardized(self, X: Array) -> Array:
        if self.scaling.shift.any():
            X = np.subtract(X, self.scaling.shift, dtype=X.dtype, casting="same_kind")
        if (self.scaling.scale != 1).any():
            X = np.divide(X, self.scaling.scale, dtype=X.dtype, casting="same_kind")
        return X

    @property
    def matrix(self) -> Array:
        return self._matrix

    @property
    def spectrum(self) -> Array:
        return self._spectrum

    def scores(self, parameters: Array, out: Array) -> Array:
        return np.matmul(self.matrix, parameters.astype(self.dtype, copy=False), out=out)

    def adjoint(self, gradient: Array) -> Array:
        if gradient.flags.f_contiguous:
            product = np.matmul(gradient.T, self.matrix).T
        else:
            product = np.matmul(self.matrix.T, gradient)
        return product.astype(np.float64, copy=False)

    def _to_features(self, parameters: Array) -> Array:
        return parameters if self._basis is None else self._basis @ parameters

    def _from_features(self, parameters: Array) -> Array:
        return parameters if self._basis is None else self._basis.T @ parameters


class SparseDesign(Design):
    """Sparse features, scaled in a copy of their non-zeros, centered by a rank-one correction."""

    def __init__(
        self, X: Array, weights: Array | None, scaling: Scaling, fit_intercept: bool
    ) -> None:
        super().__init__(scaling, fit_intercept)
        self._matrix = X
        if (scaling.scale != 1).any():
            self._matrix = X @ sparse.diags_array(1 / scaling.scale.astype(X.dtype), format="csr")
        self.shift = scaling.shift / scaling.scale
        mean, variance = _moments(self._matrix, weights)
        spectrum = variance + np.square(mean - self.shift)
        self._spectrum = np.append(spectrum, 1.0) if fit_intercept else spectrum

    @property
    def spectrum(self) -> Array:
        return self._spectrum

    @property
    def matrix(self) -> Array:
        return self._matrix

    def scores(self, parameters: Array, out: Array) -> Array:
        features = parameters[: self.n_penalized]
        row = -(self.shift @ features)
        if self.fit_intercept:
            row += parameters[-1]
        product = self.matrix @ features.astype(self.dtype, copy=False)
        return np.add(product, row.astype(self.dtype, copy=False), out=out)

    def adjoint(self, gradient: Array) -> Array:
        total = gradient.sum(axis=0, dtype=np.float64)
        product = (self.matrix.T @ gradient).astype(np.float64, copy=False)
        product -= np.outer(self.shift, total)
        return np.vstack([product, total]) if self.fit_intercept else product


def make_design(
    X: Array, weights: Array | None, *, fit_intercept: bool, standardize: bool, n_scores: int
) -> Design:
    """The design of X, dense or sparse, for k = ``n_scores``."""
    scaling = measure(X, weights, center=fit_intercept or standardize, standardize=standardize)
    if sparse.issparse(X):
        return SparseDesign(X, weights, scaling, fit_intercept)
    return DenseDesign(X, weights, scaling, fit_intercept, n_scores)
