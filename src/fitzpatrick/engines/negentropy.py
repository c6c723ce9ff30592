r"""The losses of the negentropy on the simplex in NumPy, for problems too small to load Numba for.

All of them begin with one pass of exponentials, e = exp(θ − max θ), in which the entries with
y > 0 are set to zero. The sum r of the others is all that the rest of the work has to know of the
entries with y = 0.

Hard labels have the closed forms of ``regularizers/negentropy.py``; the other classes share the
rest in proportion to e. Proportions need the root λ of ``compiled/_proportions.py``, and find it by
the same method.

At 64 × 10 scores these rows take a half to a quarter of the core's time, without the half second
that it takes to load Numba.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, wrightomega

from ..regularizers import Regularizer
from .rows import BlockTask, CoreKernel, Output, RowKernel
from .targets import FloatArray, Labels, NoTargets, Scratch, Support, TargetForm

# Up to this many classes a row is too short for a fast reduction; columns are long.
_FEW_CLASSES = 64
# An ω below this does not matter beside 1: then p = e^(t − λ), whatever y is.
MIN_OMEGA = 1e-17
# Targets and exponentials below this behave like it; its square is not zero.
MIN_Y = 1e-150
# The last step of λ, which a second-order update of p follows.
LAST_STEP = 3e-6
# An ω whose last step was as long as this is off by 1/72 of its fourth power.
_LAST_OMEGA_STEP = 2e-4
# More passes than any finite row needs.
MAX_PASSES = 50
# The terms of a loss are differences of numbers that sum to 1 + c. A loss below this share of that
# would lose its digits, and takes the series of its small terms.
_SMALL_LOSS = 1 / 32
# Below this |log(p/y)| the terms of a loss are a series; above, differences of numbers up to 32
# times as large.
_NEAR = 1 / 16
_N_TERMS = 10


def bind_logistic(omega: Regularizer, tightness: float, targets: TargetForm) -> RowKernel:
    """Rows of any form."""
    if isinstance(targets, NoTargets):
        return SoftmaxKernel(omega, tightness, targets)
    kernel = LabelKernel if isinstance(targets, Labels) else ProportionKernel
    return kernel(omega, tightness, targets)


def exponentials(
    theta: FloatArray, out: FloatArray | None, scratch: Scratch
) -> tuple[FloatArray, FloatArray]:
    """The row maxima and e = exp(θ − max θ), in ``out`` where its memory order suits."""
    columns = theta.shape[1] <= _FEW_CLASSES
    if columns and not theta.flags.f_contiguous:
        copy = scratch.array("theta", theta.shape, theta.dtype, order="F")
        np.copyto(copy, theta)
        theta = copy
    if out is None or (columns and out.strides[0] > out.strides[1]):
        order = "F" if columns or theta.strides[0] < theta.strides[1] else "C"
        out = scratch.array("e", theta.shape, theta.dtype, order=order)
    top = np.maximum.reduce(theta, axis=1)
    np.subtract(theta, top[:, None], out=out)
    np.exp(out, out=out)
    return top, out


def _solve_label(d: FloatArray, c: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The loss, 1 − y*_j and y*_j, from the score d of all other classes against the label's."""
    if c == 0:
        return np.logaddexp(0, d), expit(d), expit(-d)
    omega = wright_omega(d + (math.log(c) - c))
    if c == 1:
        hit = 1 / (1 + omega)
        return omega, np.where(omega < 1, omega * hit, 1 - hit), hit
    log_r = np.where(omega < 1, d - c - omega, np.log(omega) - math.log(c))
    hit, miss = expit(-log_r), expit(log_r)
    logarithm = np.where(log_r > 0, log_r, 0) + np.log1p(np.exp(-np.abs(log_r)))
    if c < 1:
        return (1 - c) * logarithm + omega, miss, hit
    return logarithm + np.fmax(omega - c * logarithm, 0), miss, hit


@dataclass(frozen=True, eq=False)
class LabelKernel(RowKernel):
    """Integer labels, in closed form."""

    def compute(self, task: BlockTask) -> None:
        output, rows, theta, value, out, scratch, _ = task
        assert isinstance(self.targets, Labels)
        labels = self.targets.labels[rows]
        at = (np.arange(len(labels)), labels)
        top, e = exponentials(theta, out, scratch)
        e[at] = 0
        rest = np.add.reduce(e, axis=1)
        loss, miss, hit = _solve_label(np.log(rest) - (theta[at] - top), self.tightness)
        if value is not None:
            value[:] = loss
        if out is None:
            return
        # nothing to spread where the label has it all
        np.multiply(e, (miss / np.where(rest == 0, 1, rest))[:, None], out=out)
        if output == Output.GRADIENT:
            out[at] = -miss
            return
        is_family = output == Output.SLOPE and self.tightness > 0
        out[at] = hit * hit / (hit + self.tightness) if is_family else hit


@dataclass(frozen=True, eq=False)
class SoftmaxKernel(RowKernel):
    """The link."""

    def compute(self, task: BlockTask) -> None:
        _, e = exponentials(task.theta, task.out, task.scratch)
        if task.out is not None:
            np.divide(e, np.add.reduce(e, axis=1)[:, None], out=task.out)


@dataclass(frozen=True, eq=False)
class ProportionKernel(RowKernel):
    """Sparse and dense targets, of which only the support sees ω."""

    block_bytes: ClassVar[int] = 1 << 18  # it makes two dozen arrays of the size of the support

    def compute(self, task: BlockTask) -> None:
        support = self.targets.support(task.rows, task.scratch)
        c, y = self.tightness, np.maximum(support.y, MIN_Y, dtype=np.float64)
        top, e = exponentials(task.theta, task.out, task.scratch)
        t = support.gather(task.theta) - support.spread(top)
        own = support.gather(e)
        support.scatter(e, 0)
        rest = np.add.reduce(e, axis=1, dtype=np.float64)
        root = _find_root(t, c * y, own, rest, support, c)
        if root is None:
            CoreKernel(self.omega, c, self.targets).compute(task)
            return
        lam, p = root
        rho = np.log(p / y) if c > 0 else t - support.spread(lam) - np.log(y)
        if task.value is not None:
            task.value[...] = _sum_terms(y, p, rho, c, support) + rest * np.exp(-lam)
        if task.out is None:
            return
        # where y = 0 the maximizer is its own slope
        np.multiply(e, np.exp(-lam)[:, None], out=task.out, casting="same_kind")
        if task.output == Output.GRADIENT:
            p = p - support.y
        elif task.output == Output.SLOPE:
            omega: Any = self.omega
            p = omega.slope(p, y, c)
        support.scatter(task.out, p)


def _find_root(
    t: FloatArray, y: FloatArray, own: FloatArray, rest: FloatArray, support: Support, c: float
) -> tuple[FloatArray, FloatArray] | None:
    """λ, and the maximizer at the entries with y > 0; None if no root was found.

    At those entries t, y and own are the scores less their row's maximum, c times the targets, and
    e^t. Of each row, rest is Σ e^t over the other entries.
    """
    if not np.isfinite(t).all():  # where it is, so are the row's largest score and lse
        return None
    lse: FloatArray = np.log(rest + support.total(own))
    if c == 0:
        return lse, own * support.spread(np.exp(-lse))
    lam, highest = lse + c / 2, lse + support.total(y)
    # what p does not depend on is drawn in
    y = np.maximum(y, np.maximum(MIN_OMEGA * own * support.spread(np.exp(-lam)), MIN_Y))
    z = np.log(y) - t + support.spread(lam)
    # within two percent: the approximation of Iacono and Boyd, as in the core
    omega = np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))
    omega *= 1 - np.log1p(omega) / (2 + omega)
    for number in range(MAX_PASSES):
        is_exact = number > 0
        if is_exact:  # the start will do for a first step
            residual = z - omega - np.log(omega)
            shifted = 1 + omega
            twice = 2 * shifted + residual * (4 / 3)
            step = residual / shifted
            omega *= 1 + step * (twice - step) / (twice - 2 * step)
            is_exact = np.abs(step).max(initial=0) <= _LAST_OMEGA_STEP
        v = 1 / (1 + omega)
        p = y / omega
        slope = p * v
        mass = rest * np.exp(-lam)
        g = support.total(p) + mass
        first = (support.total(slope) + mass) / g
        slope *= v
        slope *= 2 - v
        bend = (support.total(slope) + mass) / g - first * first
        f = np.log(g)
        there = np.clip(lam + 2 * f * first / (2 * first * first - f * bend), lse, highest)
        moved = support.spread(there - lam)
        u = v * moved
        if is_exact and np.abs(there - lam).max(initial=0) <= LAST_STEP:
            return there, p * (1 - u * (1 - u * (1 - v / 2)))
        lam = there
        omega *= 1 + u * (1 + u * v / 2)  # ω at the new λ, to second order
        z += moved
    return None


def _sum_terms(
    y: FloatArray, p: FloatArray, rho: FloatArray, c: float, support: Support
) -> FloatArray:
    """Sums of the core's terms y (E(ρ) + c E(−ρ)) at y > 0, ρ = log(p/y), E(x) = e^x − 1 − x.

    They are a series only where it is needed.
    """
    ratio = p / y
    terms = ratio + (c - 1) * rho - (1 + c)
    if c > 0:
        terms += c / ratio
    total = support.total(terms * y)
    # Rounding errors of all terms together are at most 1 + c: they count where a loss is small.
    is_small = total < (1 + c) * _SMALL_LOSS
    if is_small.any():
        near = np.flatnonzero(np.abs(rho) < support.spread(np.where(is_small, _NEAR, 0.0)))
        x = rho[near]
        series = np.zeros_like(x)
        for n in range(_N_TERMS, 1, -1):
            series = (series + (1 + c * (-1) ** n) / math.factorial(n)) * x
        terms[near] = series * x
        total = support.total(terms * y)
    return total


def wright_omega(z: FloatArray) -> FloatArray:
    """The core's ω(z) in few calls: SciPy's, and the digits that it loses in float64."""
    omega = np.asarray(wrightomega(z))
    if z.dtype == np.float32:  # which SciPy rounds from float64
        return omega
    # below −50 SciPy has e^z; near 5.54 it ends a step too early
    inexact = ((z < 0) & (z > -50)) | ((z > 5.5) & (z < 5.6))
    if inexact.any():
        # a Newton step from log(e^z/ω) − ω, which has the digits that z − log ω has lost
        rough = omega[inexact]
        omega[inexact] = rough * (1 + (np.log(np.exp(z[inexact]) / rough) - rough) / (1 + rough))
    return omega
