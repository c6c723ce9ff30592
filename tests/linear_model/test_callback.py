"""Callbacks and printed progress: one source, whichever solver is at work."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest
from sklearn.base import clone

from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    Iteration,
    ProportionRegressor,
    ProportionRegressorCV,
)
from fitzpatrick.linear_model.solvers import Status
from tests.helpers import seeded

from .data import features, targets

X = features()
Y = targets("fitzpatrick_logistic", X)
LABELS = Y.argmax(axis=1)


@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs"])
@pytest.mark.parametrize(
    ("cls", "y"), [(ProportionRegressor, Y), (FitzpatrickClassifier, LABELS)], ids=["Y", "labels"]
)
def test_every_iteration_of_a_fit(cls, y, solver: str) -> None:
    seen: list[Iteration] = []
    model = cls(alpha=0.1, solver=solver, callback=seen.append).fit(X, y)
    assert [now.iteration for now in seen] == list(range(model.n_iter_ + 1))
    assert seen[-1].objective == model.objective_
    assert seen[-1].gradient_norm == model.gradient_norm_
    assert seen[0].objective > seen[-1].objective
    seconds = [now.seconds for now in seen]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0
    assert {now.alpha for now in seen} == {0.1}
    np.testing.assert_array_equal(model.coef_, cls(alpha=0.1, solver=solver).fit(X, y).coef_)


@pytest.mark.parametrize(
    ("cls", "y"),
    [(ProportionRegressorCV, Y), (FitzpatrickClassifierCV, LABELS)],
    ids=["Y", "labels"],
)
def test_every_fit_of_a_search(cls, y) -> None:
    seen: list[Iteration] = []
    model = cls(alphas=[0.1, 1.0], refine=1, cv=3, callback=seen.append).fit(X, y)
    starts = [now.alpha for now in seen if now.iteration == 0]
    middle = 10.0**-0.5
    assert starts == pytest.approx([1.0, 0.1] * 3 + [middle] * 3 + [model.alpha_])  # by folds
    assert seen[-1].iteration == model.n_iter_


def test_iterations_count_on_where_another_solver_takes_over() -> None:
    rng = seeded(0)
    x = rng.standard_normal((200, 60))
    y = np.eye(8)[(x @ rng.standard_normal((60, 8))).argmax(axis=1)]
    seen: list[Iteration] = []
    model = ProportionRegressor("sparsemax", alpha=1e-4, callback=seen.append).fit(x, y)
    assert model.status_.converged
    assert [now.iteration for now in seen] == list(range(model.n_iter_ + 1))


def test_printed_lines_are_those_of_the_callback() -> None:
    seen: list[Iteration] = []
    printed = io.StringIO()
    with redirect_stdout(printed):
        ProportionRegressor(verbose=2, callback=seen.append).fit(X, Y)
    assert printed.getvalue().splitlines() == [str(now) for now in seen[::2]]
    assert "objective" in str(seen[0])


def test_a_callback_ends_a_fit_by_an_error() -> None:
    model = ProportionRegressor().fit(X, Y)
    coef = model.coef_

    def impatient(now: Iteration) -> None:
        if now.iteration == 2:
            raise TimeoutError("enough")

    model.set_params(alpha=1e-3, callback=impatient)
    with pytest.raises(TimeoutError, match="enough"):
        model.fit(X, Y)
    assert model.coef_ is coef
    assert model.status_ is Status.CONVERGED


def test_a_callback_is_a_parameter() -> None:
    model = ProportionRegressor(callback=print)
    assert clone(model).callback is print
    with pytest.raises(ValueError, match=r"'callback' parameter .* must be a callable or None"):
        ProportionRegressor(callback="print").fit(X, Y)
