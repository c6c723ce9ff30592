"""Which penalties are fitted: where a path ends, and how the search goes on between them."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from fitzpatrick.datasets import Table, read_table
from fitzpatrick.experiments import learners, models
from fitzpatrick.experiments.learners import learner, search
from fitzpatrick.experiments.protocol import (
    MAX_STEP,
    FitPath,
    LossChoice,
    Protocol,
    at_tightnesses,
    dev_split,
)
from fitzpatrick.experiments.records import choose
from fitzpatrick.experiments.runner import RunOptions, run_experiment
from fitzpatrick.linear_model import ProportionRegressor, fit_path
from fitzpatrick.linear_model._path import has_risen

from .conftest import make_experiment

ALPHAS = (1e4, 1e3, 1e2, 1e1, 1.0, 0.1, 0.01)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([0.3], False),
        ([0.4, 0.3], False),
        ([0.4, 0.3, 0.31], False),
        ([0.4, 0.3, 0.316], True),  # more than 5 % at once
        ([0.4, 0.3, 0.31, 0.305], True),  # more than half a percent, two penalties back
        ([0.4, 0.3, 0.31, 0.301], False),
        ([0.3, 0.3, 0.3, 0.3], False),  # a plateau
        ([0.4, 0.3, 0.31, 0.29], False),  # lower again
        ([0.3, 0.4, 0.5], False),  # it may still fall
        ([0.3, 0.4, 0.5, 0.5], True),
        ([0.0, 0.0, 0.0, 1e-9], True),
    ],
)
def test_a_clear_rise(errors, expected):
    assert has_risen(errors) is expected


def test_paths_end_where_they_are_told_to():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(40, 3)), generator.dirichlet(np.ones(3), size=40)
    whole = fit_path(X, Y, "logistic", ALPHAS)
    part = fit_path(X, Y, "logistic", ALPHAS, stop=lambda model: model.alpha <= 10)
    assert part.alphas.tolist() == [1e4, 1e3, 1e2, 1e1]
    np.testing.assert_array_equal(part.coefs, whole.coefs[:4])


def searched(protocol, error):
    """The penalties that the search comes to, and their errors."""
    errors = {}
    for alpha in search(LossChoice("logistic"), protocol, errors):
        errors[alpha] = error(alpha)
    return errors


@pytest.mark.parametrize("best", [3e4, 1e4, 7e3, 11.0, 3.0, 1.0, 2e-2, 1e-5])
@pytest.mark.parametrize("whole_grid", [True, False])
def test_the_search_comes_near_the_best_penalty_between_those_of_the_grid(best, whole_grid):
    protocol = Protocol(alphas=ALPHAS, whole_grid=whole_grid, refine=True)
    errors = searched(protocol, lambda alpha: 1 + np.log(alpha / best) ** 2)
    assert len(errors) <= len(ALPHAS) + 6
    assert min(ALPHAS) <= min(errors) <= max(errors) == max(ALPHAS)
    found = min(errors, key=errors.get)
    nearest = float(np.clip(best, min(ALPHAS), max(ALPHAS)))
    assert max(found / nearest, nearest / found) < MAX_STEP
    again = Protocol(alphas=tuple(sorted(errors, reverse=True)), refine=True)
    assert searched(again, errors.get) == errors  # fine enough
    assert len(searched(replace(protocol, refine=False), errors.get)) <= len(ALPHAS)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e200])
def test_the_search_ends_among_the_smallest_and_the_largest_numbers(scale):
    """Whose products are zero or infinite."""
    alphas = (100 * scale, 10 * scale, scale)
    for best in alphas:
        tried = search(LossChoice("logistic"), Protocol(alphas=alphas, refine=True), errors := {})
        for alpha in itertools.islice(tried, 20):
            errors[alpha] = abs(np.log(alpha / best))
        assert len(errors) < 12
        assert scale <= min(errors) < max(errors) <= 100 * scale


def test_fits_start_at_the_next_stronger_penalty(monkeypatch):
    """Wherever the search has been meanwhile."""
    starts, models = [], learners.PenaltyPath.models

    def watch(path, alphas, start):
        starts.append(None if start is None else start[0])
        return models(path, alphas, start)

    monkeypatch.setattr(learners.PenaltyPath, "models", watch)
    experiment = make_experiment()
    task = LossChoice("logistic"), experiment.X, experiment.Y, Protocol()
    alphas = [100.0, 1.0, 10.0, 3.0, 50.0, 200.0]

    def coefficients():
        fit = learner(*task, tol=1e-8)
        return {alpha: fit(alpha).coef_ for alpha in alphas}

    kept = coefficients()
    assert (starts[0], starts[-1]) == (None, None)
    middle = [next(a for a in kept if kept[a] is one) for one in starts[1:-1]]
    assert middle == [100.0, 100.0]  # 10 and then 3, and 50
    monkeypatch.setattr(learners, "MAX_KEPT", 1)  # no room for any but the last
    for alpha, coef in coefficients().items():
        np.testing.assert_allclose(coef, kept[alpha], atol=1e-6)


@pytest.fixture(scope="module")
def overfitted():
    """Many features of noise: weak penalties are clearly worse."""
    experiment, generator = make_experiment(), np.random.default_rng(5)
    return replace(
        experiment,
        X=np.hstack([experiment.X, generator.normal(size=(60, 60))]),
        X_test=np.hstack([experiment.X_test, generator.normal(size=(30, 60))]),
    )


def options(folder, **settings):
    return RunOptions(
        losses=at_tightnesses(("logistic", "fitzpatrick_sparsemax")),
        protocol=Protocol(alphas=ALPHAS, refit=True, **settings),
        seeds=2,
        output=folder,
    )


def test_the_search_chooses_what_the_whole_grid_does(tmp_path, overfitted):
    whole = run_experiment(overfitted, options(tmp_path))
    quick = run_experiment(overfitted, options(tmp_path, whole_grid=False))
    seeds = [path for path in whole if path.seed is not None]
    for path in seeds:
        assert choose(quick[path]).setting == choose(whole[path]).setting
        assert len(quick[path]) < len(whole[path])
        assert has_risen([record.dev_error for record in quick[path]])
    refitted = [path for path in quick if path.seed is None]
    for path in refitted:
        chosen = {choose(whole[one]).setting for one in seeds if one.loss == path.loss}
        assert path.settings == tuple(sorted(chosen, reverse=True))
        for record in quick[path]:
            [expected] = [r for r in whole[FitPath(path.loss, None)] if r.setting == record.setting]
            # both end at 1e-8 of the gradient, from other starts
            np.testing.assert_allclose(record.test_errors, expected.test_errors, atol=1e-6)
    assert len(refitted) == 2


def test_fits_that_are_not_refitted_are_exact(tmp_path, overfitted):
    """Without a refit they are tested themselves."""
    path = FitPath(LossChoice("logistic"), 0)
    exact, quick = (Protocol(refit=refit, whole_grid=False) for refit in (False, True))
    assert (exact.tol_of(path), quick.tol_of(path)) == (1e-8, 1e-4)
    assert quick.tol_of(FitPath(path.loss, None, (1.0,))) == 1e-8
    assert Protocol(refit=True).tol_of(path) == 1e-8
    assert exact.key("x") != quick.key("x")


def test_fit_looks_at_the_mean_over_its_folds(tmp_path):
    """Of twelve rows a fold holds out two or three, whose error may rise at strong penalties."""
    genres = ("rock", "jazz", "pop")
    rows = [f"{20 + 7 * i % 45},{i % 3 / 2 + i / 100},{genres[i % 3]}" for i in range(12)]
    file = tmp_path / "songs.csv"
    file.write_text("\n".join(["age,score,genre", *rows]))
    table = read_table(file, ["genre"])
    protocol, loss = Protocol(True, alphas=ALPHAS, refine=True), LossChoice("fitzpatrick_logistic")
    stopped, whole = (
        models.fit(table, file, loss, replace(protocol, whole_grid=whole)).setting
        for whole in (False, True)
    )
    assert stopped == whole < max(ALPHAS)


@pytest.mark.parametrize("n", [3, 60])
def test_the_score_is_that_of_estimators_on_the_folds(n):
    """As many folds as rows, if these are fewer than five."""
    experiment = make_experiment()
    X, Y, alphas = 3 * experiment.X[:n], experiment.Y[:n], (1.0, 1e-3)
    names = tuple(f"x{j}" for j in range(X.shape[1])), ("a", "b", "c")
    fitted = models.fit(
        Table(X, Y, "proportions", *names),
        Path("mine.csv"),
        LossChoice("fitzpatrick_logistic"),
        Protocol(True, alphas=alphas),
    )
    folds = [*KFold(min(5, n), shuffle=True, random_state=0).split(X)]
    how = {"fit_intercept": True, "standardize": True, "tol": 1e-10}
    errors = []
    for alpha in alphas:
        model = ProportionRegressor("fitzpatrick_logistic", alpha, **how)
        found = [model.fit(X[rest], Y[rest]).predict(X[held]) - Y[held] for rest, held in folds]
        errors.append(np.mean([np.square(one).sum(axis=1).mean() for one in found]))
    # gradients of 1e-8, which the smallest penalty makes errors of 1e-5
    assert fitted.model.cv_score == pytest.approx(-min(errors), rel=1e-5)
    assert fitted.setting == alphas[int(np.argmin(errors))]


def test_boosted_trees_grow_along_their_path(tmp_path):
    """Each record is that of an estimator with as many rounds, chosen on dev, then refitted."""
    boosting = pytest.importorskip("fitzpatrick.boosting")
    pytest.importorskip("lightgbm")
    experiment, choice = make_experiment(), LossChoice("logistic", None, "boosted")
    protocol = Protocol(rounds=(2, 5, 9), refit=True, refine=True)
    settings = RunOptions((choice,), protocol, seeds=1, output=tmp_path)
    records = run_experiment(experiment, settings)
    path, whole = records
    assert [record.setting for record in records[path]] == [2, 5, 9]
    assert whole.settings == (choose(records[path]).setting,)
    assert {record.device for record in records[path]} == {"LightGBM"}
    fitted, _ = dev_split(60, 0)
    for rows, record, parts in (
        (fitted, records[path][1], (2, 3)),
        (np.arange(60), records[whole][0], (int(whole.settings[0]),)),
    ):
        model = boosting.BoostedProportionRegressor(
            "logistic",
            min_child_samples=len(rows) // 10,
            warm_start=True,
            n_jobs=1,
            library_params={"feature_pre_filter": False, "min_data_in_bin": 1},
        )
        for rounds in parts:
            model.set_params(n_estimators=rounds).fit(experiment.X[rows], experiment.Y[rows])
        errors = np.square(model.predict(experiment.X_test) - experiment.Y_test).sum(axis=1)
        np.testing.assert_allclose(record.test_errors, errors, rtol=1e-6)  # which is of float32
        assert record.n_iter == sum(parts)


@pytest.mark.parametrize("rows", [2, 5, 17])
def test_few_rows_and_rare_values_grow_trees(rows):
    pytest.importorskip("lightgbm")
    X = np.arange(rows)[:, None] == rows - 1.0
    Y = np.hstack([X, 1 - X])
    choice = LossChoice("sparsemax", None, "boosted")
    found = learner(choice, X.astype(float), Y, Protocol(), tol=1e-8)(50)
    assert found.predict(X.astype(float))[-1, 0] > 0.5


def test_boosted_models_of_a_path_stay_as_they_were():
    """Later settings grow trees of their own."""
    pytest.importorskip("lightgbm")
    experiment, choice = make_experiment(), LossChoice("logistic", None, "boosted")
    fit = learner(choice, experiment.X, experiment.Y, Protocol(), tol=1e-8)
    models = [fit(rounds) for rounds in (2, 5)]
    scores = [model.predict_scores(experiment.X) for model in models]
    models.append(fit(9))
    assert [model.n_iter_ for model in models] == [2, 5, 9]
    for model, before in zip(models, scores, strict=False):
        np.testing.assert_array_equal(model.predict_scores(experiment.X), before)
