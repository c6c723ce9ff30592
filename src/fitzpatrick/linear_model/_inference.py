r"""Standard errors of coefficients, and what a feature does to the predictions on average.

With the gradient :math:`g_i` of the loss of a sample in the parameters η and the Hessian H of the
whole objective, penalty included, the coefficients have the sandwich covariance

.. math:: H^{-1} \Big(\sum_i w_i^2\, g_i g_i^\top\Big) H^{-1},

robust to a loss that is not a likelihood (HC0, Huber and White). Gradients of one cluster are added
up before they are multiplied. Losses on the simplex do not change when a constant is added to all
scores, so that only differences of coefficients between classes are known: they are reported
against a reference class.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, sparse, stats

from .._array import Array, to_numpy
from ..losses import Loss, get_loss

if TYPE_CHECKING:
    from ._estimators import LinearModel

MAX_PARAMETERS = 5000  # beyond this the Hessian as a matrix takes minutes
_STEP = 1e-4  # of the central differences, in units of a score


@dataclass(frozen=True, eq=False)
class Summary:
    """Coefficients with their errors, and average marginal effects with theirs.

    Printing it shows both tables.

    Attributes:
        coefficients: a data frame, a row for each target and feature: coef, std_err, z, p_value
            and the ends of the confidence interval.
        covariance: of the coefficients, in the order of the rows.
        title: what was fitted, to how many samples.
        compute_effects: makes the table of the marginal effects.
    """

    coefficients: Any
    covariance: Array
    title: str
    compute_effects: Callable[[], Any]

    @cached_property
    def marginal_effects(self) -> Any:
        """The mean derivative of each prediction in each feature, in the same columns."""
        return self.compute_effects()

    def __str__(self) -> str:
        parts = [self.title, "", self.coefficients.round(4).to_string()]
        parts += ["", "average marginal effects", self.marginal_effects.round(4).to_string()]
        return "\n".join(parts)


def summarize(
    model: "LinearModel",
    X: Any,
    targets: Any,
    weights: Array | None,
    names: tuple[list[str], list[str]],
    *,
    groups: Any,
    level: float,
    reference: int,
) -> Summary:
    """The tables of a fitted model at checked data.

    Args:
        model: fitted.
        X: features, dense or CSR, in NumPy.
        targets: class indices (n,) or rows (n, k).
        weights: of the samples, or None.
        names: of the targets and of the features.
        groups: cluster of each sample, or None.
        level: of the confidence intervals.
        reference: the class that others are compared with, where only differences are known.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    target_names, feature_names = names
    n = int(targets.shape[0])
    if not 0 <= reference < len(target_names):
        raise ValueError(
            f"reference must be the place of a class, 0 to {len(target_names) - 1}, got {reference}"
        )
    problem = _Problem.of(model, X, targets, weights)
    covariance = problem.covariance(_clusters(groups, n))
    contrast, rows = problem.contrasts(target_names, reference)
    columns = [*feature_names, *(["(intercept)"] if model._fitted_with[2] else [])]
    spread = np.kron(contrast, np.eye(problem.width))
    covariance_of_rows = spread @ covariance @ spread.T
    index = _index(rows, columns)
    table = _table(spread @ problem.parameters, np.sqrt(np.diag(covariance_of_rows)), index, level)
    kind = "clusters" if groups is not None else "sandwich (HC0)"
    title = (
        f"{type(model).__name__}, {get_loss(model.loss_)!r} at tightness {model.tightness_:g}, "
        f"{n} samples, standard errors: {kind}"
    )
    if problem.on_simplex:
        title += f", coefficients against {target_names[reference]!r}"
    effects = partial(_effect_table, problem, covariance, names, level)
    return Summary(table, covariance_of_rows, title, effects)


def _effect_table(
    problem: "_Problem", covariance: Array, names: tuple[list[str], list[str]], level: float
) -> Any:
    """Average marginal effects, with errors by the delta method."""
    effects, slopes = problem.effects(len(names[1]))
    errors = np.sqrt(np.einsum("ep,ep->e", slopes @ covariance, slopes))
    return _table(effects, errors, _index(*names), level)


@dataclass(frozen=True, eq=False)
class _Problem:
    """A model at data, in coordinates in which its Hessian has an inverse.

    Scores are B η x, with the columns of B the directions in which scores of a row count: all of
    them, those of sum zero on the simplex, or the second class against the first of two.
    """

    loss: Loss
    X: Any  # (n, width), with a column of ones for an intercept
    targets: Any
    weights: Array
    basis: Array  # B, (k, m)
    parameters: Array  # (m · width,)
    penalty: Array  # of one row of parameters, (width,)
    on_simplex: bool
    is_classifier: bool

    @classmethod
    def of(cls, model: "LinearModel", X: Any, targets: Any, weights: Any) -> "_Problem":
        fitted = get_loss(model.loss_)
        loss = Loss(fitted.regularizer, model.tightness_)
        coef = np.column_stack([to_numpy(model.coef_), to_numpy(model.intercept_)])
        coef = coef.astype(np.float64)
        n, d = X.shape
        alpha, is_standardized, has_intercept = model._fitted_with
        X = X.astype(np.float64)
        weights = np.ones(n) if weights is None else weights
        scale = np.ones(d)
        if is_standardized:
            mean = np.asarray(weights @ X).ravel() / weights.sum()
            if not has_intercept:  # scores are W (x − mean)
                X = (X.toarray() if sparse.issparse(X) else X) - mean
                mean = np.zeros(d)
            if sparse.issparse(X):
                scale = np.asarray(weights @ X.multiply(X)).ravel() / weights.sum() - mean**2
            else:
                scale = weights @ np.square(X - mean) / weights.sum()
        penalty = np.append(alpha * scale, 0.0)
        ones = np.ones((n, 1))
        X = sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])
        if not has_intercept:
            X, coef, penalty = X[:, :d], coef[:, :d], penalty[:d]
        on_simplex = loss.regularizer.domain.has_labels
        if len(coef) == 1 and on_simplex:
            basis = np.asarray([[0.0], [1.0]])
        elif on_simplex:
            basis = linalg.null_space(np.ones((1, len(coef))))
        else:
            basis = np.eye(len(coef))
        parameters = coef if len(coef) == basis.shape[1] else basis.T @ coef
        return cls(
            loss, X, targets, weights, basis, parameters.ravel(), penalty, on_simplex,
            hasattr(model, "classes_"),
        )  # fmt: skip

    @property
    def width(self) -> int:
        return int(self.X.shape[1])

    def covariance(self, clusters: Array | None) -> Array:
        """The sandwich."""
        size = self.parameters.size
        if size > MAX_PARAMETERS:
            raise ValueError(
                f"{size} coefficients are too many for standard errors, which need their "
                f"Hessian as a matrix; at most {MAX_PARAMETERS}"
            )
        theta = self._scores(self.parameters)
        m = self.basis.shape[1]
        bread = np.diag(np.tile(self.penalty, m))
        for a in range(m):
            direction = np.broadcast_to(self.basis[:, a], theta.shape)
            curved = self.loss.hessian_product(self.targets, theta, direction) @ self.basis
            for b in range(a, m):
                block = self._gram(self.weights * curved[:, b])
                at = np.ix_(self._part(a), self._part(b))
                bread[at] += block
                if b > a:
                    bread[np.ix_(self._part(b), self._part(a))] += block
        residuals = (self.loss.gradient(self.targets, theta) @ self.basis) * self.weights[:, None]
        meat = self._meat(residuals, clusters)
        scale = np.sqrt(np.diag(bread))
        if not (scale > 0).all():
            raise ValueError(_SINGULAR)
        unit = bread / np.outer(scale, scale)
        eigenvalues = linalg.eigvalsh(unit)
        if eigenvalues[0] <= len(unit) * np.finfo(float).eps * eigenvalues[-1]:
            raise ValueError(_SINGULAR)
        half = linalg.solve(unit, meat / np.outer(scale, scale), assume_a="pos")
        inner = linalg.solve(unit, half.T, assume_a="pos") / np.outer(scale, scale)
        return (inner + inner.T) / 2

    def _part(self, a: int) -> Array:
        return np.arange(a * self.width, (a + 1) * self.width)

    def _gram(self, weights: Array) -> Array:
        weighted = (
            self.X.multiply(weights[:, None])
            if sparse.issparse(self.X)
            else (self.X * weights[:, None])
        )
        product = self.X.T @ weighted
        return product.toarray() if sparse.issparse(product) else product

    def _meat(self, residuals: Array, clusters: Array | None) -> Array:
        """Σ g gᵀ over samples, or over clusters of summed gradients."""
        m = residuals.shape[1]
        if clusters is None:
            rows = [
                [self._gram(residuals[:, a] * residuals[:, b]) for b in range(m)] for a in range(m)
            ]
            return np.block(rows)
        sums = sparse.csr_array(
            (np.ones(len(clusters)), (clusters, np.arange(len(clusters)))),
            shape=(int(clusters.max()) + 1, len(clusters)),
        )
        parts = []
        for a in range(m):
            scaled = sparse.diags_array(residuals[:, a]) @ self.X
            total = sums @ scaled
            parts.append(total.toarray() if sparse.issparse(total) else total)
        gradients = np.hstack(parts)
        return gradients.T @ gradients

    def _scores(self, parameters: Array) -> Array:
        scores = self.X @ (self.basis @ parameters.reshape(-1, self.width)).T
        return np.ascontiguousarray(scores)

    def contrasts(self, names: list[str], reference: int) -> tuple[Array, list[str]]:
        """What the rows of the table are of the parameters, and their names."""
        k = len(self.basis)
        if not self.on_simplex:
            return np.eye(k), names
        others = [j for j in range(k) if j != reference]
        return self.basis[others] - self.basis[reference], [names[j] for j in others]

    def effects(self, n_features: int) -> tuple[Array, Array]:
        """Mean derivatives of predictions in features, (k · d,), and their slopes in η.

        They are G W, with G the mean of the Jacobian of the predictions in the scores and W the
        coefficients: differences along k scores, and along k scores and m parameters of a feature.
        """
        theta = self._scores(self.parameters)
        k, m = self.basis.shape
        weights = (self.basis @ self.parameters.reshape(-1, self.width))[:, :n_features]
        shares = self.weights / self.weights.sum()
        X = sparse.diags_array(shares) @ self.X

        def along(score: Array, theta: Array) -> Array:
            rise = self._predict(theta + _STEP * score) - self._predict(theta - _STEP * score)
            return rise / (2 * _STEP)

        jacobian = np.stack([shares @ along(score, theta) for score in np.eye(k)], axis=1)
        slopes = np.zeros((k, n_features, m, self.width))
        places = np.arange(n_features)
        for a, direction in enumerate(self.basis.T):
            slopes[:, places, a, places] += (jacobian @ direction)[:, None]
            step = _STEP * direction
            for score, weight in zip(np.eye(k), weights, strict=True):
                bend = (along(score, theta + step) - along(score, theta - step)) / (2 * _STEP)
                slopes[:, :, a, :] += np.einsum("fo,j->ojf", X.T @ bend, weight)
        return (jacobian @ weights).ravel(), slopes.reshape(k * n_features, -1)

    def _predict(self, theta: Array) -> Array:
        return self.loss.probabilities(theta) if self.is_classifier else self.loss.link(theta)


_SINGULAR = (
    "the Hessian is singular: features are linearly dependent, or classes are separated by them; "
    "leave some out, or fit with a penalty (alpha > 0)"
)


def _clusters(groups: Any, n: int) -> Array | None:
    if groups is None:
        return None
    groups = np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups must have one entry per sample, {n}, got shape {groups.shape}")
    codes: Array = np.unique(groups, return_inverse=True)[1]
    if codes.max() == 0:
        raise ValueError("groups holds a single cluster; at least two are needed")
    return codes


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "summary() makes data frames; install pandas, or fitzpatrick[cli]"
        ) from error
    return pandas


def _index(targets: list[str], features: list[str]) -> Any:
    return _pandas().MultiIndex.from_product([targets, features], names=["target", "feature"])


def _table(values: Array, errors: Array, index: Any, level: float) -> Any:
    """The columns of a table of estimates."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = values / errors
    reach = stats.norm.ppf((1 + level) / 2) * errors
    return _pandas().DataFrame(
        {
            "coef": values,
            "std_err": errors,
            "z": z,
            "p_value": 2 * stats.norm.sf(np.abs(z)),
            "low": values - reach,
            "high": values + reach,
        },
        index=index,
    )
