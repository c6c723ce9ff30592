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

A dense X may be an array of any library, on any device, and so are parameters and scores then.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from .._array import Array, as_library, eps, is_numpy, namespace, to_numpy
from ._preconditioner import principal_directions, rotation_pays
from ._vectors import cast, entries, matmul

# Shift and scale of each feature, in NumPy; zeros and ones where a feature is left as it is. A
# feature of infinite scale is all zeros for the model, and its coefficient is zero.
Scaling = tuple[Array, Array]


def measure(X: Array, weights: Array | None, *, center: bool, standardize: bool) -> Scaling:
    """Weighted means, and standard deviations with ``standardize``, in float64."""
    n_features = X.shape[1]
    if not center:
        return np.zeros(n_features), np.ones(n_features)
    if standardize:
        return standardization(*moments(X, weights), *bounds(X), eps(entries(X)))
    mean = moments(X, weights)[0] if sparse.issparse(X) else _mean(X, weights)
    return mean, np.ones(n_features)


def standardization(
    mean: Array, variance: Array, low: Array, high: Array, precision: float
) -> Scaling:
    """What makes means 0 and standard deviations 1; constant columns have an infinite scale."""
    constant = is_constant(low, high, precision) | (variance == 0)
    return mean, np.where(constant, np.inf, np.sqrt(variance))


def constant_columns(
    X: Array, sample_weight: Array | None = None, *, zero_only: bool = False
) -> Array:
    """Indices of the columns that hold one value only, in the rows of positive weight.

    There is nothing to learn from them once they are centered. Where nothing is centered, a column
    of ones is an intercept: ``zero_only`` names columns of zeros.
    """
    if sample_weight is not None and not np.all(sample_weight):
        X = X[np.flatnonzero(sample_weight)]
    low, high = bounds(X)
    zero = (low == 0) & (high == 0)
    return np.flatnonzero(zero if zero_only else is_constant(low, high, eps(entries(X))))


def is_constant(low: Array, high: Array, precision: float) -> Array:
    """Columns whose entries differ by rounding errors at most."""
    return np.asarray(high - low <= 4 * precision * np.maximum(np.abs(low), np.abs(high)))


def _mean(X: Array, weights: Array | None) -> Array:
    """Weighted means of dense columns, in NumPy."""
    xp = namespace(X)
    if weights is None:
        return to_numpy(xp.sum(X, axis=0, dtype=xp.float64)) / X.shape[0]
    total = as_library(weights, X) @ cast(X, xp.float64)
    return to_numpy(total) / weights.sum()


def moments(X: Array, weights: Array | None) -> tuple[Array, Array]:
    """Weighted means and variances, in NumPy."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X.astype(np.float64), axis=0, weights=weights)
        return mean, variance
    mean = _mean(X, weights)
    centered = X - as_library(mean, X)
    correction = _mean(centered, weights)  # the sum of many rows is rounded
    centered *= centered
    return mean + correction, np.maximum(_mean(centered, weights) - correction**2, 0.0)


def bounds(X: Array) -> tuple[Array, Array]:
    """The least and the largest entry of each column, in NumPy and float64."""
    if sparse.issparse(X):
        low, high = min_max_axis(X, axis=0)
    else:
        xp = namespace(X)
        low, high = (to_numpy(bound(X, axis=0)) for bound in (xp.min, xp.max))
    return low.astype(np.float64), high.astype(np.float64)


@dataclass(eq=False)
class ParameterSpace:
    """What parameters stand for: coefficients of centered and scaled features, and intercepts."""

    spectrum: Array  # mean square of the column that each parameter multiplies, (p,), in NumPy
    scaling: Scaling
    fit_intercept: bool  # True if the last row of the parameters is an intercept
    basis: Array | None  # directions that the features were rotated to, in columns
    like: Array  # of the library, device and dtype of the scores
    centers_afterwards: bool  # True if products are of features as they are, and then corrected

    @property
    def n_parameters(self) -> int:
        """Parameters per class, p."""
        return len(self.spectrum)

    @property
    def n_penalized(self) -> int:
        """Rows of the parameters without the intercept."""
        return self.n_parameters - self.fit_intercept

    @property
    def cancellation(self) -> float:
        """How much larger the numbers are that a product adds up than what it comes to."""
        varied = float(self.spectrum[: self.n_penalized].sum())
        if not self.centers_afterwards or varied == 0:
            return 1.0
        shift, scale = self.scaling
        shift = np.where(self.spectrum[: self.n_penalized] > 0, shift, 0.0)
        taken_off = shift / scale / math.sqrt(varied)
        return math.hypot(1.0, float(linalg.norm(taken_off)))  # whose squares may not overflow

    def place(self, array: Array) -> Array:
        """A NumPy array where parameters and scores are."""
        return as_library(array, self.like)

    def to_original(self, parameters: Array) -> tuple[Array, Array]:
        """Coefficients (k, d) and intercepts (k,) for the X that the user has, in NumPy."""
        features = parameters[: self.n_penalized, :]
        if self.basis is not None:
            features = self.basis @ features
        shift, scale = self.scaling
        coef = to_numpy(features).T / scale
        intercept = to_numpy(parameters)[-1] if self.fit_intercept else np.zeros(coef.shape[0])
        return coef, intercept - coef @ shift

    def from_original(self, coef: Array, intercept: Array) -> Array:
        """The parameters of given coefficients; without an intercept, b is left behind."""
        shift, scale = self.scaling
        parameters = self.place(np.empty((self.n_parameters, coef.shape[0])))
        features = self.place((coef * np.where(np.isinf(scale), 0.0, scale)).T)
        parameters[: self.n_penalized, :] = (
            features if self.basis is None else self.basis.T @ features
        )
        if self.fit_intercept:
            parameters[-1, :] = self.place(intercept + coef @ shift)
        return parameters


@dataclass(eq=False)
class Design(ParameterSpace):
    """Centered and scaled features, with or without an intercept."""

    # dense with a column of ones, or sparse and scaled: a correction of the products centers it
    matrix: Array

    def __post_init__(self) -> None:
        self.shift = self.scaling[0] / self.scaling[1] if self.centers_afterwards else None

    @property
    def n_samples(self) -> int:
        return int(self.matrix.shape[0])

    def scores(self, parameters: Array, out: Array) -> Array:
        """Θ, shape (n, k), written into ``out``."""
        if self.shift is None:
            return matmul(self.matrix, cast(parameters, self.matrix.dtype), out)
        features = parameters[: self.n_penalized, :]
        row = -(self.shift @ features)
        if self.fit_intercept:
            row += parameters[-1]
        product = self.matrix @ cast(features, self.like.dtype)
        return np.add(product, cast(row, self.like.dtype), out=out)

    def adjoint(self, gradient: Array) -> Array:
        """The transposed map: (n, k) → (p, k)."""
        if self.shift is not None:
            total = gradient.sum(axis=0, dtype=np.float64)
            product = cast(self.matrix.T @ gradient, np.float64)
            product -= np.outer(self.shift, total)
            return np.vstack([product, total]) if self.fit_intercept else product
        if is_numpy(gradient) and gradient.flags.f_contiguous:
            product = np.matmul(gradient.T, self.matrix).T
        else:
            product = self.matrix.T @ gradient
        return cast(product, namespace(product).float64)


def make_design(
    X: Array, weights: Array | None, *, fit_intercept: bool, standardize: bool, n_scores: int
) -> Design:
    """The design of X, dense or sparse, for k = ``n_scores``, which decides if a rotation pays."""
    scaling = measure(X, weights, center=fit_intercept or standardize, standardize=standardize)
    matrix, basis = scaled(X, scaling), None
    if not sparse.issparse(X) and rotation_pays(X.shape[0], X.shape[1], n_scores):
        basis = principal_directions(matrix, weights)
    return design_of(matrix, weights, scaling, basis, fit_intercept)


def scaled(X: Array, scaling: Scaling) -> Array:
    """Features divided by their scale, and dense ones centered; a copy only where they change."""
    shift, scale = scaling
    if sparse.issparse(X):
        changed = (scale != 1).any()
        return X @ sparse.diags_array(1 / scale.astype(X.dtype), format="csr") if changed else X
    if shift.any():
        X = X - cast(as_library(shift, X), X.dtype)
    if (scale != 1).any():
        X = X / cast(as_library(scale, X), X.dtype)
    return X


def design_of(
    matrix: Array, weights: Array | None, scaling: Scaling, basis: Array | None, fit_intercept: bool
) -> Design:
    """The design of features that have been scaled; dense ones are rotated to the basis here."""
    if sparse.issparse(matrix):
        mean, variance = moments(matrix, weights)
        spectrum = variance + np.square(mean - scaling[0] / scaling[1])
        spectrum = np.append(spectrum, 1.0) if fit_intercept else spectrum
        return Design(spectrum, scaling, fit_intercept, None, matrix.data, True, matrix)
    if basis is not None:
        matrix = matrix @ cast(basis, matrix.dtype)
    if fit_intercept:
        xp = namespace(matrix)
        matrix = xp.concat([matrix, xp.ones_like(matrix[:, :1])], axis=1)
    spectrum = _mean(matrix * matrix, weights)
    return Design(spectrum, scaling, fit_intercept, basis, matrix, False, matrix)
