"""The solvers by themselves: what they report, and how they behave at kinks and boundaries."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from fitzpatrick.linear_model import ProportionRegressor, Status, _fitting
from fitzpatrick.linear_model._threads import blas_threads, limited_blas
from fitzpatrick.linear_model.solvers._newton_cg import steihaug
from fitzpatrick.linear_model.solvers._status import Stopping

from .data import features, targets


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs"])
def test_too_few_iterations_warn_with_what_to_change(solver: str) -> None:
    X = features()
    model = ProportionRegressor(alpha=1e-3, solver=solver, max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"max_iter was reached.*Increase max_iter \(now 1"):
        model.fit(X, targets("fitzpatrick_logistic", X))
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 1
    assert not model.status_.converged


@pytest.mark.parametrize("status", list(Status))
def test_a_status_is_a_sentence(status: Status) -> None:
    assert len(status.value.split()) >= 5


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs"])
def test_gradient_norm_is_below_what_tol_asks(solver: str) -> None:
    X = features()
    Y = targets("fitzpatrick_logistic", X)
    model = ProportionRegressor(solver=solver, fit_intercept=False, tol=1e-5).fit(X, Y)
    at_zero = np.linalg.norm((1 / Y.shape[1] - Y).T @ X)  # no more than that of the logistic loss
    assert model.status_ is Status.CONVERGED
    assert 0 < model.gradient_norm_ <= 1e-5 * at_zero * 2


def test_newton_solves_a_quadratic_in_one_step() -> None:
    X = features()
    model = ProportionRegressor("squared", tol=1e-6, fit_intercept=False)
    assert model.fit(X, targets("squared", X)).n_iter_ <= 3


def test_newton_hands_over_at_kinks_and_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 60))
    Y = np.eye(5)[rng.integers(0, 5, 150)]
    model = ProportionRegressor("sparsemax", 0.05, solver="newton-cg").fit(X, Y)
    reference = ProportionRegressor("sparsemax", 0.05, solver="lbfgs").fit(X, Y)
    assert model.status_ is Status.SWITCHED
    assert "L-BFGS" in model.status_.value
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-6)


def test_steihaug_minimises_within_the_region() -> None:
    rng = np.random.default_rng(0)
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


def test_without_progress_is_precision_only_near_the_optimum() -> None:
    stopping = Stopping(tol=1e-12, reference=1.0, max_iter=10, eps=2.0**-52)
    assert stopping.without_progress(1e-7) is Status.PRECISION
    assert stopping.without_progress(1e-3) is Status.STALLED
    assert stopping.reached(0.0, 1.0) is Status.ZERO
    assert stopping.reached(1.0, 1e-13) is Status.CONVERGED
    assert stopping.reached(1.0, 1.0) is None


def test_verbose_prints_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    X = features()
    Y = targets("fitzpatrick_logistic", X)
    ProportionRegressor().fit(X, Y)
    assert capsys.readouterr().out == ""
    model = ProportionRegressor(verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert "objective" in lines[0]
    assert "gradient" in lines[0]


def test_extreme_starts_are_survived() -> None:
    X = features() * 100
    Y = targets("poisson", X / 100)
    model = ProportionRegressor("poisson", 1e-2).fit(X, Y)
    assert model.status_.converged
    assert np.isfinite(model.coef_).all()


def test_no_penalty_is_allowed() -> None:
    X = features()
    Y = targets("fitzpatrick_logistic", X)
    free = ProportionRegressor(alpha=0.0).fit(X, Y)
    weak = ProportionRegressor(alpha=1e-9).fit(X, Y)
    assert free.objective_ == pytest.approx(weak.objective_, rel=1e-6)


def test_blas_pools_are_limited_and_restored() -> None:
    def threads() -> list[tuple[str, int]]:
        return [(p["filepath"], p["num_threads"]) for p in threadpool_info()]

    before = threads()
    with limited_blas(1):
        blas = [p for p in threadpool_info() if p["user_api"] == "blas"]
        assert {p["num_threads"] for p in blas} == {1}
    assert threads() == before
    assert blas_threads(None, 1e3) == 1
    assert blas_threads(None, 1e10) is None
    assert blas_threads(3, 1e3) == 3


def test_a_path_continues_linearly_in_log_alpha() -> None:
    from fitzpatrick.linear_model.solvers import Result

    def result(value: float) -> Result:
        return Result(np.full((1, 1), value), 0.0, 0.0, 1, Status.CONVERGED)

    start = np.zeros((1, 1))
    assert _fitting.extrapolate([], 1.0, start) is start
    assert _fitting.extrapolate([(10.0, result(2.0))], 1.0, start) == 2.0
    two = [(100.0, result(1.0)), (10.0, result(2.0))]
    assert _fitting.extrapolate(two, 1.0, start) == pytest.approx(3.0)
    assert _fitting.extrapolate(two, 0.0, start) == 2.0
