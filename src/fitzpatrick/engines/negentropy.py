r"""The losses of the negentropy on the simplex in NumPy, for problems too small to load Numba for.

All of them begin with one pass of exponentials, e = exp(θ − max θ), in which the entries with
y > 0 are set to zero: what is left sums to the mass r of the entries with y = 0, which the rest of
the work knows by this one number.

Hard labels, y = e_j, have the closed forms of ``regularizers/negentropy.py``: the others
share the rest as e is.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from ..regularizers import Regularizer
from . import omega as root_finder
from .rows import BlockTask, CoreKernel, Output, RowKernel
from .targets import FloatArray, Labels, NoTargets, Scratch, Support, TargetForm

# Up to this many classes a row is too short for a fast reduction; columns are long.
_FEW_CLASSES = 64
# The terms of a loss are differences of numbers that sum to 1 + c. A loss below this share of that
# would lose its digits, and takes the series of its small terms.
_SMALL_LOSS = 1 / 32
# Scores further below the highest of their row, whose squares overflow float32, go to the core.
_LOWEST = -1e15
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
    omega = root_finder.wright_omega(d + (math.log(c) - c))
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
        output, rows, theta, value, out, scratch = task
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
        solved = self._solve(support, task)
        if solved is None:
            CoreKernel(self.omega, self.tightness, self.targets).compute(task)
            return
        p, loss = solved
        if task.value is not None:
            task.value[...] = loss
        if task.out is None:
            return
        if task.output == Output.GRADIENT:
            p -= support.y
        elif task.output == Output.SLOPE:
            omega: Any = self.omega
            p = omega.slope(p, support.y, self.tightness)
        support.scatter(task.out, p)

    def _solve(self, support: Support, task: BlockTask) -> tuple[FloatArray, FloatArray] | None:
        """The maximizer where y > 0, and the loss of each row; None leaves the block to the core.

        Where y = 0 the maximizer, which is its own slope, goes to the output.
        """
        c, scratch = self.tightness, task.scratch
        top, e = exponentials(task.theta, task.out, scratch)
        t = support.gather(task.theta)
        t -= support.spread(top)
        own = support.gather(e)
        support.scatter(e, 0)
        rest = np.add.reduce(e, axis=1)
        total = rest + support.total(own)
        if not t.min(initial=0) > _LOWEST:
            return None
        if c == 0:
            factor = 1 / total
            own *= support.spread(factor)
            t -= support.spread(np.log(total))
            y = root_finder.not_too_small(support.y)
            t -= np.log(y)
            p, loss = own, _sum_terms(y, own, None, t, c, support, scratch)
        else:
            root = root_finder.solve(t, support.y, rest, np.log(total), support, c, scratch)
            if root is None:
                return None
            factor = np.exp(-root.lam)
            p = root.p
            loss = _sum_terms(root.y, p, root.omega, None, c, support, scratch)
        if task.out is not None:
            np.multiply(e, factor[:, None], out=task.out)
        return p, loss + rest * factor


def _near_terms(rho: FloatArray, tightness: float) -> FloatArray:
    """E(ρ) + c E(−ρ) for small ρ = log(p/y), with E(x) = exp(x) − 1 − x."""
    total = np.zeros_like(rho)
    for n in range(_N_TERMS, 1, -1):
        total += (1 + tightness * (-1) ** n) / math.factorial(n)
        total *= rho
    return np.asarray(total * rho)


def _sum_terms(
    y: FloatArray,
    p: FloatArray,
    omega: FloatArray | None,
    rho: FloatArray | None,
    c: float,
    support: Support,
    scratch: Scratch,
) -> FloatArray:
    """Sums of the core's terms y (E(ρ) + c E(−ρ)) at y > 0, with ρ = log(p/y) and ω = c y/p.

    They are a series only where it is needed. ρ is overwritten.
    """
    terms, work = scratch.stack("terms", 2, y.shape, y.dtype)
    if omega is not None and c == 1:
        np.subtract(p, y, out=terms)
        np.subtract(1, omega, out=work)  # of one sign, with the targets that the root has
        return support.dot(terms, work)
    # over y: e^ρ + (c − 1) ρ + ω − (1 + c)
    np.divide(p, y, out=terms)
    if rho is None:
        rho = np.log(terms, out=work)
    rho *= c - 1
    terms += rho
    if omega is None:
        terms -= 1
    else:
        terms += omega
        terms -= 1 + c
    total = support.dot(terms, y)
    # Rounding errors of all terms together are at most 1 + c: they count where a loss is small.
    is_small = total < (1 + c) * _SMALL_LOSS
    if is_small.any():
        limit = np.where(is_small, (1 + c) * (_NEAR**2 / 2), -np.inf)  # that of |ρ| = _NEAR
        near = np.flatnonzero(terms < support.spread(limit))
        terms.reshape(-1)[near] = _near_terms(rho.reshape(-1)[near] / (c - 1), c)
        total = support.dot(terms, y)
    return total
