"""The answer in words: which loss, which penalty, and what the evidence allows to say."""

import re
from dataclasses import replace

import numpy as np
import pytest

from fitzpatrick.experiments import compare
from fitzpatrick.experiments.protocol import LossChoice
from fitzpatrick.experiments.report import Section, interval_text, results_table
from fitzpatrick.experiments.summary import (
    BASELINE,
    Difference,
    Evaluation,
    LossSummary,
    resampled_means,
)

GRID = (100.0, 10.0, 1.0, 0.1)
FEW_SPLITS = "5 dev splits are few: see whether --seeds 20 agrees"
TRIFLE = "differences below 1% of the error count as none, however certain they are"


def summary(name, errors, curve=(0.4, 0.3, 0.2, 0.3), model="linear", **changes):
    """Errors (seeds, n)."""
    errors = np.asarray(errors, dtype=np.float64)
    found = LossSummary(
        loss=LossChoice(name, None, model),
        settings=(100.0, 0.1, 0.1),
        errors=errors.mean(axis=1),
        n_test=errors.shape[1],
        resampled_errors=resampled_means(errors[None])[0],
        dev_curve=np.asarray(curve),
        grid=GRID if model == "linear" else (10, 20, 40, 80),
        seconds=1.0,
        fits=len(GRID),
    )
    return replace(found, **changes)


def recommend(*summaries, baseline=None):
    return compare.recommend(Evaluation(list(summaries), baseline))


def errors(level, seeds=5, noise=0.0, seed=0):
    """Around a level, the same samples for every loss."""
    base = np.random.default_rng(3).gamma(9.0, size=200) / 9
    return level * base / base.mean() + noise * np.random.default_rng(seed).normal(size=(seeds, 1))


def pair(second, first=0.1, **options):
    return summary("logistic", errors(first, **options)), summary(
        "sparsemax", errors(second, **options)
    )


def test_least_error_with_the_least_mean_dev_error():
    """Not the penalty that most splits chose, nor the middle one of them."""
    advice = recommend(*pair(0.1, first=0.2))
    assert (advice.loss, advice.setting) == (LossChoice("sparsemax"), 1.0)
    assert advice.answer == (
        "sparsemax: test error .1000 (mean over 5 dev splits, each with the α that it chose), "
        "the lowest of 2. Fit it with α = 1, which has the least mean dev error."
    )


def test_boosted_trees_are_recommended_by_their_rounds():
    boosted = [summary(name, errors(0.1), model="boosted") for name in ("sparsemax", "entmax15")]
    advice = recommend(*pair(0.3, first=0.2), *boosted)
    assert (advice.loss, advice.setting) == (LossChoice("sparsemax", None, "boosted"), 40)
    assert advice.answer.startswith("boosted sparsemax, or boosted entmax15: no difference could")
    assert advice.answer.endswith(
        "each with the rounds that it chose). Fit it with 40 rounds, which have the least mean dev "
        "error."
    )
    assert re.fullmatch(
        r"better than logistic: -\.1000 \[.*\]; the other linear one is further behind",
        advice.points[0],
    )


# what is recommended of a single loss, and the only point beside it
SINGLE = {
    "nothing": ({}, 1.0, None),
    "zeros": ({"zeros": 0.4}, 1.0, "40% of its predicted proportions are exactly zero"),
    "strongest": (
        {"curve": (0.1, 0.2, 0.3, 0.4)},
        100.0,
        "α = 100 is the strongest penalty that was tried: --alphas 100,1000,10000 goes further",
    ),
    "weakest": (
        {"curve": (0.4, 0.3, 0.2, 0.1)},
        0.1,
        "α = 0.1 is the weakest penalty that was tried: --alphas 0.1,0.01,0.001 goes further",
    ),
}


@pytest.mark.parametrize("case", SINGLE)
def test_a_single_loss_is_compared_with_nothing(case):
    changes, alpha, point = SINGLE[case]
    advice = recommend(summary("sparsemax", errors(0.1, seeds=1), **changes))
    assert advice.answer == (
        f"sparsemax: test error .1000. Fit it with α = {alpha:g}, which has the least dev error."
    )
    assert (advice.setting, advice.points) == (alpha, [point] if point else [])


def test_better_where_every_split_agrees():
    points = recommend(*pair(0.2)).points
    assert points[0].startswith("better than sparsemax: -.1000 [-.1")
    assert "over 5 dev splits and 200 test samples" in points[1]
    assert points[2] == FEW_SPLITS
    assert FEW_SPLITS not in recommend(*pair(0.2, seeds=12)).points


def test_not_better_where_the_splits_disagree():
    """Each split alone has a narrow interval; together they leave it open."""
    first, second = errors(0.3, noise=0.05, seed=1), errors(0.3, noise=0.05, seed=2)
    advice = recommend(summary("logistic", first), summary("sparsemax", second))
    best, other = ("logistic", "sparsemax")[:: 1 if first.mean() < second.mean() else -1]
    assert advice.answer.startswith(
        f"{best}, or {other}: no difference could be shown on 200 test samples. "
        f"{best} has the lowest test error, .2"
    )
    assert advice.tied == (LossChoice(other),)
    assert advice.points == [TRIFLE, FEW_SPLITS]


@pytest.mark.parametrize("level", [0.1, 0.2])
def test_a_single_split_is_said_to_be_one(level):
    """Whether or not a difference is seen."""
    advice = recommend(*pair(level, seeds=1))
    assert advice.points[-1] == "one dev split says little: see whether --seeds 20 agrees"
    assert "mean" not in advice.answer
    said = "paired bootstrap over 200 test samples, not over splits"
    assert any(said in point for point in advice.points) is (level > 0.1)


def test_no_verdict_on_few_test_samples():
    """However sure the bootstrap is: it knows no other samples than these."""
    advice = recommend(*(replace(one, n_test=1) for one in pair(0.2)))
    assert advice.answer.startswith(
        "logistic, or sparsemax: no difference could be shown on 1 test sample. logistic has the"
    )
    assert advice.points[0] == "too few test samples for a verdict; it takes 30 or more"
    for n, better in ((30, {LossChoice("logistic")}), (29, set())):
        plain, other = (replace(one, n_test=n) for one in pair(0.2))
        two = [plain, replace(other, loss=LossChoice("fitzpatrick_logistic"))]
        assert Evaluation(two).better == better


def test_not_better_by_a_trifle():
    """However sure: a difference of less than a hundredth of the error."""
    advice = recommend(*pair(0.1005))
    assert (advice.tied, advice.points[0]) == ((LossChoice("sparsemax"),), TRIFLE)
    assert recommend(*pair(0.102)).points[0].startswith("better than sparsemax: -.0020 [")


def test_losses_that_cannot_be_told_apart_are_named_unless_they_are_many():
    three = [summary(name, errors(0.1)) for name in ("logistic", "sparsemax", "entmax15")]
    advice = recommend(*three, summary("fitzpatrick_logistic", errors(0.2)))
    assert advice.answer.startswith("logistic, sparsemax or entmax15: no difference could be ")
    assert advice.points[0].startswith("better than fitzpatrick_logistic: ")
    boosted = [replace(one, loss=LossChoice(one.loss.name, None, "boosted")) for one in three]
    more = summary("fitzpatrick_sparsemax", errors(0.1))
    assert recommend(*three, *boosted, more).answer.startswith(
        "logistic, or one of 6 others (marked * in the table): no difference could be "
    )


@pytest.mark.parametrize(
    ("level", "said"),
    [(0.2, "better than the baseline"), (0.1001, "not clearly better than the baseline")],
)
def test_the_best_is_compared_with_the_baseline(level, said):
    baseline = summary("logistic", errors(level), loss=BASELINE)
    points = recommend(summary("sparsemax", errors(0.1)), baseline=baseline).points
    assert points[0].startswith(f"{said}, which predicts the mean of the training targets")


@pytest.mark.parametrize(
    ("seeds", "ends", "said"),
    [
        (3, [(1.0, 1.0), (0.1,)], "3 of 6 paths stopped early, at α = 1 to 0.1"),
        (2, [(1.0, 1.0), (0.1, 1.0)], "all 4 paths stopped early, at α = 1 to 0.1"),
        (5, [(), (1.0,)], "1 of 10 paths stopped early, at α = 1"),
        (1, [(1.0,)], "the path stopped early, at α = 1"),
    ],
)
def test_where_the_paths_stopped_is_said(seeds, ends, said):
    curve = (0.4, 0.2, 0.3, np.nan)
    losses = zip(("logistic", "sparsemax"), ends, strict=False)
    advice = recommend(*(summary(x, errors(0.1, seeds), curve, ends=end) for x, end in losses))
    assert advice.setting == 10.0
    rest = "where the dev error had clearly risen; --whole-grid goes on to the weakest penalty"
    assert advice.points[-1] == f"{said}, {rest}"


def test_intervals_show_the_digits_that_they_need():
    text = interval_text(Difference("a", "b", -0.00012, -0.00024, -0.000003))
    assert text == "-.000120 [-.000240, -.000003]"
    assert interval_text(Difference("a", "b", 0.0, -0.25, 0.5)) == "+.0000 [-.2500, +.5000]"


def test_class_scores_stand_beside_the_error():
    rows = [
        summary("logistic", errors(0.1), accuracy=0.875, log_loss=0.5),
        summary("sparsemax", errors(0.2), accuracy=0.5, log_loss=np.inf),
        summary("sparsemax", errors(0.2), model="boosted", settings=(10, 40), accuracy=0.5),
    ]
    baseline = summary("logistic", errors(0.3), loss=BASELINE, settings=(), fits=0)
    evaluation = Evaluation(rows, baseline)
    section = Section("demo", evaluation, best=(LossChoice("logistic"),), has_classes=True)
    text = results_table(section)
    head, _, first, second, third, last = text.splitlines()
    assert re.fullmatch(r"demo +error +± +accuracy +log loss +chosen", head)
    assert re.fullmatch(r"  logistic +\.1000\* +\.0000 +87\.5% +\.5000 +α = 0\.1, 100", first)
    assert re.fullmatch(r"  sparsemax +\.2000 +\.0000 +50\.0% +n/a +α = 0\.1, 100", second)
    assert re.fullmatch(r"  boosted sparsemax +\.2000 .* 10, 40 rounds", third)
    assert re.fullmatch(r"  baseline +\.3000 +– .*", last)
    assert "accuracy" not in results_table(replace(section, has_classes=False))
