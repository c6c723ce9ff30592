"""Choices, intervals and pairs, and the tables that show them."""

import numpy as np
import pytest

from fitzpatrick.experiments import summary
from fitzpatrick.experiments.protocol import FitPath, LossChoice, Protocol
from fitzpatrick.experiments.records import Record, choose
from fitzpatrick.experiments.report import (
    Section,
    heading,
    number,
    results_table,
    signed,
)
from fitzpatrick.experiments.reproduce import marks
from fitzpatrick.experiments.summary import (
    difference,
    evaluate,
    percentile_interval,
    resampled_means,
)

PROTOCOL = Protocol(alphas=(10.0, 1.0, 0.1), rounds=(10, 100, 1000))


def record(setting, dev, test, converged=True):
    errors = np.asarray(test, dtype=np.float32)
    return Record(setting, dev, errors, 0.5, 0.7, 0.25, 1, converged, 2.0, "NumPy")


def make(name, offset, n=400, seeds=2, tightness=None, model="linear"):
    """Records of a loss whose grid has its least dev error in the middle."""
    loss = LossChoice(name, tightness, model)
    grid = PROTOCOL.alphas if model == "linear" else PROTOCOL.rounds
    base = np.random.default_rng(7).gamma(2.0, size=n) / 10
    noise = np.random.default_rng(len(str(loss))).normal(size=(seeds, n)) / 100  # of its own splits
    return {
        FitPath(loss, seed): [
            record(grid[0], 0.5, base + 9),
            record(grid[1], 0.3, base + offset + noise[seed], converged=False),
            record(grid[2], 0.4, base + 5),
        ]
        for seed in range(seeds)
    }


def interval(values):
    """Of the mean of values (seeds, n)."""
    return percentile_interval(resampled_means(values[None])[0])


def test_least_dev_error_and_among_equals_the_simplest():
    fits = [record(10.0, 0.3, [1]), record(1.0, 0.2, [2]), record(0.1, 0.2, [3])]
    assert choose(fits).setting == 1.0


@pytest.mark.parametrize("model", ["linear", "boosted"])
def test_summary_of_a_loss(model):
    (found,) = evaluate(make("logistic", 0.0, model=model), PROTOCOL).summaries
    grid = PROTOCOL.alphas if model == "linear" else PROTOCOL.rounds
    assert (found.settings, found.grid, found.ends) == (grid[1:2] * 2, grid, ())
    np.testing.assert_allclose(found.dev_curve, [0.5, 0.3, 0.4])
    assert found.error == pytest.approx(np.mean(found.errors))
    assert found.spread == pytest.approx(np.std(found.errors, ddof=1))
    assert found.interval[0] < found.error < found.interval[1]
    assert (found.unconverged, found.fits, found.seconds) == (2, 6, 6.0)


def test_a_model_that_several_splits_choose_is_fitted_again_once():
    records = make("logistic", 0.0)
    records[FitPath(LossChoice("logistic"), None)] = [record(1.0, np.nan, np.ones(400), False)]
    (found,) = evaluate(records, PROTOCOL).summaries
    assert (found.settings, found.error) == ((1.0, 1.0), 1.0)
    assert (found.unconverged, found.fits) == (3, 7)


@pytest.mark.parametrize("model", ["linear", "boosted"])
def test_curves_end_with_the_first_path(model):
    records = make("logistic", 0.0, model=model)
    next(iter(records.values())).pop()
    (found,) = evaluate(records, PROTOCOL).summaries
    np.testing.assert_array_equal(found.dev_curve, [0.5, 0.3, np.nan])
    assert found.ends == (found.grid[1],)


def test_interval_knows_that_the_splits_might_have_been_others():
    """Differences that all samples share but that turn with the split are no evidence."""
    shifts = np.asarray([-0.5, -0.4, 0.3, 0.4, -0.3])[:, None]
    values = shifts + np.random.default_rng(1).normal(size=(5, 500)) / 10
    low, high = interval(values)
    assert low < 0 < high
    assert high - low > 0.4
    assert interval(values.mean(axis=0)[None])[1] < 0  # which is what samples alone say


def test_every_split_and_every_sample_counts_alike_in_the_resamples():
    """Losses that are wrong on one sample of one split each, with a mean error of one."""
    splits, n = 3, 4
    values = splits * n * np.eye(splits * n).reshape(-1, splits, n)
    # a resample has a split and a sample 0, 1, 2, … times, each with mean and variance of one; the
    # means of the splits are moved apart by less than 3
    deviation = 3 * np.sqrt(2 * 2 - 1)
    found = resampled_means(values).mean(axis=1)
    np.testing.assert_allclose(found, 1, atol=5 * deviation / np.sqrt(summary.RESAMPLES))


@pytest.mark.parametrize(
    ("splits", "sd_split", "sd_sample", "n"),
    [(1, 0.0, 1.0, 40), (3, 1.0, 0.0, 2), (5, 1.0, 0.0, 2), (10, 1.0, 0.0, 2), (5, 0.1, 0.5, 65)],
)
def test_interval_covers_as_often_as_it_says(monkeypatch, splits, sd_split, sd_sample, n):
    """Few splits need more than a percentile: without it, 5 that dominate are covered at 83 %."""
    monkeypatch.setattr(summary, "RESAMPLES", 1000)
    generator = np.random.default_rng(3)
    covered = []
    for _ in range(300):
        of_splits = sd_split * generator.normal(size=(splits, 1))
        low, high = interval(of_splits + sd_sample * generator.normal(size=n))
        covered.append(low < 0 < high)
    assert 0.92 < np.mean(covered) < 0.98  # 300 trials: ± .025


def test_paired_differences_see_what_unpaired_errors_hide():
    records = {**make("logistic", 0.0), **make("fitzpatrick_logistic", -0.01)}
    evaluation = evaluate(records, PROTOCOL)
    first, second = evaluation.summaries
    assert second.interval[1] > first.interval[0]  # the intervals overlap
    ((loss, found),) = evaluation.differences.items()
    assert loss == found.first == found.better == LossChoice("fitzpatrick_logistic")
    assert found.second == LossChoice("logistic")
    assert found.mean == pytest.approx(-0.01, abs=2e-3)
    assert difference(first, second).better == loss
    assert difference(first, first).better is None
    errors = [
        np.stack([choose(records[path]).test_errors for path in records if path.loss == one])
        for one in (found.first, found.second)
    ]
    delta = errors[0].astype(np.float64) - errors[1]  # which has a bootstrap of its own
    assert found.mean == pytest.approx(delta.mean(), rel=1e-9)
    assert (found.low, found.high) == pytest.approx(interval(delta), rel=1e-9)


def test_every_tightness_is_compared_with_the_fenchel_young_loss_of_its_model():
    records = {
        **make("sparsemax", 0.0),
        **make("fitzpatrick_logistic", -0.01, tightness=0.5),
        **make("logistic", 0.0),
        **make("fitzpatrick_logistic", 0.01, tightness=2.0),
        **make("fitzpatrick_sparsemax", -0.1, model="boosted"),
    }
    evaluation = evaluate(records, PROTOCOL)
    half, two = (LossChoice("fitzpatrick_logistic", c) for c in (0.5, 2.0))
    assert list(evaluation.differences) == [half, two]
    assert evaluation.differences[half].second == LossChoice("logistic")
    assert evaluation.better == {half}  # the Fenchel-Young loss is better than one, not than both
    text = results_table(Section("demo", evaluation))
    assert "  fitzpatrick_logistic (tightness 0.5)" in text
    assert "  boosted fitzpatrick_sparsemax" in text
    assert max(map(len, text.splitlines())) <= 80
    del records[FitPath(half, 0)], records[FitPath(half, 1)]
    assert evaluate(records, PROTOCOL).better == {LossChoice("logistic")}


def test_table_marks_the_better_one_only_with_evidence():
    records = make("fitzpatrick_logistic", -0.01)
    for name in ("logistic", "sparsemax", "fitzpatrick_sparsemax"):
        records |= make(name, 0.0)
    evaluation = evaluate(records, PROTOCOL)
    text = results_table(Section("demo", evaluation, {"logistic": 0.25}))
    lines = text.splitlines()
    assert lines[0].split()[:4] == ["demo", "ours", "±", "paper"]
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if "*" in line] == ["fitzpatrick_logistic"]
    assert ".250" in next(line for line in lines if line.strip().startswith("logistic"))
    assert "–" in next(line for line in lines if "fitzpatrick_sparsemax" in line)
    assert lines[-1] == "  8 of 24 fits did not converge"
    single = evaluate(make("logistic", 0.0, seeds=1), PROTOCOL)
    one = results_table(Section("demo", single))
    assert one.split()[:3] == ["demo", "error", "±"]
    assert "–" in one  # a single split has no spread


def test_heading_and_numbers():
    one, five = (heading(Protocol(), n, *marks(Protocol(), n)) for n in (1, 5))
    assert "one dev split.\n" in one
    assert "bootstrap over test samples, not splits, 4000 resamples" in one
    assert "±" not in one
    assert "the mean over 5 dev splits, ± their standard deviation" in five
    assert "bootstrap over splits and test samples, 4000 resamples" in five
    assert max(map(len, five.splitlines())) <= 80
    plain, other = (
        " ".join(heading(protocol, 5).split())
        for protocol in (Protocol(), Protocol(intercept=True, alphas=(2.0, 1.0), refit=True))
    )
    assert plain.endswith(
        "intercept: none, as in the paper; features: standardized; final model: fitted to train "
        "alone."
    )
    assert "intercept: unpenalized; " in other
    assert other.endswith("final model: fitted to train and dev; α grid: 2, 1.")
    quick = " ".join(heading(Protocol(alphas=(1.0,), whole_grid=False, refine=True), 5).split())
    said = (
        "; α grid: 1, until the dev error has clearly risen, then in smaller steps around the best."
    )
    assert quick.endswith(said)
    assert (signed(0.01), signed(-0.01), number(12.0, 1)) == ("+.0100", "-.0100", "12.0")
