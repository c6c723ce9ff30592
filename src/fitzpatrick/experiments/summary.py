"""From records to numbers: chosen models, their errors, and whether a difference means anything."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri, stdtrit

from ..metrics import log_loss, squared_errors
from .protocol import FitPath, LossChoice, Protocol
from .records import Grids, Record, final_models

RESAMPLES = 4000
LEVEL = 0.95
MIN_TEST_SAMPLES = 30  # fewer allow no verdict
_SEED = 20240
_BLOCK_CELLS = 2_000_000


# predicts the mean of the targets that are learned from: a name in the tables, and no loss
BASELINE = LossChoice("baseline")


@dataclass(frozen=True, eq=False)
class LossSummary:
    """One loss on one experiment, or the baseline; means are over the seeds."""

    loss: LossChoice
    settings: tuple[float, ...]  # penalties or rounds chosen on dev, one per seed
    errors: np.ndarray  # test error of the chosen model, one per seed
    n_test: int
    resampled_errors: np.ndarray  # the mean test error in each bootstrap resample
    accuracy: float = math.nan
    log_loss: float = math.nan  # infinite where a class that occurs was ruled out
    # mean dev error at each setting of the grid, interpolated in its logarithm where a seed lacks
    # it; NaN from where the first path has ended
    dev_curve: np.ndarray = field(default_factory=lambda: np.zeros(0))
    grid: tuple[float, ...] = ()  # with the setting of the least mean dev error, if it is another
    ends: tuple[float, ...] = ()  # where paths have ended before the grid did
    zeros: float = 0.0  # share of exact zeros in the chosen models' predictions
    seconds: float = 0.0  # mean time of a path
    unconverged: int = 0  # fits that did not reach the tolerance, tested ones included
    fits: int = 0

    @property
    def error(self) -> float:
        """Mean over the seeds."""
        return float(self.errors.mean())

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; 0 for a single one."""
        return float(self.errors.std(ddof=1)) if self.errors.size > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Bootstrap interval of the mean error."""
        return percentile_interval(self.resampled_errors)


@dataclass(frozen=True)
class Difference:
    """Error of one loss minus the error of another, on the same test samples."""

    first: LossChoice
    second: LossChoice
    mean: float
    low: float  # ends of the bootstrap interval
    high: float

    @property
    def better(self) -> LossChoice | None:
        """The loss with the lower error, if the interval excludes zero."""
        if self.high < 0:
            return self.first
        return self.second if self.low > 0 else None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The losses of one experiment, how they compare, and the baseline if there is one."""

    summaries: list[LossSummary]
    baseline: LossSummary | None = None

    @property
    def rows(self) -> list[LossSummary]:
        return [*self.summaries, *([self.baseline] if self.baseline else [])]

    @functools.cached_property
    def differences(self) -> dict[LossChoice, Difference]:
        """Each loss of positive tightness minus the Fenchel-Young loss of its family."""
        plain = {one.loss.family: one for one in self.summaries if one.loss.loss.tightness == 0}
        return {
            one.loss: difference(one, plain[one.loss.family])
            for one in self.summaries
            if one.loss.loss.tightness > 0 and one.loss.family in plain
        }

    @functools.cached_property
    def better(self) -> set[LossChoice]:
        """Losses that beat their Fenchel-Young loss; or the latter, if it beats all of them."""
        if self.summaries[0].n_test < MIN_TEST_SAMPLES:
            return set()
        found = {one.better for one in self.differences.values()}
        beaten = {one.second for one in self.differences.values() if one.better != one.second}
        return {loss for loss in found if loss is not None and loss not in beaten}


def evaluate(
    records: Grids,
    protocol: Protocol,
    baseline: tuple[np.ndarray, np.ndarray] | None = None,
) -> Evaluation:
    """One summary per loss, in the order of the paths; all share one bootstrap.

    The baseline is of test targets, and of the row that is predicted for all of them.
    """
    by_loss: dict[LossChoice, dict[FitPath, Record]] = {}
    for path, final in final_models(records).items():
        by_loss.setdefault(path.loss, {})[path] = final
    errors = [[final.test_errors for final in found.values()] for found in by_loss.values()]
    if baseline is not None:
        Y, row = baseline
        predictions = np.broadcast_to(row, Y.shape)
        errors.append([squared_errors(Y, predictions)] * len(errors[0]))
    resampled = resampled_means(np.asarray(errors))
    summaries = [
        _summary(loss, [*found.values()], [records[path] for path in found], means, protocol)
        for (loss, found), means in zip(by_loss.items(), resampled, strict=False)
    ]
    if baseline is None:
        return Evaluation(summaries)
    means = np.asarray([one.mean() for one in errors[-1]])
    scores = accuracy(Y, predictions), log_loss(Y, predictions)
    return Evaluation(summaries, LossSummary(BASELINE, (), means, len(Y), resampled[-1], *scores))


def _summary(
    loss: LossChoice,
    chosen: list[Record],
    grids: list[list[Record]],
    resampled: np.ndarray,
    protocol: Protocol,
) -> LossSummary:
    on_grid, grid = [fit for fits in grids for fit in fits], loss.grid(protocol)
    refitted = {final.setting: final for final in chosen if final not in on_grid}
    fitted = [*on_grid, *refitted.values()]
    tried = loss.in_order(fit.setting for fit in on_grid)
    best = tried[int(np.nanargmin(_mean_curve(loss, grids, tried)))]
    shown = loss.in_order((*grid, best))

    def mean(name: str) -> float:
        return float(np.mean([getattr(record, name) for record in chosen]))

    return LossSummary(
        loss=loss,
        settings=tuple(record.setting for record in chosen),
        errors=np.asarray([record.test_error for record in chosen]),
        n_test=chosen[0].test_errors.size,
        resampled_errors=resampled,
        accuracy=mean("accuracy"),
        log_loss=mean("log_loss"),
        dev_curve=_mean_curve(loss, grids, shown),
        grid=shown,
        ends=tuple(fits[-1].setting for fits in grids if fits[-1].setting != grid[-1]),
        zeros=mean("zeros"),
        seconds=float(np.mean([sum(fit.seconds for fit in grid) for grid in grids])),
        unconverged=sum(not fit.converged for fit in fitted),
        fits=len(fitted),
    )


def _mean_curve(
    loss: LossChoice, grids: Sequence[Sequence[Record]], settings: Sequence[float]
) -> np.ndarray:
    """Mean dev error of some paths at each setting; NaN beyond the end of the first."""
    sign = -1 if loss.model == "linear" else 1  # what is interpolated has to rise along a path
    curves = []
    for grid in grids:
        logs, errors = np.log([fit.setting for fit in grid]), [fit.dev_error for fit in grid]
        curves.append(np.interp(sign * np.log(settings), sign * logs, errors, right=math.nan))
    return np.asarray(np.mean(curves, axis=0))


def difference(first: LossSummary, second: LossSummary) -> Difference:
    """Paired bootstrap: both losses are judged on the same splits and the same test samples."""
    mean = first.error - second.error
    interval = percentile_interval(first.resampled_errors - second.resampled_errors)
    return Difference(first.loss, second.loss, mean, *interval)


def percentile_interval(resampled: np.ndarray) -> tuple[float, float]:
    """Ends of the middle part of resampled values, which holds the share LEVEL of them."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def resampled_means(values: np.ndarray) -> np.ndarray:
    """Means of bootstrap resamples, (losses, RESAMPLES), of ``values`` (losses, seeds, n).

    Dev splits and test samples are resampled, the same for every loss: both might have been
    others. A bootstrap of few splits is too narrow, by √((S − 1)/S) and by the ratio of the normal
    to the t quantile with S − 1 degrees of freedom: the splits' means are moved apart by as much
    before resampling. All of this is linear in the values, so that the difference of two losses'
    resampled means is the resampled mean of their difference.
    """
    generator = np.random.default_rng(_SEED)
    values = values.astype(np.float64)
    losses, seeds, n = values.shape
    if seeds > 1:
        means = values.mean(axis=2, keepdims=True)
        values += (_widening(seeds) - 1) * (means - means.mean(axis=1, keepdims=True))
    columns = values.reshape(losses * seeds, n).T
    blocks = []
    for start in range(0, RESAMPLES, max(1, _BLOCK_CELLS // n)):
        count = min(max(1, _BLOCK_CELLS // n), RESAMPLES - start)
        weights = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=count) / seeds
        samples = generator.integers(n, size=(count, n))
        cells = samples + n * np.arange(count)[:, None]
        times = np.bincount(cells.ravel(), minlength=count * n).reshape(count, n)
        sums = (times @ columns).reshape(count, losses, seeds)
        blocks.append(np.einsum("cls,cs->lc", sums, weights) / n)
    return np.concatenate(blocks, axis=1)


def _widening(seeds: int) -> float:
    """By how much a normal interval from the spread of few means is too narrow."""
    upper = (1 + LEVEL) / 2
    return float(np.sqrt(seeds / (seeds - 1)) * stdtrit(seeds - 1, upper) / ndtri(upper))


def accuracy(Y: np.ndarray, predictions: np.ndarray) -> float:
    """Share of the rows whose largest prediction is at one of their largest targets.

    Example:
        >>> Y = np.asarray([[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
        >>> accuracy(Y, np.eye(3)[[0, 0, 1, 2]])
        0.75
    """
    chosen = np.take_along_axis(Y, predictions.argmax(axis=1)[:, None], axis=1)[:, 0]
    return float((chosen == Y.max(axis=1)).mean())
