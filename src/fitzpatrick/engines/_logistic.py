r"""The losses of the negentropy on the simplex for labels, sparse and dense targets.

All of them begin with one pass of exponentials, e = exp(θ − max θ), in which the entries with
y > 0 are set to zero: what is left sums to the mass r of the entries with y = 0, which the rest of
the work knows by this one number.

Hard labels, y = e_j, have the closed forms of ``regularizers/negentropy_labels.py``: the others
share the rest as e is.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import expit

from . import _omega
from ._blocks import LARGE_BLOCK_BYTES, FloatArray, Scratch, pieces, row_dot
from ._near import NEAR, near_terms
from ._output import Output
from ._row_kernel import BlockTask, CoreKernel, RowKernel, write_slope
from ._targets import Labels, SparseTargets, Support, TargetForm, support_of

if TYPE_CHECKING:
    from ..losses import Loss

# Up to this many classes a row is too short for a fast reduction; columns are long.
_FEW_CLASSES = 64
# Dense targets need a dozen arrays of the size of a block.
_DENSE_BYTES = 1 << 19
# The terms of a loss are differences of numbers that sum to 1 + c. A loss below this share of that
# would lose its digits, and takes the series of its small terms.
_SMALL_LOSS = 1 / 32
# Scores further below the highest of their row, whose squares overflow float32, go to the core.
_LOWEST = -1e15


def bind_logistic(loss: "Loss", targets: TargetForm) -> RowKernel:
    """Rows of any form."""
    kernel = LabelKernel if isinstance(targets, Labels) else ProportionKernel
    return kernel(loss, targets)


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
    omega = _omega.wright_omega(d + (math.log(c) - c))
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
        loss, miss, hit = _solve_label(np.log(rest) - (theta[at] - top), self.loss.tightness)
        if value is not None:
            value[:] = loss
        if out is None:
            return
        # nothing to spread where the label has it all
        np.multiply(e, (miss / np.where(rest == 0, 1, rest))[:, None], out=out)
        if output == Output.GRADIENT:
            out[at] = -miss
            return
        out[at] = hit
        if output == Output.SLOPE:
            write_slope(self.loss, self.targets.support(rows), out)


@dataclass(frozen=True)
class Block:
    """The layout of a block whose entries all have y > 0."""

    def spread(self, row_values: FloatArray) -> FloatArray:
        return row_values[:, None]

    def total(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduce(values, axis=1))

    def dot(self, x: FloatArray, y: FloatArray) -> FloatArray:
        return row_dot(x, y)

    def highest(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.maximum.reduce(values, axis=1))


@dataclass(frozen=True, eq=False)
class ProportionKernel(RowKernel):
    """Sparse and dense targets, of which only the support is looked at where that pays."""

    block_bytes: ClassVar[int] = LARGE_BLOCK_BYTES

    def compute(self, task: BlockTask) -> None:
        output, scratch = task.output, task.scratch
        for inside in self._pieces(task.rows, task.theta):
            part = task.part(inside)
            y = self._targets(part.rows, scratch)
            solved = self._solve(y, part.theta, part.out, scratch)
            if solved is None:
                CoreKernel(self.loss, self.targets).compute(part)
                continue
            p, loss = solved
            if part.value is not None:
                part.value[...] = loss
            if part.out is None:
                continue
            own = y.y if isinstance(y, Support) else y
            if output == Output.GRADIENT:
                p -= own
            if isinstance(y, Support):
                y.scatter(part.out, p)
            else:
                part.out[...] = p
            if output == Output.SLOPE:
                write_slope(self.loss, y, part.out)

    def _pieces(self, rows: slice, theta: FloatArray) -> Iterator[slice]:
        """The block, or smaller ones for dense targets, counted from its start."""
        if isinstance(self.targets, SparseTargets):
            yield slice(0, len(theta))
            return
        for piece in pieces(rows, theta.shape[1], theta.itemsize, _DENSE_BYTES):
            yield slice(piece.start - rows.start, piece.stop - rows.start)

    def _targets(self, rows: slice, scratch: Scratch) -> Support | FloatArray:
        """The support of a block, or all of one without zeros."""
        if isinstance(self.targets, SparseTargets):
            return self.targets.support(rows)
        y = self.targets.dense(rows, scratch)
        return y if y.min(initial=1) > 0 else support_of(y)

    def _solve(
        self,
        y: Support | FloatArray,
        theta: FloatArray,
        out: FloatArray | None,
        scratch: Scratch,
    ) -> tuple[FloatArray, FloatArray] | None:
        """The maximizer where y > 0, and the loss of each row.

        Off the support the maximizer goes to ``out``. None leaves the block to the core.
        """
        if isinstance(y, Support):
            return self._solve_support(y, theta, out, scratch)
        return self._solve_block(y, theta, scratch)

    def _solve_support(
        self, support: Support, theta: FloatArray, out: FloatArray | None, scratch: Scratch
    ) -> tuple[FloatArray, FloatArray] | None:
        c = self.loss.tightness
        top, e = exponentials(theta, out, scratch)
        t = support.gather(theta)
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
            y = _omega.not_too_small(support.y)
            t -= np.log(y)
            buffers = scratch.stack("terms", 2, y.shape, y.dtype)
            p, loss = own, _sum_terms(y, own, None, t, c, support, buffers)
        else:
            root = _omega.solve(t, support.y, rest, np.log(total), support, c, scratch)
            if root is None:
                return None
            factor = np.exp(-root.lam)
            p = root.p
            loss = _sum_terms(root.y, p, root.omega, None, c, support, root.free)
        if out is not None:
            np.multiply(e, factor[:, None], out=out)
        return p, loss + rest * factor

    def _solve_block(
        self, y: FloatArray, theta: FloatArray, scratch: Scratch
    ) -> tuple[FloatArray, FloatArray] | None:
        c = self.loss.tightness
        top = np.maximum.reduce(theta, axis=1)
        t = scratch.array("t", theta.shape, theta.dtype)
        np.subtract(theta, top[:, None], out=t)
        if not t.min(initial=0) > _LOWEST:
            return None
        if c == 0:
            p = scratch.array("p", theta.shape, theta.dtype)
            np.exp(t, out=p)
            total = np.add.reduce(p, axis=1)
            np.multiply(p, (1 / total)[:, None], out=p)
            np.subtract(t, np.log(total)[:, None], out=t)
            y = _omega.not_too_small(y)
            log_y = scratch.array("log y", theta.shape, theta.dtype)
            np.subtract(t, np.log(y, out=log_y), out=t)
            buffers = scratch.stack("terms", 2, y.shape, y.dtype)
            return p, _sum_terms(y, p, None, t, c, Block(), buffers)
        e = scratch.array("e32", theta.shape, np.float32)
        np.copyto(e, t, casting="same_kind")
        np.exp(e, out=e)
        lse = np.log(np.add.reduce(e, axis=1).astype(theta.dtype))
        root = _omega.solve(t, y, np.zeros_like(top), lse, Block(), c, scratch)
        if root is None:
            return None
        return root.p, _sum_terms(root.y, root.p, root.omega, None, c, Block(), root.free)


def _sum_terms(
    y: FloatArray,
    p: FloatArray,
    omega: FloatArray | None,
    rho: FloatArray | None,
    c: float,
    layout: _omega.Layout,
    buffers: Iterable[FloatArray],
) -> FloatArray:
    """Sums of the core's terms y (E(ρ) + c E(−ρ)) at y > 0, with ρ = log(p/y) and ω = c y/p.

    They are a series only where it is needed. ρ and the buffers are overwritten.
    """
    terms, work = buffers
    if omega is not None and c == 1:
        np.subtract(p, y, out=terms)
        np.subtract(1, omega, out=work)  # of one sign, with the targets that the root has
        return layout.dot(terms, work)
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
    total = layout.dot(terms, y)
    # Rounding errors of all terms together are at most 1 + c: they count where a loss is small.
    is_small = total < (1 + c) * _SMALL_LOSS
    if is_small.any():
        limit = np.where(is_small, (1 + c) * (NEAR**2 / 2), -np.inf)  # that of |ρ| = NEAR
        near = np.flatnonzero(terms < layout.spread(limit))
        terms.reshape(-1)[near] = near_terms(rho.reshape(-1)[near] / (c - 1), c)
        total = layout.dot(terms, y)
    return total
