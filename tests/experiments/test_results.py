"""Lines of results, comparisons of runs, and the page that is made of them."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fitzpatrick.datasets import DATASETS, PAPER_LOSSES, load_dataset
from fitzpatrick.experiments.protocol import Experiment, FitPath, Protocol, paths
from fitzpatrick.experiments.records import Store, all_records, choose
from fitzpatrick.experiments.results import (
    DifferenceLine,
    FitLine,
    difference_lines,
    fit_lines,
    from_csv,
    load_runs,
    to_csv,
)
from fitzpatrick.experiments.runner import run

DOCS = Path(__file__).parents[2] / "docs"
PAIR = ("logistic", "fitzpatrick_logistic")


@pytest.fixture(scope="module")
def page():
    """The script that writes the page, as a module."""
    specification = importlib.util.spec_from_file_location("page", DOCS / "make_reproduction.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def runs(tmp_path, experiment):
    """Two losses without and with an intercept, on data that need one."""
    shifted = replace(
        experiment, Y=experiment.Y * [1, 4, 30], Y_test=experiment.Y_test * [1, 4, 30]
    )
    shifted = replace(
        shifted,
        Y=shifted.Y / shifted.Y.sum(axis=1, keepdims=True),
        Y_test=shifted.Y_test / shifted.Y_test.sum(axis=1, keepdims=True),
    )
    for intercept in (False, True):
        store = Store.of(tmp_path, shifted, Protocol(alphas=(10.0, 1.0), intercept=intercept))
        run(shifted, store, paths(PAIR, 2, refit=True), 1, lambda _: None)
    return load_runs(tmp_path)


def test_records_are_found_again(tmp_path, experiment):
    store = Store.of(tmp_path, experiment, Protocol(alphas=(10.0, 1.0)))
    wanted = paths(PAIR, 2, refit=True)
    run(experiment, store, wanted, 1, lambda _: None)
    other = Store.of(tmp_path, experiment, Protocol(alphas=(10.0, 1.0, 0.1)))  # put together
    run(experiment, other, wanted[:1], 1, lambda _: None)
    ((about, grids),) = load_runs(tmp_path).items()
    assert about == ("demo", "standardize", False)
    assert set(grids) == set(wanted)
    assert [record.alpha for record in grids[wanted[0]]] == [10.0, 1.0, 0.1]
    for path, records in all_records(store, wanted[1:]).items():
        assert [r.to_json() for r in grids[path]] == [r.to_json() for r in records]


def test_lines_survive_the_disk(tmp_path, runs):
    (about, grids), *_ = runs.items()
    lines = fit_lines(*about, grids)
    assert len(lines) == 2 * 3 * 2
    file = tmp_path / "fits.csv"
    file.write_text(to_csv(lines))
    again = from_csv(file, FitLine)
    for line, read in zip(lines, again, strict=True):
        assert (read.loss, read.seed, read.intercept) == (line.loss, line.seed, line.intercept)
        assert read.test_error == pytest.approx(line.test_error, rel=1e-5)
        assert math.isnan(read.dev_error) == (read.seed is None)
    assert to_csv(again) == file.read_text()
    differences = difference_lines(runs)
    file.write_text(to_csv(differences))
    assert to_csv(from_csv(file, DifferenceLine)) == file.read_text()


def test_comparisons_are_of_the_models_that_are_tested(runs):
    lines = {
        (line.rows, line.comparison, line.intercept, line.loss): line
        for line in difference_lines(runs)
    }
    # two kinds of rows: a pair without and a pair with intercept, and two losses compared twice
    assert len(lines) == 2 * (2 + 2 * 2)
    without, with_one = runs["demo", "standardize", False], runs["demo", "standardize", True]

    def error(grids, path, alpha):
        return next(r.test_error for r in grids[path] if r.alpha == alpha)

    for rows in ("train", "train+dev"):
        expected, same = [], []
        for seed in (0, 1):
            path = FitPath("logistic", seed)
            alphas = choose(without[path]).alpha, choose(with_one[path]).alpha
            tested = path if rows == "train" else FitPath("logistic", None)
            plain = error(without, tested, alphas[0])
            expected.append(error(with_one, tested, alphas[1]) - plain)
            same.append(error(with_one, tested, alphas[0]) - plain)
        line = lines[rows, "intercept", None, "logistic"]
        assert line.mean == pytest.approx(np.mean(expected), rel=1e-5)
        assert line.low <= line.mean <= line.high < 0  # these data need an intercept
        found = lines[rows, "intercept, same α", None, "logistic"].mean
        assert found == pytest.approx(np.mean(same), rel=1e-5)


def test_the_page_is_what_the_records_give(page):
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.Results.read()) == text
    made = page._MARKED.findall(text)
    assert sorted(name for _, name, _ in made) == sorted(page.TABLES)


def test_the_page_follows_its_records(page):
    results = page.Results.read()
    changed = [replace(line, test_error=line.test_error + 0.1) for line in results.fits]
    text = page.PAGE.read_text(encoding="utf-8")
    other = page.filled(text, page.Results(changed, results.differences, results.starts))
    assert other != text
    assert "Every cell is within .01" not in other


def test_the_promised_cells_are_within_a_hundredth_of_the_paper(page):
    results = page.Results.read()
    for name in ("emotions", "flags", "scene", "yeast", "delicious"):
        for loss in PAPER_LOSSES:
            errors = results.errors((name, "standardize"), False, loss, "train")
            assert len(errors) == 5
            assert abs(np.mean(errors) - DATASETS[name].paper[loss]) <= 0.01


@pytest.mark.parametrize("loss", ["sparsemax", "fitzpatrick_logistic"])
def test_yeast_in_the_results_is_what_a_run_gives(tmp_path, page, loss):
    experiment = Experiment.of_dataset(load_dataset("yeast"))
    protocol = Protocol(alphas=(1e4, 1e3, 1e2))
    store = Store.of(tmp_path, experiment, protocol)
    run(experiment, store, [FitPath(loss, 3)], 1, lambda _: None)
    lines = page.Results.read().grid(("yeast", "standardize"), False, loss, 3)[:3]
    for line, record in zip(lines, store.finished(FitPath(loss, 3)), strict=True):
        assert line.alpha == record.alpha
        assert line.dev_error == pytest.approx(record.dev_error, rel=1e-4)
        assert line.test_error == pytest.approx(record.test_error, rel=1e-4)
