r"""Standard errors of coefficients, and what a feature does to the predictions on average.

With the gradient :math:`g_i` of the loss of a sample in the parameters η and the Hessian H of the
whole objective, penalty included, the coefficients have the sandwich covariance

.. math:: H^{-1} \Big(\sum_i w_i^2\, g_i g_i^\top\Big) H^{-1},

robust to a loss that is not a likelihood (HC0, Huber and White). Gradients of one cluster are added
up before they are multiplied. Losses on the simplex do not change when a constant is added to all
scores, so that only differences of coefficients between classes are known: they are reported
against a reference class.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg, optimize, sparse, stats

from .._array import Array, is_foreign, to_numpy
from .._weights import check_weights
from ..losses import get_loss
from ._checks import check_features
from ._design import constant_columns, measure

if TYPE_CHECKING:
    from ._estimators import LinearModel

MAX_PARAMETERS = 5000  # beyond this the Hessian as a matrix takes minutes
_STEP = 1e-4  # of the central differences, in units of a score
# Separation is sought among coefficients of at most one, for features of at most one.
MIN_CHANGE = 1e-7  # of a score; where there is separation, some score changes by more
MAX_COST = 1e-6  # relative to the largest change of a score; what is below may be rounding
# The loss of a sample that a direction costs something rises by more, this far along it.
FAR, MAX_RISE = 1e12, 1e3
MAX_PROGRAMS, MAX_CONSTRAINTS = 100, 500  # the latter for each program
TINY = float(np.finfo(float).tiny)


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
    y: Any,
    sample_weight: Any,
    groups: Any,
    level: float,
    reference: int,
) -> Summary:
    """The tables of a fitted model; the arguments of ``model.summary``."""
    loss = model._fitted_loss
    if not loss.regularizer.has_curvature:
        raise ValueError(f"{loss!r} has no curvature, and its coefficients no standard errors")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    X = check_features(X, owner=model, reset=False)
    X = to_numpy(X) if is_foreign(X) else X
    weights = check_weights(sample_weight, X)
    given = copy.copy(model)  # checking targets sets attributes
    data = given._check_targets(X, y, weights, loss)
    targets = [str(name) for name in _target_names(model, given, data.n_classes)]
    if reference not in range(len(targets)):
        raise ValueError(
            f"reference must be the place of a class, 0 to {len(targets) - 1}, got {reference}"
        )
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
    features = np.asarray([str(name) for name in names])
    alpha, is_standardized, has_intercept = model._fitted_with
    constant = constant_columns(X, weights)
    kept = np.delete(np.arange(X.shape[1]), constant if is_standardized else [])
    if alpha == 0 and has_intercept and not is_standardized and constant.size:
        raise ValueError(
            f"the Hessian is singular: features {features[constant].tolist()} are constant, as the "
            "intercept is; leave them out, or fit with standardize=True or a penalty (alpha > 0)"
        )
    problem = _Problem(model, X[:, kept], data.targets, data.weights, kept)
    covariance = problem.covariance(_clusters(groups, X.shape[0]))
    contrast, rows = problem.basis, targets
    on_simplex = loss.regularizer.domain.has_labels
    if on_simplex:
        contrast = np.delete(contrast - contrast[reference], reference, axis=0)
        rows = [*targets[:reference], *targets[reference + 1 :]]
    spread = np.kron(contrast, np.eye(problem.width))  # the rows of the table, of the parameters
    of_rows = spread @ covariance @ spread.T
    columns = [*features[kept], *(["(intercept)"] if has_intercept else [])]
    coefficients = _table(spread @ problem.parameters, np.diag(of_rows), rows, columns, level)
    kind = "clusters" if groups is not None else "sandwich (HC0)"
    title = (
        f"{type(model).__name__}, {get_loss(model.loss_)!r} at tightness {model.tightness_:g}, "
        f"{X.shape[0]} samples, standard errors: {kind}"
    )
    if on_simplex:
        title += f", coefficients against {targets[reference]!r}"
    if len(kept) < len(features):
        title += f", without the constant features {features[constant].tolist()}"
    effects = partial(problem.effect_table, covariance, targets, features[kept], level)
    return Summary(coefficients, of_rows, title, effects)


def _target_names(model: "LinearModel", given: "LinearModel", n_classes: int) -> Any:
    """Classes, which have to be the same as in the fit, or names of the columns of y."""
    if not hasattr(model, "classes_"):
        return getattr(model, "target_names_in_", [f"y{j}" for j in range(n_classes)])
    found, fitted = to_numpy(given.classes_), to_numpy(model.classes_)
    if not np.array_equal(found, fitted):
        raise ValueError(
            f"y holds the classes {found.tolist()[:5]}, and the fit had {fitted.tolist()[:5]}; "
            "give the samples of the fit"
        )
    return fitted


class _Problem:
    """A model in some of its features at data, in coordinates in which its Hessian has an inverse.

    Scores are B η x, with the columns of B the directions in which scores of a row count: all of
    them, on the simplex those of sum zero, or the second class against the first of two.
    """

    def __init__(
        self, model: "LinearModel", X: Any, targets: Any, weights: Any, kept: Array
    ) -> None:
        alpha, is_standardized, has_intercept = model._fitted_with
        self.loss = model._fitted_loss
        self.predict = partial(model._predictions, loss=self.loss)
        self.targets = targets
        self.weights = np.ones(X.shape[0]) if weights is None else weights
        coef, intercept = to_numpy(model.coef_)[:, kept], to_numpy(model.intercept_)
        X, coef = X.astype(np.float64), coef.astype(np.float64)
        shift, scale = measure(X, weights, center=is_standardized, standardize=is_standardized)
        penalty = alpha * np.square(scale)
        if has_intercept:
            ones = np.ones((X.shape[0], 1))
            X = sparse.hstack([X, ones]) if sparse.issparse(X) else np.hstack([X, ones])
            coef, penalty = np.c_[coef, intercept], np.append(penalty, 0.0)
        elif is_standardized:  # scores are W (x − mean)
            X = _dense(X) - shift
        self.X = sparse.csr_array(X) if sparse.issparse(X) else X
        self.width = int(X.shape[1])
        self.basis = np.eye(len(coef))  # B, (k, m)
        if self.loss.regularizer.domain.has_labels:
            is_pair = len(coef) == 1
            ones = np.ones((1, len(coef)))
            self.basis = np.eye(2)[:, 1:] if is_pair else linalg.null_space(ones)
            coef = coef if is_pair else self.basis.T @ coef
        self.parameters = coef.ravel()
        self.penalty = np.tile(penalty, self.basis.shape[1])

    def covariance(self, clusters: Array | None) -> Array:
        size = self.parameters.size
        if size > MAX_PARAMETERS:
            raise ValueError(
                f"{size} coefficients are too many for standard errors, which need their "
                f"Hessian as a matrix; at most {MAX_PARAMETERS}"
            )
        if self._is_separated():
            raise ValueError(_SEPARATED)
        theta = self._scores(self.parameters)
        bread = self._hessian(theta)
        residuals = (self.loss.gradient(self.targets, theta) @ self.basis) * self.weights[:, None]
        if clusters is None:
            meat = self._blocks(lambda a, b: residuals[:, a] * residuals[:, b])
        else:
            n = len(clusters)
            members = sparse.csr_array((np.ones(n), (clusters, np.arange(n))))
            parts = [_dense(members @ (self.X * column[:, None])) for column in residuals.T]
            gradients = np.hstack(parts)  # of the samples in each cluster, added up
            meat = gradients.T @ gradients
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

    def _is_separated(self) -> bool:
        """True if coefficients can grow for ever without a cost, so that none are the best.

        Far out along a direction, the loss of a sample rises by max ⟨p, d⟩ − ⟨y, d⟩ per step, with
        d the change of its scores and p in the domain; a penalty rises ever faster. The minimum is
        finite and unique unless all of this is zero along a direction in which some score changes.
        Linear programs look for one. Each maximizes Σ ⟨y − q, d⟩ with q inside of the domain, which
        is positive in any such direction, and adds constraints that the last solution violates.
        """
        y, domain, counts = self.targets, self.loss.regularizer.domain, self.weights > 0
        y = np.eye(len(self.basis))[y] if y.ndim == 1 else _dense(y)

        def leave(scores: Array) -> Array:
            """From y to a p of the largest ⟨p, d⟩, or a step towards it where that is at ∞."""
            farthest = domain.maximize(scores)
            return np.where(np.isinf(farthest), np.sign(farthest), farthest - y)

        ones = np.ones(y.shape)
        inward = (leave(ones) + leave(-ones) + self.loss.link(0 * ones) - y) / 3
        gains = -self.weights[:, None] * inward
        largest = _dense(abs(self.X[np.flatnonzero(counts)]).max(axis=0))
        largest = np.tile(np.ravel(largest), self.basis.shape[1])
        is_free = (self.penalty == 0) & (largest > 0)
        units = is_free / np.where(is_free, largest, 1.0)
        if self._has_minimum(y, units):
            return False
        goal = units * self._adjoint(gains)
        constraints = np.empty((0, goal.size))
        for _ in range(MAX_PROGRAMS):
            program = optimize.linprog(
                -goal / max(np.abs(goal).max(), TINY),
                constraints,
                np.zeros(len(constraints)),
                bounds=(-1, 1),
                options={"primal_feasibility_tolerance": 1e-10},
            )
            if not program.success:  # by rounding; a singular Hessian is found below
                return False
            scores = self._scores(units * program.x)
            away = leave(scores)
            costs = counts * np.sum(scores * away, axis=1)
            largest_change = np.abs(scores[counts]).max()
            if largest_change <= MIN_CHANGE:
                return False
            if costs.max() <= MAX_COST * largest_change:
                step = units * program.x * (FAR / largest_change)
                return not self._costs_something(step, counts)
            worst = np.argsort(costs)[-MAX_CONSTRAINTS:]
            worst = worst[costs[worst] > MAX_COST * largest_change]
            rows = (away[worst] @ self.basis)[:, :, None] * _dense(self.X[worst])[:, None, :]
            constraints = np.vstack([constraints, units * rows.reshape(len(worst), -1)])
        return False

    def _costs_something(self, step: Array, counts: Array) -> bool:
        """True if the loss of a sample rises; beside one large feature that looks like rounding."""
        with np.errstate(all="ignore"):
            here, there = (
                self.loss.value(self.targets, self._scores(x))[counts]
                for x in (self.parameters, self.parameters + step)
            )
            return bool((there - here).max() > MAX_RISE)

    def _has_minimum(self, y: Array, units: Array) -> bool:
        """True if the gradient proves, without a linear program, that there is no separation.

        Along a direction of separation each ⟨y − y*, d⟩ is at least ‖d‖ ρ / √(2k), ρ the distance
        from y* to the bounds of its coordinates, and their sum is at most the gradient's norm,
        which a fit makes small, times the length of the direction. ‖d‖ is at least ‖d‖², divided by
        the longest row of features and that length, so that a Gram matrix bounds the sum below.
        """
        coordinates = self.loss.regularizer.domain.coordinates
        if coordinates is None:
            return False
        residual = self.loss.gradient(self.targets, self._scores(self.parameters))
        low, high = coordinates.bounds
        distance = np.minimum(y + residual - low, high - y - residual).min(axis=1)
        slope = linalg.norm(units * self._adjoint(self.weights[:, None] * residual))
        X = self.X @ sparse.diags_array(units[: self.width])
        X = X[:, np.flatnonzero(units[: self.width])]
        gram = _dense(X.T @ (X * (self.weights * np.clip(distance, 0.0, 1.0))[:, None]))
        longest = np.sqrt((X * X).sum(axis=1)[self.weights > 0].max())
        least = linalg.eigvalsh(gram)[0] if len(gram) else np.inf
        return bool(least > longest * np.sqrt(2 * y.shape[1]) * slope)

    def _adjoint(self, rows: Array) -> Array:
        """Σ_i x_i r_iᵀ in η, for rows r of the shape of the scores."""
        return (self.basis.T @ (self.X.T @ rows).T).ravel()

    def _hessian(self, theta: Array) -> Array:
        """The Hessian of the objective in η, at scores."""
        curved = [
            self.loss.hessian_product(self.targets, theta, np.broadcast_to(column, theta.shape))
            @ self.basis
            for column in self.basis.T
        ]
        return self._blocks(lambda a, b: self.weights * curved[a][:, b]) + np.diag(self.penalty)

    def _blocks(self, weights: Callable[[int, int], Array]) -> Array:
        """Gram matrices of X, weighted for each pair of parameter rows, as one matrix."""
        m, width = self.basis.shape[1], self.width
        blocks = np.empty((m, width, m, width))
        for a in range(m):
            for b in range(a + 1):
                block = _dense(self.X.T @ (self.X * weights(a, b)[:, None]))
                blocks[a, :, b] = blocks[b, :, a] = block
        return blocks.reshape(m * width, m * width)

    def _scores(self, parameters: Array) -> Array:
        scores = self.X @ (self.basis @ parameters.reshape(-1, self.width)).T
        return np.ascontiguousarray(scores)

    def effect_table(
        self, covariance: Array, targets: list[str], features: Array, level: float
    ) -> Any:
        """Average marginal effects, with errors by the delta method."""
        effects, slopes = self.effects(len(features))
        variances = np.einsum("ep,ep->e", slopes @ covariance, slopes)
        return _table(effects, variances, targets, features, level)

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
            rise = self.predict(theta + _STEP * score) - self.predict(theta - _STEP * score)
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


_SINGULAR = (
    "the Hessian is singular: features are linearly dependent, or classes are all but separated by "
    "them; leave some out, or fit with a penalty (alpha > 0)"
)
_SEPARATED = (
    "perfect separation: features tell some classes apart without an error, or a class has no "
    "sample, so that no coefficients are the best, and they have no standard errors; fit with a "
    "penalty (alpha), or leave out the features with the largest coefficients, or the class"
)


def _dense(array: Any) -> Array:
    return array.toarray() if sparse.issparse(array) else array


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


def _table(values: Array, variances: Array, targets: list[str], features: Any, level: float) -> Any:
    """A data frame of estimates, with a row for each target and feature."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "summary() makes data frames; install pandas, or fitzpatrick[cli]"
        ) from error
    errors = np.sqrt(np.maximum(variances, 0.0))  # rounding may leave less than nothing
    with np.errstate(divide="ignore", invalid="ignore"):
        z = values / errors
    reach = stats.norm.ppf((1 + level) / 2) * errors
    columns = {
        "coef": values,
        "std_err": errors,
        "z": z,
        "p_value": 2 * stats.norm.sf(np.abs(z)),
        "low": values - reach,
        "high": values + reach,
    }
    index = pandas.MultiIndex.from_product([targets, features], names=["target", "feature"])
    return pandas.DataFrame(columns, index=index)
