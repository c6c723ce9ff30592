"""Seeded inputs for the reference data: one list of kinds of points for each domain.

A kind is a function of a ``Sampler`` and a size k that returns one row (y, θ). Every input is
a float of the sampler's dtype and every target lies in its domain (on the simplex, as closely
as floats allow; the recipe renormalizes it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from . import recipe
from .recipe import Regularizer

Row = np.ndarray
Example = tuple[Row, Row]

SIZES = (2, 3, 4, 5, 6, 7, 8)
SIZE_WEIGHTS = (0.2, 0.24, 0.18, 0.14, 0.1, 0.07, 0.07)
LARGE_SIZE = 40
# Relative distances between a target and the link; 0 is the rounded link itself.
NEARNESS = (0.0, 1e-12, 1e-8, 1e-4, 1e-2)


@dataclass(frozen=True)
class Sampler:
    """Random rows of one dtype for one regularizer."""

    rng: np.random.Generator
    dtype: np.dtype
    regularizer: Regularizer

    @property
    def single(self) -> bool:
        """Whether the inputs are float32."""
        return self.dtype == np.float32

    @property
    def tiny_exponent(self) -> int:
        """Targets go down to 10 to the minus this."""
        return 37 if self.single else 300

    @property
    def largest_log(self) -> float:
        """Scores up to this can go through an exponential without overflow."""
        return 80.0 if self.single else 700.0

    def round(self, row: Row) -> Row:
        return np.asarray(row).astype(self.dtype).astype(np.float64)

    def choice(self, *options: float) -> float:
        return options[self.rng.integers(len(options))]

    def exponential(self, low: float, high: float, k: int | None = None) -> Row:
        """10 to a uniform power."""
        return 10.0 ** self.rng.uniform(low, high, k)

    # Scores.

    def scores(self, k: int, low: float = -3, high: float = 4) -> Row:
        scale = self.exponential(low, high)
        return np.clip(scale * self.rng.normal(size=k), -1e4, 1e4)

    def tied_scores(self, k: int) -> Row:
        """Few distinct values; one time in four all the same."""
        scale = self.exponential(-3, 3)
        if self.rng.random() < 0.25:
            return np.full(k, scale)
        return scale * self.rng.integers(-1, 2, k)

    def extreme_scores(self, k: int) -> Row:
        return self.rng.choice([-1e4, 0.0, 1.0, 1e4], k)

    # Targets.

    def one_hot(self, k: int) -> Row:
        return np.eye(k)[self.rng.integers(k)]

    def proportions(self, k: int, concentration: float = 1.0) -> Row:
        return self.rng.dirichlet(np.full(k, concentration))

    def sparse_proportions(self, k: int) -> Row:
        size = self.rng.integers(1, k)
        y = np.zeros(k)
        y[self.rng.permutation(k)[:size]] = (
            self.proportions(size) if self.rng.random() < 0.5 else 1 / size
        )
        return y

    def with_tiny(self, y: Row) -> Row:
        """About half of the entries become tiny, never all of them."""
        tiny = self.rng.random(len(y)) < 0.5
        tiny[self.rng.integers(len(y))] = False
        return np.where(tiny, self.exponential(-self.tiny_exponent, -3, len(y)), y)

    def near(self, row: Row) -> Row:
        """The row times 1 + noise of a random size, down to none."""
        return row * (1 + self.choice(*NEARNESS) * self.rng.normal(size=len(row)))

    def link(self, theta: Row) -> Row:
        """The Fenchel-Young link; where it is not unique, the first vertex that attains it."""
        fallback = np.eye(len(theta))[int(np.argmax(theta))]
        _, y_star = recipe.evaluate(self.regularizer.name, fallback, theta, digits=20).rounded(
            len(theta)
        )
        return fallback if np.isnan(y_star).any() else y_star

    def close_sum(self, y: Row) -> Row:
        """Floats that sum to 1 as closely as the largest entry allows; exactly, every other time.

        Exact sums come from multiples of a power of two, which leave tiny entries out; those
        rows are only rounded so where no positive entry would vanish.
        """
        y = self.round(y / y.sum())
        grid = 2.0 ** (22 if self.single else 50)
        on_grid = np.round(y * grid) / grid
        if self.rng.random() < 0.5 and np.all((on_grid > 0) == (y > 0)):
            y = on_grid
        largest = int(np.argmax(y))
        rest = sum(Fraction(entry) for i, entry in enumerate(y) if i != largest)
        y[largest] = float(1 - rest)
        return self.round(y)


Kind = Callable[[Sampler, int], Example]


def _margin(regularizer: Regularizer) -> float:
    """Score gap from which a one-hot target has no loss; 1 where it always has some."""
    loss = recipe.loss_of(regularizer.name)
    alpha = getattr(getattr(loss, "potential", None), "alpha", 2.0)
    return 1 / (alpha - 1) if alpha > 1 else 1.0


def _some_target(s: Sampler, k: int, share: float = 0.3) -> Row:
    """A class, or proportions with zeros."""
    return s.one_hot(k) if s.rng.random() < share else s.close_sum(s.sparse_proportions(k))


def _uniform(s: Sampler, k: int) -> Example:
    theta = s.tied_scores(k) if s.rng.random() < 0.3 else s.scores(k)
    return np.full(k, 1 / k), theta


def _simplex_extreme(s: Sampler, k: int) -> Example:
    y = s.one_hot(k) if s.rng.random() < 0.5 else s.close_sum(s.proportions(k))
    return y, s.extreme_scores(k)


def _simplex_near_link(s: Sampler, k: int) -> Example:
    theta = s.round(s.scores(k, high=1.2))
    return s.close_sum(s.near(s.link(theta))), theta


def _simplex_well_classified(s: Sampler, k: int) -> Example:
    """One-hot, with a gap of up to 690 (losses of 1e-300) or just beside the margin."""
    y = s.one_hot(k)
    gap = s.rng.uniform(1, 85 if s.single else 690)
    if s.rng.random() < 0.5:
        beside = s.choice(0.0, 1e-6 if s.single else 1e-12, 1e-4, 1e-2, 0.1)
        gap = _margin(s.regularizer) * (1 + beside * s.choice(-1, 1))
    others = -s.rng.exponential(size=k) * s.choice(0.0, 1e-3, 1.0)
    others[int(np.argmin(y))] = 0.0
    return y, np.where(y > 0, gap, others) + s.choice(0.0, 0.0, 1.0, -3.0)


def _subnormal(s: Sampler, k: int) -> Example:
    y = s.proportions(k)
    y[s.rng.integers(k)] = np.finfo(s.dtype).smallest_subnormal * s.choice(1, 1000)
    return s.close_sum(y), s.scores(k)


def _cube_edges(s: Sampler, k: int) -> Example:
    """Entries at, next to, and well away from 0 and 1."""
    near_one = 1 - 2.0 ** -s.rng.integers(2, 24 if s.single else 53, k)
    options = [s.exponential(-s.tiny_exponent, -3, k), near_one, np.zeros(k), np.ones(k)]
    return np.choose(s.rng.integers(0, 4, k), options), s.scores(k)


def _cube_extreme(s: Sampler, k: int) -> Example:
    y = s.rng.integers(0, 2, k) if s.rng.random() < 0.5 else s.rng.random(k)
    return np.asarray(y, float), s.extreme_scores(k)


def _cube_near_link(s: Sampler, k: int) -> Example:
    theta = s.round(s.scores(k, high=1.2))
    return np.clip(s.near(s.link(theta)), 0, 1), theta


def _cube_well_classified(s: Sampler, k: int) -> Example:
    y = s.rng.integers(0, 2, k).astype(float)
    sizes = s.rng.uniform(0, 1, k) * s.choice(2, 20, 85 if s.single else 690)
    return y, (2 * y - 1) * sizes


def _log_scores(s: Sampler, k: int) -> Row:
    return np.minimum(s.scores(k, high=s.choice(1, 3, 4)), s.largest_log)


def _counts_extreme(s: Sampler, k: int) -> Example:
    y = s.rng.choice([0.0, 1.0, 1e6], k)
    return y, s.rng.choice([-1e4, -s.largest_log, 0.0, s.largest_log], k)


def _counts_near_link(s: Sampler, k: int) -> Example:
    theta = s.round(np.clip(s.scores(k, high=1.2), None, 13))
    return s.near(s.link(theta)), theta


def _counts_well_classified(s: Sampler, k: int) -> Example:
    """No events and a low rate: losses down to 1e-300."""
    return np.zeros(k), -s.rng.uniform(0.5, 1, k) * s.choice(5, 50, 85 if s.single else 690)


def _near_scores(s: Sampler, k: int) -> Example:
    theta = s.round(s.scores(k))
    return s.near(theta), theta


def _near_positive_scores(s: Sampler, k: int) -> Example:
    theta = s.round(s.scores(k))
    return np.abs(s.near(np.maximum(theta, 0))), theta


# Unit balls, with the norm of order 1 or 2. A target outside, even by a rounding, would have an
# infinite loss, so each is moved inside in exact arithmetic.


def _ball_sparse(s: Sampler, k: int) -> Example:
    signs = s.rng.choice([-1.0, 1.0], k)
    return _inside(s, _scaled(s, signs * s.sparse_proportions(k))), s.scores(k)


def _ball_tied_target(s: Sampler, k: int) -> Row:
    return np.full(k, 2.0 ** -np.ceil(np.log2(k))) if s.rng.random() < 0.5 else s.one_hot(k)


def _ball_extreme(s: Sampler, k: int) -> Example:
    y = _ball_tied_target(s, k)
    s.tied_scores(k)  # which the stored rows were drawn after
    return y, s.extreme_scores(k)


def _ball_near_link(s: Sampler, k: int) -> Example:
    theta = s.round(s.scores(k, high=1))
    return _inside(s, s.near(s.link(theta))), theta


def _order(s: Sampler) -> int:
    return 1 if s.regularizer.domain == "l1_ball" else 2


def _scaled(s: Sampler, row: Row) -> Row:
    return row / np.linalg.norm(row, ord=_order(s))


def _inside(s: Sampler, row: Row) -> Row:
    row = s.round(row / max(1.0, np.linalg.norm(row, ord=_order(s))))
    while sum(abs(Fraction(entry)) ** _order(s) for entry in row) > 1:
        row = s.round(row * (1 - np.finfo(s.dtype).eps))
    return row


BALL_KINDS: list[tuple[int, Kind]] = [
    (60, lambda s, k: (s.one_hot(k) * s.choice(-1, 1), s.scores(k))),
    (20, lambda s, k: (np.zeros(k), s.scores(k))),
    (80, lambda s, k: (_inside(s, s.rng.uniform(-1, 1, k) / k), s.scores(k))),
    (80, lambda s, k: (_inside(s, _scaled(s, s.rng.normal(size=k))), s.scores(k))),
    (60, _ball_sparse),
    (60, lambda s, k: (_ball_tied_target(s, k), s.tied_scores(k))),
    (50, lambda s, k: (_inside(s, s.with_tiny(s.rng.uniform(-1, 1, k) / k)), s.scores(k))),
    (40, _ball_extreme),
    (60, _ball_near_link),
]

# How many rows of each kind.
KINDS: dict[str, list[tuple[int, Kind]]] = {
    "simplex": [
        (60, lambda s, k: (s.one_hot(k), s.scores(k))),
        (40, _uniform),
        (60, lambda s, k: (s.close_sum(s.sparse_proportions(k)), s.scores(k))),
        (80, lambda s, k: (s.close_sum(s.proportions(k, s.choice(0.3, 1.0, 10.0))), s.scores(k))),
        (50, lambda s, k: (_some_target(s, k), s.tied_scores(k))),
        (60, lambda s, k: (s.close_sum(s.with_tiny(s.proportions(k))), s.scores(k))),
        (40, _simplex_extreme),
        (60, _simplex_near_link),
        (60, _simplex_well_classified),
    ],
    "cube": [
        (80, lambda s, k: (s.rng.integers(0, 2, k).astype(float), s.scores(k))),
        (80, lambda s, k: (s.rng.random(k), s.scores(k))),
        (100, _cube_edges),
        (50, lambda s, k: (s.rng.choice([0.0, 0.5, 1.0], k), s.tied_scores(k))),
        (50, _cube_extreme),
        (80, _cube_near_link),
        (70, _cube_well_classified),
    ],
    "counts": [
        (90, lambda s, k: (1.0 * s.rng.poisson(s.exponential(-1, 2), k), _log_scores(s, k))),
        (40, lambda s, k: (np.zeros(k), _log_scores(s, k))),
        (70, lambda s, k: (s.exponential(-3, 3, k), _log_scores(s, k))),
        (70, lambda s, k: (s.with_tiny(s.exponential(-2, 2, k)), _log_scores(s, k))),
        (60, lambda s, k: (np.round(s.exponential(3, 6, k)), _log_scores(s, k))),
        (40, lambda s, k: (s.rng.integers(0, 3, k).astype(float),
                           np.clip(s.tied_scores(k), -1e4, s.largest_log))),
        (40, _counts_extreme),
        (60, _counts_near_link),
        (40, _counts_well_classified),
    ],
    "reals": [
        (200, lambda s, k: (s.scores(k), s.scores(k))),
        (80, lambda s, k: (s.rng.integers(-3, 4, k).astype(float), s.tied_scores(k))),
        (70, lambda s, k: (s.with_tiny(s.scores(k)), s.scores(k))),
        (60, lambda s, k: (s.extreme_scores(k), s.extreme_scores(k))),
        (100, _near_scores),
    ],
    "orthant": [
        (120, lambda s, k: (np.abs(s.scores(k)), s.scores(k))),
        (120, lambda s, k: (np.maximum(s.scores(k), 0), s.scores(k))),
        (80, lambda s, k: (s.rng.integers(0, 3, k).astype(float), s.tied_scores(k))),
        (70, lambda s, k: (s.with_tiny(np.abs(s.scores(k))), s.scores(k))),
        (50, lambda s, k: (np.maximum(s.extreme_scores(k), 0), s.extreme_scores(k))),
        (70, _near_positive_scores),
    ],
    "l1_ball": BALL_KINDS,
    "l2_ball": BALL_KINDS,
}  # fmt: skip

# Kinds that are stored for many tightnesses alone: ties at scores so large that adding a target to
# them changes nothing, and the least positive targets that there are.
MORE_SIMPLEX_KINDS: list[tuple[int, Kind]] = [
    (6, lambda s, k: (_some_target(s, k), s.choice(1e8, 1e30) * s.rng.integers(-1, 2, k))),
    (4, _subnormal),
]


def sample(regularizer: Regularizer, dtype: np.dtype, seed: int) -> Iterator[list[Example]]:
    """All inputs of a regularizer: the rows of each kind in turn, then a large row of each."""
    sampler = Sampler(np.random.default_rng(seed), np.dtype(dtype), regularizer)
    kinds = KINDS[regularizer.domain]
    for count, kind in kinds:
        sizes = sampler.rng.choice(SIZES, count, p=SIZE_WEIGHTS)
        yield [_rounded(sampler, kind(sampler, int(k))) for k in sizes]
    yield [_rounded(sampler, kind(sampler, LARGE_SIZE)) for _, kind in kinds]


def sample_more(regularizer: Regularizer, dtype: np.dtype, seed: int) -> list[Example]:
    """Odd scores and targets, and a single class."""
    sampler = Sampler(np.random.default_rng(seed), np.dtype(dtype), regularizer)
    if regularizer.domain != "simplex":
        kinds = KINDS[regularizer.domain][:2]
        return [_rounded(sampler, kind(sampler, 1)) for _, kind in kinds]
    rows = [(np.ones(1), sampler.scores(1)) for _ in range(2)]
    for count, kind in MORE_SIMPLEX_KINDS:
        rows += [kind(sampler, int(k)) for k in sampler.rng.choice(SIZES[1:], count)]
    return [_rounded(sampler, row) for row in rows]


def _rounded(sampler: Sampler, example: Example) -> Example:
    y, theta = example
    return sampler.round(y), sampler.round(theta)
