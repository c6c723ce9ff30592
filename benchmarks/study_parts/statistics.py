"""Comparisons of errors within a data set, over resampled splits, and across data sets."""

import functools
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95
DRAWS = 20_000


@dataclass(frozen=True)
class Interval:
    """A mean difference with its interval and the p-value of no difference."""

    mean: float
    low: float
    high: float
    p: float

    @property
    def verdict(self) -> int:
        """−1 if the difference is clearly below zero, 1 if clearly above, else 0."""
        return int(self.low > 0) - int(self.high < 0)


def resampled_t(differences: np.ndarray, test_over_train: float = 0.0) -> Interval:
    """The corrected resampled t interval of Nadeau and Bengio.

    Random splits share rows, so the variance of the mean over J splits is about s² (1/J +
    n_test/n_train) instead of s²/J. A ratio of zero gives the plain t interval for independent
    samples.
    """
    n = differences.size
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    error = spread * np.sqrt(1 / n + test_over_train)
    if error == 0:
        return Interval(mean, mean, mean, float(mean == 0))
    reach = error * stats.t.ppf((1 + LEVEL) / 2, n - 1)
    p = 2 * stats.t.sf(abs(mean) / error, n - 1)
    return Interval(mean, mean - reach, mean + reach, float(p))


def holm(p: np.ndarray) -> np.ndarray:
    """p-values adjusted by Holm's method, which bounds the chance of any false finding."""
    order = np.argsort(p)
    factors = len(p) - np.arange(len(p))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1)
    return adjusted


@dataclass(frozen=True, eq=False)
class Ranks:
    """Mean ranks of candidates over data sets; 1 is the best.

    Attributes:
        mean: the ranks, one for each candidate.
        p: the p-value of the Friedman test that all candidates are equal.
        critical: Nemenyi's critical difference; closer ranks do not differ significantly.
        n: number of data sets.
    """

    mean: np.ndarray
    p: float
    critical: float
    n: int


def friedman(errors: np.ndarray) -> Ranks:
    """Errors (data sets, candidates) by their ranks within each set."""
    n, k = errors.shape
    mean = stats.rankdata(errors, axis=1).mean(axis=0)
    p = float(stats.friedmanchisquare(*errors.T).pvalue) if k > 2 else float("nan")
    return Ranks(mean, p, nemenyi(k) * np.sqrt(k * (k + 1) / (6 * n)), n)


@functools.cache
def nemenyi(k: int) -> float:
    """The quantile of the studentized range for k candidates, over √2."""
    return float(stats.studentized_range.ppf(LEVEL, k, np.inf) / np.sqrt(2))


def bayesian_signed_rank(differences: np.ndarray, rope: float, seed: int = 0) -> np.ndarray:
    """Probabilities that a new difference is most likely below −rope, within it, or above.

    Pairwise means of the differences are weighted with Dirichlet draws, as in the Bayesian
    signed-rank test of Benavoli and others; one difference of zero with weight ½ is the prior.
    """
    z = np.concatenate([[0.0], differences])
    pairs = (z[:, None] + z[None, :]) / 2
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.concatenate([[0.5], np.ones(len(differences))]), DRAWS)
    shares = np.stack(
        [
            ((weights @ where.astype(float)) * weights).sum(axis=1)
            for where in (pairs < -rope, np.abs(pairs) <= rope, pairs > rope)
        ],
        axis=1,
    )
    winners = np.bincount(shares.argmax(axis=1), minlength=3)
    return np.asarray(winners / DRAWS)
