"""τ of the sparse losses, without a sort: Newton's method, on the few entries that come near it.

Any part of a row gives a lower bound of τ: the maximum alone gives max x − R, and the maxima of
some hundred interleaved *lanes* of the row come close to τ. The few entries above the bound are
gathered, and Newton's method on them ends after a few steps.
"""

from dataclasses import dataclass

import numpy as np

from .._root import advance
from ._blocks import FloatArray, IntArray, Scratch, row_dot
from ._sparse_formulas import SparseFormula
from ._targets import Support

# Shorter rows are treated as a whole.
_MIN_LENGTH = 256
# Entries of a row that are looked at to see how many are within R of the maximum, and the share of
# them from which a better bound pays.
_SAMPLE, _LANES_SHARE = 32, 0.02
# Where so many of them exceed a lower bound of τ that costs nothing, no better one pays.
_MIN_WHOLE_SHARE = 0.7
# Lanes of a row, and how many Newton steps are taken on their maxima.
_LANES, _LANE_STEPS = 64, 3
# A larger share of entries above the guess is treated as a whole.
_DENSE_SHARE = 0.25
# More Newton steps than rows of any length need.
MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries x of every row, along ``axis``, and what bends them; s is overwritten."""

    x: FloatArray
    axis: int
    s: FloatArray
    bend: FloatArray | None = None

    def above(self, tau: FloatArray, formula: SparseFormula) -> FloatArray | None:
        """Write a at these τ to the buffer, and return what the formula does."""
        np.subtract(self.x, tau if self.axis == 0 else tau[:, None], out=self.s)
        return formula.above(self.s, self.bend)

    def sums(self, tau: FloatArray, formula: SparseFormula) -> tuple[FloatArray, FloatArray]:
        """Σ a^P of each row, and its slope −∂/∂τ over P."""
        root, a, axis = self.above(tau, formula), self.s, self.axis
        if formula.power == 1:
            count = np.add.reduce((a > 0).view(np.uint8), axis=axis, dtype=np.uint32)
            return np.add.reduce(a, axis=axis), count.astype(a.dtype)
        if root is None:
            slope = np.add.reduce(a, axis=axis)
            if axis == 1:
                return row_dot(a, a), slope
            a *= a
            return np.add.reduce(a, axis=axis), slope
        a *= a
        mass = np.add.reduce(a, axis=axis)
        a /= root  # a da/ds
        return mass, np.add.reduce(a, axis=axis)


def newton_step(parts: list[Entries], tau: FloatArray, formula: SparseFormula) -> FloatArray:
    """How far τ is to be moved towards ‖a‖ = R."""
    sums = [part.sums(tau, formula) for part in parts]
    mass, slope = (sum(column[1:], start=column[0]) for column in zip(*sums, strict=True))
    if formula.power == 1:
        step = (mass - formula.reach) / np.maximum(slope, 1)
    else:
        norm = np.sqrt(mass)
        excess = (mass - formula.reach**2) / (norm + formula.reach)  # of the norm, with its digits
        step = excess * norm / np.maximum(slope, np.finfo(tau.dtype).tiny)
    return np.asarray(step)


@dataclass(frozen=True, eq=False)
class Tau:
    """τ as a sum of two numbers, whose digits many small entries need to sum to one."""

    large: FloatArray
    small: FloatArray

    @property
    def is_known(self) -> bool:
        """Whether it is a number in all rows."""
        return not np.isnan(self.small).any()

    def entries(self, x: FloatArray, support: Support) -> FloatArray:
        """s = x − τ at a support."""
        s = x - support.spread(self.large)
        s -= support.spread(self.small)
        return s

    def rows(self, x: FloatArray, out: FloatArray) -> FloatArray:
        """s = x − τ in whole rows, written to ``out``, which may be x."""
        np.subtract(x, self.large[:, None], out=out)
        out -= self.small[:, None]
        return out


def newton(parts: list[Entries], tau: FloatArray, formula: SparseFormula) -> Tau:
    """τ such that ‖a‖ = R, from a lower bound."""
    before = None
    for _ in range(MAX_STEPS):
        step = newton_step(parts, tau, formula)
        left = np.abs(step)
        if formula.power > 1 and before is not None:
            left = left * (step / before) ** 2  # errors are squared, those of P = 1 vanish
        there, is_long = advance(tau, step)
        if not np.any((left > np.finfo(tau.dtype).eps / 8) & is_long):
            break
        tau, before = there, step
    return Tau(tau, step)


def lower_bound(x: FloatArray, highest: FloatArray, formula: SparseFormula) -> FloatArray:
    """A lower bound of τ, from the highest entry of each row and from their mean; NaN at NaN."""
    k = x.shape[1]
    mean = np.add.reduce(x, axis=1) / k
    bound = mean - formula.reach / k ** (1 / formula.power)
    return np.asarray(np.maximum(bound, highest - formula.reach))


@dataclass(frozen=True, eq=False)
class Active:
    """The highest entry of each row, a lower bound of τ, and the entries above it, with x for y."""

    top: FloatArray
    least: FloatArray
    entries: Support


def active_entries(x: FloatArray, formula: SparseFormula, scratch: Scratch) -> Active | None:
    """The entries of every row that come near τ.

    None where too many entries come near τ, or a row has no finite entry.
    """
    n, k = x.shape
    if k < _MIN_LENGTH or not x.flags.c_contiguous:
        return None
    sample = x[:, :: k // _SAMPLE].T.copy()  # long columns sum faster
    peak = np.maximum.reduce(sample, axis=0)
    mean = np.add.reduce(sample, axis=0) / len(sample)
    bound = np.maximum(mean - formula.reach / k ** (1 / formula.power), peak - formula.reach)
    if np.count_nonzero(sample >= bound) >= _MIN_WHOLE_SHARE * sample.size:
        return None  # most entries seem to be active
    near = np.count_nonzero(sample > peak - formula.reach) - n  # besides the peaks themselves
    if near > _LANES_SHARE * sample.size:
        top, least = _lane_bound(x, formula)
    else:
        top = np.maximum.reduce(x, axis=1)
        # below that the highest entry alone exceeds R; it is itself above, whatever its size
        least = np.minimum(top - formula.reach, np.nextafter(top, -np.inf))
    if not np.isfinite(top).all():
        return None
    mask = scratch.array("mask", x.shape, np.bool_)
    np.greater(x, least[:, None], out=mask)
    if np.count_nonzero(mask) > _DENSE_SHARE * x.size:
        return None
    at = np.flatnonzero(mask)
    starts = np.searchsorted(at, np.arange(0, n * k, k))
    rows = np.repeat(np.arange(n), np.diff(starts, append=len(at)))
    return Active(top, least, Support(rows, at - rows * k, x.reshape(-1)[at], starts, k))


def as_columns(values: FloatArray, support: Support, fill: float) -> FloatArray:
    """The entries of each row in a column of its own, filled up."""
    n = len(support.starts)
    counts = np.diff(support.starts, append=len(values))
    height = int(counts.max(initial=0))
    if height * n == len(values):  # as many in every row
        return np.ascontiguousarray(values.reshape(n, height).T)
    columns = np.full((height, n), fill, values.dtype)
    place: IntArray = np.arange(len(values)) - support.starts[support.rows]
    columns.reshape(-1)[place * n + support.rows] = values
    return columns


def _lane_bound(x: FloatArray, formula: SparseFormula) -> tuple[FloatArray, FloatArray]:
    """The maximum of each row, and a lower bound of τ: that of the maxima of its lanes.

    A lane is every w-th entry. Newton's method increases to τ, and is stopped early.
    """
    n, k = x.shape
    length = k // (2 * _LANES)
    even = x[:, : 2 * length * _LANES].reshape(n, length, 2 * _LANES)
    pairs = np.maximum.reduce(even, axis=1)
    lanes = np.maximum(pairs[:, :_LANES], pairs[:, _LANES:]).T.copy()  # long columns sum faster
    top = np.maximum.reduce(lanes, axis=0)
    if k % (2 * _LANES):
        top = np.maximum(top, np.maximum.reduce(x[:, 2 * length * _LANES :], axis=1))
    lanes -= top
    tau = np.full(n, -float(formula.reach), dtype=x.dtype)
    parts = [Entries(lanes, 0, np.empty_like(lanes))]
    for _ in range(_LANE_STEPS):
        tau += newton_step(parts, tau, formula)
    # rounding must not drop an active entry
    slack = 8 * np.finfo(x.dtype).eps * (formula.reach + np.abs(top))
    return top, np.asarray(tau + top - slack)
