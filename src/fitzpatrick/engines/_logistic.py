r"""The logistic and the Fitzpatrick logistic loss for labels, sparse and dense targets.

All of them begin with one pass of exponentials, e = exp(θ − max θ), in which the entries with
y > 0 are set to zero: what is left sums to the mass r of the entries with y = 0, which the rest of
the work knows by this one number.

Hard labels, y = e_j, have closed forms. With d = log r − θ_j + max θ, the logistic loss is
softplus(d), and the Fitzpatrick logistic loss is w = ω(d − 1), with :math:`y^\star_j = 1/(1 + w)`
and the rest of the mass spread over the other entries as e is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import expit, wrightomega

from ..regularizers.negentropy import kl_terms
from . import _omega
from ._blocks import LARGE_BLOCK_BYTES, FloatArray, IntArray, Scratch, pieces, row_dot
from ._rows import CoreRows, Rows
from ._targets import DenseTargets, Labels, SparseTargets, Support, support_of

if TYPE_CHECKING:
    from ..losses import Loss

# Up to this many classes a row is too short for a fast reduction; columns are long.
_FEW_CLASSES = 64
# Dense targets need a dozen arrays of the size of a block.
_DENSE_BYTES = 1 << 19
# Scores further below the highest of their row, whose squares overflow float32, go to the core.
_LOWEST = -1e15


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


def _scale(e: FloatArray, factor: FloatArray, out: FloatArray) -> None:
    np.multiply(e, factor[:, None], out=out)


@dataclass(frozen=True)
class HardLogisticRows(Rows[Labels]):
    """Integer labels, in closed form."""

    is_fitzpatrick: bool

    def _solve(
        self, rows: slice, theta: FloatArray, out: FloatArray | None, scratch: Scratch
    ) -> tuple[FloatArray, FloatArray, FloatArray, tuple[IntArray, IntArray]]:
        """The loss, 1 − y*_j, y*_j, and where the labels are; y* off the label goes to ``out``."""
        labels = self.targets.labels[rows]
        at = (np.arange(len(labels)), labels)
        top, e = exponentials(theta, out, scratch)
        e[at] = 0
        rest = np.add.reduce(e, axis=1)
        d = np.log(rest) - (theta[at] - top)
        if self.is_fitzpatrick:
            value = wrightomega(d - 1)
            hit = 1 / (1 + value)
            miss = np.where(value < 1, value * hit, 1 - hit)
        else:
            value = np.logaddexp(0, d)
            miss, hit = expit(d), expit(-d)
        if out is not None:
            # nothing to spread where the label has it all
            _scale(e, miss / np.where(rest == 0, 1, rest), out)
        return value, miss, hit, at

    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        value[:], miss, _, at = self._solve(rows, theta, gradient, scratch)
        if gradient is not None:
            gradient[at] = -miss

    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        _, _, hit, at = self._solve(rows, theta, y_star, scratch)
        y_star[at] = hit

    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        _, _, hit, at = self._solve(rows, theta, d, scratch)
        # p²/(p + y) with y = 1
        d[at] = hit * hit / (1 + hit) if self.is_fitzpatrick else hit


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


@dataclass(frozen=True)
class Maximizer:
    """The loss of each row, and at the entries with y > 0: y, the maximiser and ω = y/p."""

    value: FloatArray
    y: FloatArray
    p: FloatArray
    omega: FloatArray | None  # None for the Fenchel-Young loss

    def gradient(self, out: FloatArray | None = None) -> FloatArray:
        return np.subtract(self.p, self.y, out=out)

    def curvature(self) -> FloatArray:
        return self.p if self.omega is None else self.p / (1 + self.omega)


@dataclass(frozen=True)
class LogisticRows(Rows[SparseTargets | DenseTargets]):
    """Sparse and dense targets, of which only the support is looked at where that pays."""

    loss: "Loss"

    block_bytes: ClassVar[int] = LARGE_BLOCK_BYTES

    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        for piece, inside in self._pieces(rows, theta):
            out = None if gradient is None else gradient[inside]
            solved = self._solve(piece, theta[inside], out, scratch)
            if solved is None:
                self._core.evaluate(piece, theta[inside], value[inside], out, scratch)
                continue
            maximizer, support = solved
            value[inside] = maximizer.value
            if out is not None and support is None:
                maximizer.gradient(out=out)
            elif out is not None and support is not None:
                support.scatter(out, maximizer.gradient())

    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        for piece, inside in self._pieces(rows, theta):
            solved = self._solve(piece, theta[inside], y_star[inside], scratch)
            if solved is None:
                self._core.maximize(piece, theta[inside], y_star[inside], scratch)
            else:
                _put(y_star[inside], solved[1], solved[0].p)

    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        for piece, inside in self._pieces(rows, theta):
            solved = self._solve(piece, theta[inside], d[inside], scratch)
            if solved is None:
                self._core.curvature(piece, theta[inside], d[inside], scratch)
            else:
                _put(d[inside], solved[1], solved[0].curvature())

    def _pieces(self, rows: slice, theta: FloatArray) -> Iterator[tuple[slice, slice]]:
        """The block, or smaller ones for dense targets; each also counted from its start."""
        if isinstance(self.targets, SparseTargets):
            yield rows, slice(0, len(theta))
            return
        for piece in pieces(rows, theta.shape[1], theta.itemsize, _DENSE_BYTES):
            yield piece, slice(piece.start - rows.start, piece.stop - rows.start)

    @property
    def _core(self) -> CoreRows:
        return CoreRows(self.targets, self.loss)

    def _solve(
        self, rows: slice, theta: FloatArray, out: FloatArray | None, scratch: Scratch
    ) -> tuple[Maximizer, Support | None] | None:
        """The maximiser at the support, or at all of a block without zeros.

        Off the support the maximiser goes to ``out``. None leaves the block to the core.
        """
        support, y = self._support(rows, scratch)
        if support is not None:
            maximizer = self._solve_support(support, theta, out, scratch)
        else:
            maximizer = self._solve_block(y, theta, scratch)
        return None if maximizer is None else (maximizer, support)

    def _support(self, rows: slice, scratch: Scratch) -> tuple[Support | None, FloatArray]:
        if isinstance(self.targets, SparseTargets):
            support = self.targets.support(rows)
            return support, support.y
        y = self.targets.dense(rows, scratch)
        if y.min(initial=1) > 0:
            return None, y
        support = support_of(y)
        return support, support.y

    def _solve_support(
        self, support: Support, theta: FloatArray, out: FloatArray | None, scratch: Scratch
    ) -> Maximizer | None:
        y = support.y
        top, e = exponentials(theta, out, scratch)
        t = support.gather(theta)
        t -= support.spread(top)
        own = support.gather(e)
        support.scatter(e, 0)
        rest = np.add.reduce(e, axis=1)
        total = rest + support.total(own)
        if not t.min(initial=0) > _LOWEST:
            return None
        if self.loss.tightness == 0:
            log_total = np.log(total)
            if out is not None:
                np.multiply(e, (1 / total)[:, None], out=out)
            t -= support.spread(log_total)
            own /= support.spread(total)
            value = support.total(_kl_terms(y, t, own)) + rest / total
            return Maximizer(value, y, own, None)
        root = _omega.solve(t, y, rest, np.log(total), support, scratch)
        if root is None:
            return None
        factor = np.exp(-root.lam)
        if out is not None:
            np.multiply(e, factor[:, None], out=out)
        # with the targets that the root has, p − y and 1 − ω have one sign
        terms = (root.p - root.y) * (1 - root.omega)
        return Maximizer(support.total(terms) + rest * factor, y, root.p, root.omega)

    def _solve_block(self, y: FloatArray, theta: FloatArray, scratch: Scratch) -> Maximizer | None:
        top = np.maximum.reduce(theta, axis=1)
        t = scratch.array("t", theta.shape, theta.dtype)
        np.subtract(theta, top[:, None], out=t)
        if not t.min(initial=0) > _LOWEST:
            return None
        block = Block()
        if self.loss.tightness == 0:
            p = scratch.array("p", theta.shape, theta.dtype)
            np.exp(t, out=p)
            total = np.add.reduce(p, axis=1)
            np.multiply(p, (1 / total)[:, None], out=p)
            np.subtract(t, np.log(total)[:, None], out=t)
            return Maximizer(block.total(_kl_terms(y, t, p)), y, p, None)
        e = scratch.array("e32", theta.shape, np.float32)
        np.copyto(e, t, casting="same_kind")
        np.exp(e, out=e)
        lse = np.log(np.add.reduce(e, axis=1).astype(theta.dtype))
        root = _omega.solve(t, y, np.zeros_like(top), lse, block, scratch)
        if root is None:
            return None
        # (p − y)(1 − ω), two numbers of one sign
        np.subtract(root.p, root.y, out=t)
        slack = scratch.array("slack", theta.shape, theta.dtype)
        np.subtract(1, root.omega, out=slack)
        return Maximizer(row_dot(t, slack), y, root.p, root.omega)


def _put(out: FloatArray, support: Support | None, values: FloatArray) -> None:
    if support is None:
        out[...] = values
    else:
        support.scatter(out, values)


def _kl_terms(y: FloatArray, log_p: FloatArray, p: FloatArray) -> FloatArray:
    """The core's terms y log(y/p) − y + p at y > 0, with the series only where it is needed."""
    ratio = log_p - np.log(y)
    terms = p - y * (1 + ratio)
    near = np.flatnonzero(np.abs(ratio) < 0.5)
    if len(near):
        terms.reshape(-1)[near] = kl_terms(
            y.reshape(-1)[near], log_p.reshape(-1)[near], p.reshape(-1)[near]
        )
    return np.asarray(terms)
