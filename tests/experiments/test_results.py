"""Lines of results, comparisons of runs, and the page that is made of them."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fitzpatrick.datasets import DATASETS, PAPER_LOSSES, DataError, load_dataset
from fitzpatrick.experiments.protocol import (
    Experiment,
    FitPath,
    LossChoice,
    Protocol,
    at_tightnesses,
    paths,
)
from fitzpatrick.experiments.records import Store, choose, to_json
from fitzpatrick.experiments.report import fit_lines, to_csv
from fitzpatrick.experiments.runner import run

from .conftest import make_experiment

DOCS = Path(__file__).parents[2] / "docs"
PAIR = at_tightnesses(("logistic", "fitzpatrick_logistic"))

with pytest.MonkeyPatch.context() as patch:  # the scripts that write the page
    patch.syspath_prepend(DOCS)
    import make_reproduction as page
    from reproduction_results import (
        DifferenceLine,
        FitLine,
        compared_models,
        difference_lines,
        from_csv,
        load_runs,
        read_models,
        write_models,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two losses without and with an intercept, on data that need one."""
    tmp_path, experiment = tmp_path_factory.mktemp("runs"), make_experiment()
    shifted = replace(
        experiment, Y=experiment.Y * [1, 4, 30], Y_test=experiment.Y_test * [1, 4, 30]
    )
    shifted = replace(
        shifted,
        Y=shifted.Y / shifted.Y.sum(axis=1, keepdims=True),
        Y_test=shifted.Y_test / shifted.Y_test.sum(axis=1, keepdims=True),
    )
    for intercept in (False, True):
        protocol = Protocol(alphas=(10.0, 1.0), intercept=intercept)
        run(shifted, protocol, tmp_path, paths(PAIR, 4, refit=True))
    return load_runs(tmp_path)


def test_records_are_found_again(tmp_path, experiment):
    wanted = paths(PAIR, 2, refit=True)
    first = run(experiment, Protocol(alphas=(10.0, 1.0)), tmp_path, wanted)
    # put together
    run(experiment, Protocol(alphas=(10.0, 1.0, 0.1)), tmp_path, wanted[:1])
    ((about, found),) = load_runs(tmp_path).items()
    grids = found.grids
    assert about == ("demo", "standardize", False)
    assert found.settings["data"] == experiment.fingerprint
    assert "device" not in found.settings
    assert set(grids) == set(wanted)
    assert [record.setting for record in grids[wanted[0]]] == [10.0, 1.0, 0.1]
    for path in wanted[1:]:
        assert to_json(grids[path]) == to_json(first[path])


@pytest.mark.parametrize(
    ("name", "protocol", "seed"),
    [
        ("tol", Protocol(alphas=(1.0,), tol=1e-6), 0),
        ("dtype", Protocol(alphas=(1.0,), dtype="float32"), 0),
        ("max_iter", Protocol(alphas=(1.0,), max_iter=7), 0),
        ("tol", Protocol(alphas=(1.0,), tol=1e-6, intercept=True), 0),  # would be compared
        ("data", Protocol(alphas=(1.0,)), 1),
    ],
)
def test_stores_that_do_not_agree_are_not_put_together(tmp_path, name, protocol, seed):
    first = Store.of(tmp_path / "a", make_experiment(), Protocol(alphas=(1.0,)))
    second = Store.of(tmp_path / "b", make_experiment(seed=seed), protocol)
    with pytest.raises(DataError, match=f"'{name}' is ") as caught:
        load_runs(tmp_path / "a", tmp_path / "b")
    assert f"{first.run} of {first.file}" in str(caught.value)
    assert second.run in str(caught.value)


def test_models_survive_the_disk(tmp_path, runs):
    models = compared_models(runs)
    write_models(tmp_path, models)
    again = read_models(tmp_path)
    assert list(again) == list(models)
    for key, one in again.items():
        assert (one.settings, one.chosen) == (models[key].settings, models[key].chosen)
        assert list(one.errors) == list(models[key].errors)
        for where, errors in one.errors.items():
            np.testing.assert_allclose(errors, models[key].errors[where], rtol=0, atol=5.1e-7)
    for line, read in zip(difference_lines(models), difference_lines(again), strict=True):
        assert (read.loss, read.comparison, read.rows) == (line.loss, line.comparison, line.rows)
        assert read.low == pytest.approx(line.low, abs=1e-6)


def test_lines_survive_the_disk(tmp_path, runs):
    (about, found), *_ = runs.items()
    lines = fit_lines(*about, found.grids)
    assert len(lines) == 2 * 5 * 2
    file = tmp_path / "fits.csv"
    file.write_text(to_csv(lines))
    assert "nan" not in file.read_text()
    again = from_csv(file, FitLine)
    for line, read in zip(lines, again, strict=True):
        for name in ("loss", "seed", "intercept"):
            assert getattr(read, name) == line[name]
        assert read.test_error == pytest.approx(line["test_error"], rel=1e-5)
        assert math.isnan(read.dev_error) == (read.seed is None)
    assert to_csv([*map(vars, again)]) == file.read_text()
    file.write_text(to_csv([*map(vars, difference_lines(compared_models(runs)))]))
    assert to_csv([*map(vars, from_csv(file, DifferenceLine))]) == file.read_text()


def test_comparisons_are_of_the_models_that_are_tested(runs):
    lines = {
        (line.rows, line.comparison, line.intercept, line.loss): line
        for line in difference_lines(compared_models(runs))
    }
    # two kinds of rows: a pair without and a pair with intercept, and two losses compared twice
    assert len(lines) == 2 * (2 + 2 * 2)
    without = runs["demo", "standardize", False].grids
    with_one = runs["demo", "standardize", True].grids

    def error(grids, path, alpha):
        return next(r.test_error for r in grids[path] if r.setting == alpha)

    for rows in ("train", "train+dev"):
        expected, same = [], []
        for seed in range(4):
            path = FitPath(LossChoice("logistic"), seed)
            alphas = choose(without[path]).setting, choose(with_one[path]).setting
            tested = path if rows == "train" else FitPath(LossChoice("logistic"), None)
            plain = error(without, tested, alphas[0])
            expected.append(error(with_one, tested, alphas[1]) - plain)
            same.append(error(with_one, tested, alphas[0]) - plain)
        line = lines[rows, "intercept", None, "logistic"]
        assert line.mean == pytest.approx(np.mean(expected), rel=1e-5)
        assert line.low <= line.mean <= line.high < 0  # these data need an intercept
        found = lines[rows, "intercept, same α", None, "logistic"].mean
        assert found == pytest.approx(np.mean(same), rel=1e-5)


def test_the_page_is_what_the_records_give():
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.Results.read()) == text
    made = page._MARKED.findall(text)
    assert sorted(name for _, name, _ in made) == sorted(page.TABLES)


def test_the_differences_are_what_the_models_errors_give():
    """All of them for the small data sets, the pairs without an intercept for the large ones."""
    models = {
        key: one
        for key, one in read_models(page.RESULTS).items()
        if key[0] not in page.LARGE or not key[2]
    }
    found = to_csv([*map(vars, difference_lines(models))]).splitlines()
    committed = page.DIFFERENCES.read_text(encoding="utf-8").splitlines()
    assert len(found) > 130
    assert set(found) <= set(committed)


def test_the_models_are_those_of_the_lines():
    results = page.Results.read()
    for (dataset, features, intercept), models in read_models(page.RESULTS).items():
        lines = {
            (line.loss, line.seed, line.alpha): line.test_error
            for line in results.fits
            if (line.dataset, line.features, line.intercept) == (dataset, features, intercept)
        }
        for loss in PAPER_LOSSES:
            chosen = results.chosen((dataset, features), intercept, loss)
            found = {path.seed: a for path, a in models.chosen.items() if path.loss.name == loss}
            assert {line.seed: line.alpha for line in chosen} == found
        for (path, alpha), errors in models.errors.items():
            assert errors.mean() == pytest.approx(lines[path.loss.name, path.seed, alpha], abs=2e-6)


def test_the_page_follows_its_records():
    results = page.Results.read()
    changed = [replace(line, test_error=line.test_error + 0.1) for line in results.fits]
    text = page.PAGE.read_text(encoding="utf-8")
    other = page.filled(text, replace(results, fits=changed))
    assert other != text
    assert "Every cell is within .01" not in other


def test_the_promised_cells_are_within_a_hundredth_of_the_paper():
    results = page.Results.read()
    for name in ("emotions", "flags", "scene", "yeast", "delicious"):
        for loss in PAPER_LOSSES:
            errors = results.errors((name, "standardize"), False, loss, "train")
            assert len(errors) == 5
            assert abs(np.mean(errors) - DATASETS[name].paper[loss]) <= 0.01


@pytest.mark.parametrize("loss", ["sparsemax", "fitzpatrick_logistic"])
def test_yeast_in_the_results_is_what_a_run_gives(tmp_path, loss):
    experiment = Experiment.of_dataset(load_dataset("yeast"))
    path = FitPath(LossChoice(loss), 3)
    found = run(experiment, Protocol(alphas=(1e4, 1e3, 1e2)), tmp_path, [path])[path]
    lines = page.Results.read().grid(("yeast", "standardize"), False, loss, 3)[:3]
    for line, record in zip(lines, found, strict=True):
        assert line.alpha == record.setting
        assert line.dev_error == pytest.approx(record.dev_error, rel=1e-4)
        assert line.test_error == pytest.approx(record.test_error, rel=1e-4)
