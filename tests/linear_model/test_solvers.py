"""The solvers by themselves: what they report, and how they behave at kinks and boundaries."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from fitzpatrick import engines
from fitzpatrick.linear_model import Iteration, ProportionRegressor, Status, _path, fit_path
from fitzpatrick.linear_model._objective import Point
from fitzpatrick.linear_model._preconditioner import Map, updated_inverse
from fitzpatrick.linear_model._sums import BinaryLoss, memory_order, with_zero_score
from fitzpatrick.linear_model._threads import blas_threads, limited_blas
from fitzpatrick.linear_model.solvers import Report, _newton_cg, newton_cg
from fitzpatrick.linear_model.solvers._newton_cg import decrease, steihaug
from fitzpatrick.linear_model.solvers._status import Stopping
from fitzpatrick.regularizers import Negentropy, SquaredNorm
from fitzpatrick.sets import Simplex
from tests.helpers import seeded

from .data import X, Y, penalty_path, targets


@pytest.mark.parametrize("hands_over", [False, True])
def test_where_kinks_stop_newton(hands_over: bool, capsys, monkeypatch) -> None:
    """Stronger penalties lead around kinks; where no step may be shortened, L-BFGS takes over."""
    rng = seeded(0)
    X = rng.standard_normal((150, 60))
    Y = np.eye(5)[rng.integers(0, 5, 150)]
    expected = ProportionRegressor("sparsemax", 0.05, solver="lbfgs").fit(X, Y)
    if hands_over:
        monkeypatch.setattr(_newton_cg, "MIN_STEP", 1.0)
    else:
        monkeypatch.setattr(SquaredNorm, "has_mean_slope", False)  # as on sets of whole batches
    seen: list[Iteration] = []
    model = ProportionRegressor("sparsemax", 0.05, verbose=1, callback=seen.append).fit(X, Y)
    assert "stronger penalties lead to this one" in capsys.readouterr().out
    assert model.status_ is (Status.SWITCHED if hands_over else Status.CONVERGED)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-6)
    assert [now.iteration for now in seen] == list(range(model.n_iter_ + 1))
    model.set_params(max_iter=model.n_iter_ - 1, callback=None, verbose=0)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        assert model.fit(X, Y).n_iter_ == model.max_iter


def test_newton_goes_on_while_the_objective_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare features without an intercept: the gradient grows for a while on the way down."""
    monkeypatch.setattr(_path, "PATIENCE", 2)
    rng = seeded(4)
    X = (rng.random((1000, 30)) < np.geomspace(0.002, 0.3, 30)).astype(float)
    X = X[:, np.ptp(X, axis=0) > 0]
    Y = np.eye(5)[rng.choice(5, 1000, p=[0.7, 0.075, 0.075, 0.075, 0.075])]
    model = ProportionRegressor("logistic", 1e-3, fit_intercept=False)
    model.fit((X - X.mean(axis=0)) / X.std(axis=0), Y)
    assert model.status_ is Status.CONVERGED  # and not switched to L-BFGS


def test_newton_does_not_go_on_for_ever_smaller_gains_of_the_gradient() -> None:
    """Where rounding hides the objective, steps may shorten the gradient by its last digits."""

    class Rounded:
        """A quadratic whose values and steps have all but lost their digits."""

        def evaluate(self, parameters: np.ndarray) -> Point:
            return Point(parameters, 1.0, 1e-3 + 1e-9 * parameters, 0.0)

        def curvature(self, point: Point, step: np.ndarray | None) -> tuple[Map, Map]:
            return np.copy, np.copy

    start = Rounded().evaluate(np.zeros(1))
    result = newton_cg(Rounded(), start, stopping(max_iter=1000, patience=5), Report(0.0, 0.0))
    assert result.point.gradient_norm < start.gradient_norm
    assert result.n_iter == 5


def test_steihaug_minimizes_within_the_region() -> None:
    rng = seeded(0)
    root = rng.standard_normal((6, 6))
    hessian = root @ root.T + np.eye(6)
    gradient = rng.standard_normal((6, 1))
    diagonal = np.diag(hessian)[:, None]

    def run(radius: float) -> tuple[np.ndarray, float, bool, float]:
        return steihaug(gradient, lambda v: hessian @ v, lambda r: r / diagonal, radius, 1e-12)

    newton = -np.linalg.solve(hessian, gradient)
    step, length, at_boundary, predicted = run(np.inf)
    np.testing.assert_allclose(step, newton, rtol=1e-8)
    assert not at_boundary
    assert length == pytest.approx(np.sqrt((newton**2 * diagonal).sum()))
    assert predicted == pytest.approx(-float((gradient * newton).sum()) / 2)
    step, radius, at_boundary, predicted = run(length / 2)
    assert at_boundary
    assert np.sqrt((step**2 * diagonal).sum()) == pytest.approx(length / 2)
    model = float((gradient * step).sum() + (step * (hessian @ step)).sum() / 2)
    assert predicted == pytest.approx(-model)
    assert radius == pytest.approx(length / 2)


def stopping(**changes: float) -> Stopping:
    given = {"tol": 1e-12, "reference": 1.0, "noise": 0.0, "max_iter": 10, "eps": 2.0**-52}
    return Stopping(**(given | changes))


def test_the_end_is_a_small_gradient_and_a_small_duality_gap() -> None:
    """Without progress it is precision, but only near the optimum."""
    for changes, point, reached, without_progress in (
        ({}, (0.0, 1.0), Status.ZERO, Status.STALLED),
        ({}, (1.0, 1e-13), Status.CONVERGED, Status.PRECISION),
        ({}, (1.0, 1e-7), None, Status.PRECISION),
        ({}, (1.0, 1e-3), None, Status.STALLED),
        # a gap of 1e-14 / 2e-4 against an objective of 1e-6
        ({"alpha": 1e-4}, (1.0, 1e-7), None, Status.PRECISION),
        ({"alpha": 1e-4}, (1e-9, 1e-7), None, Status.STALLED),
        # where large numbers cancel, more is hidden, but not everything
        ({"cancellation": 1e8}, (1.0, 1e-3), None, Status.PRECISION),
        ({"cancellation": 1e300}, (1.0, 0.02), None, Status.STALLED),
        # √tol of the objective is 1e-6, ‖g‖²/(2 alpha) is 5e-9 for one alpha, 5e-6 for the other
        ({"tol": 1e-6}, (1e-3, 1e-6), Status.CONVERGED, Status.PRECISION),
        ({"tol": 1e-6, "alpha": 1e-4}, (1e-3, 1e-6), Status.CONVERGED, Status.PRECISION),
        ({"tol": 1e-6, "alpha": 1e-7}, (1e-3, 1e-6), None, Status.STALLED),
        ({"noise": 1e-5, "alpha": 1e-7}, (1e-3, 1e-6), Status.CONVERGED, Status.PRECISION),
    ):
        assert stopping(**changes).reached(*point) is reached
        assert stopping(**changes).without_progress(*point) is without_progress


@pytest.mark.parametrize(("loss", "alpha"), [("sparsemax", 1e-2), ("fitzpatrick_logistic", 1e-3)])
def test_cold_warm_and_path_agree_on_separable_data(loss: str, alpha: float) -> None:
    rng = seeded(0)
    X, labels = rng.standard_normal((60, 200)), rng.integers(0, 4, 60)
    Y = np.eye(4)[labels]
    cold = ProportionRegressor(loss, alpha, fit_intercept=False).fit(X, Y)
    warm = ProportionRegressor(loss, fit_intercept=False, warm_start=True)
    alphas = 10.0 ** np.arange(3, np.log10(alpha) - 0.5, -1)
    for strength in alphas:
        warm.set_params(alpha=strength).fit(X, Y)
    path = list(penalty_path(X, labels, loss, fit_intercept=False).models(alphas))
    assert cold.status_.converged
    assert warm.objective_ == pytest.approx(cold.objective_, rel=2e-5)
    assert path[-1].objective == pytest.approx(cold.objective_, rel=2e-5)
    np.testing.assert_allclose(warm.predict(X), cold.predict(X), atol=2e-3)


def test_a_zero_gradient_at_zero_is_the_end_from_anywhere() -> None:
    model = ProportionRegressor(warm_start=True).fit(X, Y)
    model.fit(X, np.full_like(Y, 1 / Y.shape[1]))
    np.testing.assert_allclose(model.coef_, 0, atol=1e-12)
    model = ProportionRegressor(warm_start=True, fit_intercept=False).fit(X, Y)
    model.fit(np.zeros_like(X), Y)
    assert not model.coef_.any()
    assert model.status_ is Status.CONVERGED


def test_steps_that_overflow_are_shortened_in_silence() -> None:
    rng = seeded(1)
    X = rng.standard_normal((200, 5))
    y = rng.poisson(np.exp(X.sum(axis=1) + 5)).astype(float)
    model = ProportionRegressor("poisson").fit(X, y)  # warnings are errors here
    assert model.status_.converged


@threadpool_limits.wrap(3, user_api="blas")
def test_threads_that_fit_leave_the_pools_as_they_were() -> None:
    def threads() -> list[int]:
        return [p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"]

    before = threads()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with limited_blas(1):
            entered.set()
            leave.wait(timeout=30)

    thread = threading.Thread(target=other)
    with limited_blas(2):
        thread.start()
        assert entered.wait(timeout=30)
    leave.set()  # the second one in is the last one out
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert threads() == before
    assert [memory_order(n_scores) for n_scores in (10, 1000)] == ["F", "C"]
    assert [blas_threads(*given) for given in ((None, 1e3), (None, 1e10), (3, 1e3))] == [1, None, 3]


def test_memory_makes_m_agree_with_the_hessian() -> None:
    rng = seeded(0)
    p, k, n_penalized = 5, 3, 4
    root = rng.standard_normal((p * k, p * k))
    hessian = root @ root.T + np.eye(p * k)
    penalized = np.repeat(np.arange(p) < n_penalized, k).astype(float)

    def product(v: np.ndarray, alpha: float) -> np.ndarray:
        return ((hessian + alpha * np.diag(penalized)) @ v.reshape(-1)).reshape(v.shape)

    def inverse_of(given):
        return updated_inverse(lambda r: r / 2, given, 0.7, n_penalized, np.asarray)

    directions = rng.standard_normal((2, p, k))
    pairs = [(s, product(s, alpha), alpha) for s, alpha in zip(directions, (3.0, 0.5), strict=True)]
    inverse, latest = inverse_of(pairs), directions[-1]
    np.testing.assert_allclose(inverse(product(latest, 0.7)), latest, rtol=1e-9)
    residuals = rng.standard_normal((2, p, k))
    images = [inverse(r) for r in residuals]
    assert np.vdot(residuals[0], images[1]) == pytest.approx(np.vdot(images[0], residuals[1]))
    # directions without curvature are left out; sums of products, in another order
    flat = np.zeros((p, k))
    flat[-1] = rng.standard_normal(k)
    for given in ([], pairs):
        expected, found = (inverse_of(g)(latest) for g in (given, [*given, (flat, 0 * flat, 0.7)]))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "fitzpatrick_sparsemax", "sigmoid"])
def test_curvature_of_all_rows_from_entries_is_that_by_products(loss: str, weighted: bool) -> None:
    Y = targets(loss, X)
    weights = seeded(2).uniform(0.5, 2.0, len(X)) if weighted else None
    objective = penalty_path(X, Y, loss, weights).objective
    parameters = seeded(3).standard_normal(objective.zero().shape)
    sums = objective.sums
    hessian = sums.linearize(parameters)
    by_products = sums._curvature_by_products(hessian)
    np.testing.assert_allclose(sums._curvature_by_entries(hessian), by_products, atol=1e-12)
    diagonal = sums._sum(sums._diagonal(hessian))
    np.testing.assert_allclose(diagonal, np.diag(by_products), atol=1e-12)
    if loss == "sigmoid":  # random signs cancel where classes are not coupled
        assert sums._mean_curvature(hessian) == pytest.approx(diagonal.mean(), rel=1e-12)


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("omega", [Negentropy(), SquaredNorm(Simplex())])
def test_the_curvature_of_one_score_is_that_of_two(omega, tightness: float) -> None:
    rng = seeded(0)
    score, v = rng.standard_normal((2, 30, 1))
    pair = engines.bind(omega, tightness, rng.integers(0, 2, 30), 2)
    for reach in (None, np.linspace(0.1, 3.0, 30)):
        hessian = BinaryLoss(pair).hessian_operator(score, reach)
        # two scores that differ by s move by half of its step, around their mean
        both = with_zero_score(score), None if reach is None else reach / 2
        expected = pair.hessian_operator(*both)(with_zero_score(v))[:, 1:]
        np.testing.assert_allclose(hessian(v), expected, atol=1e-14)
        np.testing.assert_allclose(hessian.d * v, expected, atol=1e-14)


def test_a_point_moves_to_another_alpha_and_stays_as_it_was() -> None:
    free = penalty_path(X, Y, "logistic").objective
    one, other = (replace(free, alpha=alpha) for alpha in (2.0, 0.3))
    given = one.evaluate(seeded(3).standard_normal(free.zero().shape))
    for found, objective in ((other.move(given), other), (given, one)):
        expected = objective.evaluate(given.parameters)
        assert found.value == pytest.approx(expected.value, rel=1e-13)
        assert found.alpha == expected.alpha
        np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_sparsemax"])
def test_features_of_very_different_scales_end_in_a_model(name: str) -> None:
    rng = seeded(2)
    X = rng.standard_normal((60, 6)) * 10.0 ** np.array([-6, -3, 0, 2, 5, 7])
    Y = rng.dirichlet(np.ones(3), 60)
    zero = ProportionRegressor(name, alpha=1e12).fit(X, Y)
    model = ProportionRegressor(name, alpha=1e-9).fit(X, Y)
    assert np.isfinite(model.coef_).all()
    assert model.objective_ < zero.objective_


def test_a_warm_start_worse_than_zero_is_not_used() -> None:
    rng = seeded(0)
    X = rng.standard_normal((120, 8))
    Y = rng.poisson(1.0, size=(120, 2)).astype(float)
    model = ProportionRegressor("poisson", warm_start=True).fit(X, Y).fit(1e4 * X, Y)
    assert model.objective_ == pytest.approx(
        ProportionRegressor("poisson").fit(1e4 * X, Y).objective_, rel=1e-6
    )


def test_where_values_cancel_the_decrease_is_that_of_the_slopes() -> None:
    """f(x) = 1 + x²/2 from 1e-9 to 0: the values are equal, the decrease is 5e-19."""
    step = np.array([-1e-9])
    before = Point(-step, 1.0, -step, 0.0)
    after = Point(0 * step, 1.0, 0 * step, 0.0)
    assert decrease(before, after, step, noise=1e-14) == pytest.approx(5e-19, rel=1e-12, abs=0)
    assert decrease(after, before, -step, noise=1e-14) == pytest.approx(-5e-19, rel=1e-12, abs=0)
    higher = Point(after.parameters, 1.5, after.gradient, 0.0)
    assert decrease(higher, after, step, noise=1e-14) == 0.5


@pytest.mark.parametrize("name", ["fitzpatrick_sparsemax", "fitzpatrick_logistic"])
def test_steps_that_crossed_kinks_say_where_to_look_for_curvature(name: str) -> None:
    generator = seeded(0)
    X = generator.normal(size=(60, 8))
    labels = np.argmax(X @ generator.normal(size=(8, 5)), axis=1)
    problem = penalty_path(X, labels, name, fit_intercept=False, n_threads=1)
    asked: list[tuple[np.ndarray, np.ndarray | None]] = []
    linearize = problem.sums.linearize

    def recorded(parameters, step=None):
        asked.append((parameters.copy(), None if step is None else step.copy()))
        return linearize(parameters, step)

    problem.sums.linearize = recorded
    assert problem.fit(1e-2).status.converged
    steps = [(now - before, step) for (before, _), (now, step) in pairwise(asked)]
    given = [(change, step) for change, step in steps if step is not None]
    if name == "fitzpatrick_logistic":  # which has none
        assert not given
        return
    assert steps[0][1] is None
    assert given
    for change, step in given:  # differ by the rounding of the points
        np.testing.assert_allclose(step, change, rtol=0, atol=1e-12 * np.abs(X).max())


@pytest.mark.parametrize("resumable", [True, False])
def test_path_is_that_of_single_fits(resumable: bool) -> None:
    seen: list[float] = []
    args, options = (X, Y, "fitzpatrick_logistic"), {"tightness": 0.5, "tol": 1e-10}
    options |= {"standardize": True}
    path = fit_path(
        *args, [10.0, 1.0, 0.1], resumable=resumable, **options,
        callback=lambda model: seen.append(model.alpha),
    )  # fmt: skip
    assert seen == path.alphas.tolist() == [10.0, 1.0, 0.1]
    for model, coef, intercept in zip(path.models, path.coefs, path.intercepts, strict=True):
        single = ProportionRegressor(alpha=model.alpha, **options).fit(X, Y)
        np.testing.assert_allclose(coef, single.coef_, atol=1e-7)
        np.testing.assert_allclose(intercept, single.intercept_, atol=1e-7)
        regressor = ProportionRegressor.from_model(model, "fitzpatrick_logistic", tightness=0.5)
        np.testing.assert_allclose(regressor.predict(X), single.predict(X), atol=1e-7)
        assert regressor.tightness_ == 0.5
    start = path.models[0].coef, path.models[0].intercept
    rest = fit_path(*args, [1.0, 0.1], start=start, resumable=True, **options)
    assert np.array_equal(rest.coefs, path.coefs[1:]) == resumable  # bit by bit


def test_minima_on_a_line_in_log_alpha_are_foreseen() -> None:
    """From the last two minima the next is, and expected once that was nearer than a step by M."""
    path = penalty_path(X, Y, "logistic")
    objective, rng = path.objective, seeded(0)
    start, slope = rng.standard_normal((2, *objective.zero().shape))
    alphas = 10.0 ** -np.cumsum(rng.uniform(0.5, 2.0, 6))
    for number, alpha in enumerate(alphas):
        at_alpha = replace(objective, alpha=alpha)
        minimum = at_alpha.evaluate(start + slope * np.log(alpha) + (number == 0))  # all but one
        expected = path._expected(at_alpha, path._zero)
        if number > 2:
            np.testing.assert_allclose(path._candidates[1], minimum.parameters, atol=1e-12)
        if number > 3:
            assert expected is path._candidates[1]
        path._learn(minimum)


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs"])
def test_callbacks_and_printed_lines(solver: str, capsys) -> None:
    seen: list[Iteration] = []
    model = ProportionRegressor(alpha=0.1, solver=solver, callback=seen.append, verbose=2)
    model.fit(X, Y)
    assert capsys.readouterr().out.splitlines() == [str(now) for now in seen[::2]]
    assert [now.iteration for now in seen] == list(range(model.n_iter_ + 1))
    assert seen[-1].objective == model.objective_ < seen[0].objective
    assert seen[-1].gradient_norm == model.gradient_norm_
    seconds = [now.seconds for now in seen]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0
    assert {now.alpha for now in seen} == {0.1}
    silent = ProportionRegressor(alpha=0.1, solver=solver).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, silent.coef_)
    early = ProportionRegressor(alpha=1e-3, solver=solver, max_iter=1, tol=1e-9)
    said = r"max_iter was reached.*Increase max_iter \(now 1"
    with pytest.warns(ConvergenceWarning, match=said) as caught:
        early.fit(X, Y)
    assert {warning.filename for warning in caught} == {__file__}  # where fit was called
    assert (early.status_, early.n_iter_) == (Status.MAX_ITER, 1)
