"""From records to numbers: chosen models, their errors, and whether a difference means anything."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from .protocol import FitPath
from .records import PathRecords

RESAMPLES = 4000
LEVEL = 0.95
_SEED = 20240
_BLOCK_CELLS = 2_000_000


@dataclass(frozen=True, eq=False)
class LossSummary:
    """One loss on one experiment.

    Attributes:
        loss: its name.
        alphas: chosen on dev, one per seed.
        errors: test error of the chosen model, one per seed.
        sample_errors: test error of each sample, (seeds, n).
        interval: bootstrap interval of the mean error.
        dev_curve: dev error at each alpha of the grid, averaged over the seeds.
        grid: the alphas.
        zeros: share of exact zeros in the chosen models' predictions.
        seconds: time of one whole path, averaged over the seeds.
        unconverged: fits that did not reach the tolerance, over all seeds, tested ones included.
        fits: number of fits.
    """

    loss: str
    alphas: tuple[float, ...]
    errors: np.ndarray
    sample_errors: np.ndarray
    interval: tuple[float, float]
    dev_curve: np.ndarray
    grid: tuple[float, ...]
    zeros: float
    seconds: float
    unconverged: int
    fits: int

    @property
    def error(self) -> float:
        """Mean over the seeds."""
        return float(self.errors.mean())

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds; 0 for a single one."""
        return float(self.errors.std(ddof=1)) if self.errors.size > 1 else 0.0


@dataclass(frozen=True)
class Difference:
    """Error of one loss minus that of another on the same test samples.

    Attributes:
        first: the loss whose error comes first.
        second: the loss whose error is subtracted.
        mean: difference of the mean errors.
        low: lower end of the bootstrap interval.
        high: upper end.
    """

    first: str
    second: str
    mean: float
    low: float
    high: float

    @property
    def better(self) -> str | None:
        """The loss with the lower error, if the interval leaves no doubt."""
        if self.high < 0:
            return self.first
        return self.second if self.low > 0 else None


def summarize(records: dict[FitPath, PathRecords]) -> list[LossSummary]:
    """One summary per loss, in the order of the paths."""
    summaries = []
    for loss in dict.fromkeys(path.loss for path in records):
        found = [records[path] for path in records if path.loss == loss]
        runs, chosen = [one.grid for one in found], [one.final for one in found]
        samples = np.stack([record.test_errors for record in chosen]).astype(np.float64)
        fitted = [fit for one in found for fit in one.fits]
        summaries.append(
            LossSummary(
                loss=loss,
                alphas=tuple(record.alpha for record in chosen),
                errors=np.asarray([record.test_error for record in chosen]),
                sample_errors=samples,
                interval=bootstrap_interval(samples),
                dev_curve=np.mean([[fit.dev_error for fit in fits] for fits in runs], axis=0),
                grid=tuple(fit.alpha for fit in runs[0]),
                zeros=float(np.mean([record.zeros for record in chosen])),
                seconds=float(np.mean([sum(fit.seconds for fit in fits) for fits in runs])),
                unconverged=sum(not fit.converged for fit in fitted),
                fits=len(fitted),
            )
        )
    return summaries


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """Percentile interval of the mean of ``values``, (seeds, n), always the same one.

    Dev splits and test samples are resampled: both might have been others. A bootstrap of few
    splits is too narrow, by √((S − 1)/S) and by the ratio of the normal to the t quantile with
    S − 1 degrees of freedom: the splits' means are moved apart by as much before resampling.

    Example:
        >>> low, high = bootstrap_interval(np.asarray([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
        >>> f"{low:.2f}, {high:.2f}"  # the t interval of three splits' means: -0.48, 4.48
        '-0.69, 4.69'
    """
    generator = np.random.default_rng(_SEED)
    seeds, n = values.shape
    if seeds > 1:
        means = values.mean(axis=1, keepdims=True)
        values = values + (_widening(seeds) - 1) * (means - means.mean())
    blocks = []
    for start in range(0, RESAMPLES, max(1, _BLOCK_CELLS // n)):
        count = min(max(1, _BLOCK_CELLS // n), RESAMPLES - start)
        weights = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=count) / seeds
        samples = generator.integers(n, size=(count, n))
        cells = samples + n * np.arange(count)[:, None]
        times = np.bincount(cells.ravel(), minlength=count * n).reshape(count, n)
        blocks.append((weights * (times @ values.T)).sum(axis=1) / n)
    low, high = np.quantile(np.concatenate(blocks), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _widening(seeds: int) -> float:
    """By how much a normal interval from the spread of few means is too narrow."""
    upper = (1 + LEVEL) / 2
    return float(np.sqrt(seeds / (seeds - 1)) * stdtrit(seeds - 1, upper) / ndtri(upper))


def difference(first: LossSummary, second: LossSummary) -> Difference:
    """Paired bootstrap: both losses are judged on the same splits and the same test samples."""
    delta = first.sample_errors - second.sample_errors
    return Difference(first.loss, second.loss, float(delta.mean()), *bootstrap_interval(delta))


def pairs(summaries: list[LossSummary]) -> list[Difference]:
    """Each Fitzpatrick loss against its Fenchel-Young twin."""
    by_name = {summary.loss: summary for summary in summaries}
    return [
        difference(by_name[f"fitzpatrick_{name}"], summary)
        for name, summary in by_name.items()
        if f"fitzpatrick_{name}" in by_name
    ]
