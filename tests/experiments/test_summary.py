"""Choices, intervals and pairs."""

import numpy as np
import pytest

from fitzpatrick.experiments import summary
from fitzpatrick.experiments.protocol import FitPath, LossChoice, Protocol
from fitzpatrick.experiments.records import PathRecords, Record, choose
from fitzpatrick.experiments.report import (
    dataset_details,
    datasets_table,
    heading,
    number,
    results_table,
    signed,
)
from fitzpatrick.experiments.summary import bootstrap_interval, difference, evaluate


def record(alpha, dev, test, converged=True):
    errors = np.asarray(test, dtype=np.float32)
    return Record(alpha, dev, errors, 0.5, 0.7, 0.25, 1.0, 0.0, 1, "fine", converged, 2.0, "NumPy")


GRID = (10.0, 1.0, 0.1)


def make(name, offset, n=400, seeds=2, tightness=None):
    loss = LossChoice(name, tightness)
    generator = np.random.default_rng(7)
    base = generator.gamma(2.0, size=n) / 10
    noise = np.random.default_rng(len(str(loss))).normal(size=(seeds, n)) / 100  # of its own splits
    return {
        FitPath(loss, seed): PathRecords(
            grid=[
                record(GRID[0], 0.5, base + 9),
                record(GRID[1], 0.3, base + 7, converged=False),
                record(GRID[2], 0.4, base + 5),
            ],
            final=record(1.0, 0.3, base + offset + noise[seed]),
        )
        for seed in range(seeds)
    }


def test_least_dev_error_and_among_equals_the_strongest():
    fits = [record(10.0, 0.3, [1]), record(1.0, 0.2, [2]), record(0.1, 0.2, [3])]
    assert choose(fits).alpha == 1.0


def test_summary_of_a_loss():
    (found,) = evaluate(make("logistic", 0.0), GRID).summaries
    assert found.alphas == (1.0, 1.0)
    assert found.grid == (10.0, 1.0, 0.1)
    np.testing.assert_allclose(found.dev_curve, [0.5, 0.3, 0.4])
    assert found.error == pytest.approx(np.mean(found.errors))
    assert found.spread == pytest.approx(np.std(found.errors, ddof=1))
    assert found.interval[0] < found.error < found.interval[1]
    assert (found.unconverged, found.fits, found.seconds) == (2, 8, 6.0)


def test_interval_has_the_right_width():
    values = np.random.default_rng(0).normal(size=2000)
    low, high = bootstrap_interval(values[None])
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(2000), rel=0.05)
    assert bootstrap_interval(values[None]) == (low, high)
    assert bootstrap_interval(np.stack([values, values])) == pytest.approx((low, high), abs=0.01)


def test_interval_knows_that_the_splits_might_have_been_others():
    """Differences that all samples share but that turn with the split are no evidence."""
    shifts = np.asarray([-0.5, -0.4, 0.3, 0.4, -0.3])[:, None]
    values = shifts + np.random.default_rng(1).normal(size=(5, 500)) / 10
    low, high = bootstrap_interval(values)
    assert low < 0 < high
    assert high - low > 0.4
    assert bootstrap_interval(values.mean(axis=0)[None])[1] < 0  # which is what samples alone say


@pytest.mark.parametrize(
    ("splits", "sd_split", "sd_sample", "n"),
    [(3, 1.0, 0.0, 2), (5, 1.0, 0.0, 2), (10, 1.0, 0.0, 2), (5, 0.1, 0.5, 65)],
)
def test_interval_covers_as_often_as_it_says(monkeypatch, splits, sd_split, sd_sample, n):
    """Few splits need more than a percentile: without it, 5 that dominate are covered at 83 %."""
    monkeypatch.setattr(summary, "RESAMPLES", 1000)
    generator = np.random.default_rng(3)
    covered = []
    for _ in range(300):
        of_splits = sd_split * generator.normal(size=(splits, 1))
        low, high = bootstrap_interval(of_splits + sd_sample * generator.normal(size=n))
        covered.append(low < 0 < high)
    assert 0.92 < np.mean(covered) < 0.98  # 300 trials: ± .025


def test_paired_difference_sees_what_unpaired_errors_hide():
    records = {**make("logistic", 0.0), **make("fitzpatrick_logistic", -0.01)}
    evaluation = evaluate(records, GRID)
    first, second = evaluation.summaries
    assert second.interval[1] > first.interval[0]  # the intervals overlap
    ((loss, found),) = evaluation.differences.items()
    assert loss == found.first == LossChoice("fitzpatrick_logistic")
    assert found.second == LossChoice("logistic")
    assert found.mean == pytest.approx(-0.01, abs=2e-3)
    assert found.low < found.mean < found.high
    assert found.better == loss
    assert difference(first, second).better == loss
    assert difference(first, first).better is None


def test_differences_are_those_of_a_bootstrap_of_their_own():
    records = {**make("logistic", 0.0), **make("fitzpatrick_logistic", -0.01)}
    (found,) = evaluate(records, GRID).differences.values()
    errors = [
        np.stack([records[path].final.test_errors for path in records if path.loss == loss])
        for loss in (found.first, found.second)
    ]
    delta = errors[0].astype(np.float64) - errors[1]
    assert found.mean == pytest.approx(delta.mean(), rel=1e-9)
    assert (found.low, found.high) == pytest.approx(bootstrap_interval(delta), rel=1e-9)


def test_every_tightness_is_compared_with_the_fenchel_young_loss():
    records = {
        **make("sparsemax", 0.0),
        **make("fitzpatrick_logistic", -0.01, tightness=0.5),
        **make("logistic", 0.0),
        **make("fitzpatrick_logistic", 0.01, tightness=2.0),
    }
    evaluation = evaluate(records, GRID)
    half, two = (LossChoice("fitzpatrick_logistic", c) for c in (0.5, 2.0))
    assert list(evaluation.differences) == [half, two]
    assert evaluation.differences[half].second == LossChoice("logistic")
    assert evaluation.better == {half}  # the Fenchel-Young loss is better than one, not than both
    del records[FitPath(half, 0)], records[FitPath(half, 1)]
    assert evaluate(records, GRID).better == {LossChoice("logistic")}
    text = results_table("demo", evaluation, None)
    assert "  fitzpatrick_logistic (tightness 0.5)" in text
    assert max(map(len, text.splitlines())) <= 80


def test_table_marks_the_better_one_only_with_evidence():
    records = {
        **make("logistic", 0.0),
        **make("fitzpatrick_logistic", -0.01),
        **make("sparsemax", 0.0),
        **make("fitzpatrick_sparsemax", 0.0),
    }
    text = results_table("demo", evaluate(records, GRID), {"logistic": 0.25})
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    marked = [line.split()[0] for line in lines if "*" in line]
    assert marked == ["fitzpatrick_logistic"]
    assert ".250" in next(line for line in lines if line.strip().startswith("logistic"))
    assert "–" in next(line for line in lines if "fitzpatrick_sparsemax" in line)


def test_ours_stands_beside_the_paper_alone():
    evaluation = evaluate(make("logistic", 0.0), GRID)
    assert results_table("demo", evaluation, {"logistic": 0.25}).split()[:4] == [
        "demo",
        "ours",
        "±",
        "paper",
    ]
    assert results_table("demo", evaluation, None).split()[:3] == ["demo", "error", "±"]


def test_single_split_has_no_spread():
    assert "–" in results_table("demo", evaluate(make("logistic", 0.0, seeds=1), GRID), None)


def test_heading_and_numbers():
    one, five = (heading(Protocol(), seeds) for seeds in (1, 5))
    assert "one dev split.\n" in one
    assert "bootstrap over test samples, not splits, 4000 resamples" in one
    assert "±" not in one
    assert "the mean over 5 dev splits, ± their standard deviation" in five
    assert "bootstrap over splits and test samples, 4000 resamples" in five
    assert (signed(0.01), signed(-0.01), number(12.0, 1)) == ("+.0100", "-.0100", "12.0")
    assert max(map(len, five.splitlines())) <= 80


def test_heading_says_what_was_run():
    plain = " ".join(heading(Protocol(), 5).split())
    assert plain.endswith(
        "intercept: none, as in the paper; features: standardized; final model: fitted to train "
        "alone."
    )
    other = " ".join(heading(Protocol(intercept=True, alphas=(2.0, 1.0), refit=True), 5).split())
    assert "intercept: unpenalized; " in other
    assert other.endswith("final model: fitted to train and dev; α grid: 2, 1.")


def test_table_says_what_did_not_converge():
    text = results_table("demo", evaluate(make("logistic", 0.0), GRID), None)
    assert text.splitlines()[-1] == "  2 of 8 fits did not converge"


def test_table_2_fits_80_columns():
    from fitzpatrick.datasets import DATASETS

    text = datasets_table(dict.fromkeys(DATASETS, "by hand (--details)"))
    assert max(map(len, text.splitlines())) <= 80
    assert "yeast" in text
    assert "license: river: BSD 3-Clause" in dataset_details()
