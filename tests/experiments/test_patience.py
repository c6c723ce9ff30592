"""When a path of penalties ends before its grid does."""

from dataclasses import replace

import numpy as np
import pytest

from fitzpatrick.datasets import read_table
from fitzpatrick.experiments import models
from fitzpatrick.experiments.protocol import FitPath, LossChoice, Protocol, at_tightnesses, paths
from fitzpatrick.experiments.records import Store, all_records, choose
from fitzpatrick.experiments.runner import RunOptions, run, run_experiment
from fitzpatrick.linear_model import fit_path, has_risen

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
    seen = []
    part = fit_path(
        X, Y, "logistic", ALPHAS, callback=seen.append, stop=lambda model: model.alpha <= 10
    )
    assert part.alphas.tolist() == [1e4, 1e3, 1e2, 1e1]
    assert list(part.models) == seen
    np.testing.assert_array_equal(part.coefs, whole.coefs[:4])
    assert len(fit_path(X, Y, "logistic", ALPHAS, stop=lambda _: True).models) == 1


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
        assert choose(quick[path]).alpha == choose(whole[path]).alpha
        assert len(quick[path]) < len(whole[path])
        assert has_risen([record.dev_error for record in quick[path]])
        final = FitPath(path.loss, None, choose(whole[path]).alpha)
        [refitted] = quick[final]
        [expected] = [r for r in whole[FitPath(path.loss, None)] if r.alpha == refitted.alpha]
        # both end at 1e-8 of the gradient, from other starts
        np.testing.assert_allclose(refitted.test_errors, expected.test_errors, atol=1e-6)
    assert {path.alpha for path in quick if path.seed is None} == {
        choose(whole[path]).alpha for path in seeds
    }


def test_fits_that_are_not_refitted_are_exact(tmp_path, overfitted):
    """Without a refit they are tested themselves."""
    path = FitPath(LossChoice("logistic"), 0)
    exact, quick = (Protocol(refit=refit, whole_grid=False) for refit in (False, True))
    assert (exact.tol_of(path), quick.tol_of(path)) == (1e-8, 1e-4)
    assert quick.tol_of(FitPath(path.loss, None, 1.0)) == 1e-8
    assert Protocol(refit=True).tol_of(path) == 1e-8
    assert exact.key("x") != quick.key("x")


def test_interrupted_searches_end_with_the_same_records(tmp_path, overfitted):
    protocol = Protocol(alphas=ALPHAS, refit=True, whole_grid=False)
    wanted = paths(at_tightnesses(("logistic",)), 2, refit=False)
    store = Store.of(tmp_path / "a", overfitted, protocol)
    run(overfitted, store, wanted, 1, lambda _: None)
    expected = all_records(store, wanted)
    other = Store.of(tmp_path / "b", overfitted, protocol)

    def kill(done):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(overfitted, other, wanted, 1, kill)
    counts = []
    run(overfitted, other, wanted, 1, counts.append)
    assert counts[-1] == 2 * len(ALPHAS)  # fits that are not needed count as done
    for path, records in all_records(other, wanted).items():
        assert [r.dev_error for r in records] == [r.dev_error for r in expected[path]]
    assert not list(tmp_path.rglob("*.npz"))


def test_fit_looks_at_the_mean_over_its_folds(tmp_path):
    """Of twelve rows a fold holds out two or three, whose error may rise at strong penalties."""
    genres = ("rock", "jazz", "pop")
    rows = [f"{20 + 7 * i % 45},{i % 3 / 2 + i / 100},{genres[i % 3]}" for i in range(12)]
    file = tmp_path / "songs.csv"
    file.write_text("\n".join(["age,score,genre", *rows]))
    table = read_table(file, ["genre"])
    options = {"alphas": ALPHAS, "intercept": True, "standardize": True}
    chosen = [
        models.fit(table, file, "fitzpatrick_logistic", None, whole_grid=whole, **options)
        for whole in (False, True)
    ]
    stopped, whole = (fit.model.estimator.alpha for fit in chosen)
    assert stopped == whole < max(ALPHAS)
