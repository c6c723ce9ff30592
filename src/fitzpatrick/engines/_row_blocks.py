"""A loss at fixed targets, by blocks of rows on several threads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._blocks import FloatArray, Scratch, for_each_block
from ._bound import BoundLoss, HessianOperator, Out
from ._output import Output
from ._row_kernel import BlockTask, RowKernel


def _multiply(d: FloatArray, total: FloatArray | None, v: FloatArray, out: FloatArray) -> None:
    """Write d ⊙ (v − ⟨d, v⟩/⟨d, 1⟩), or d ⊙ v where the rows are not coupled."""
    if total is None:
        np.multiply(d, v, out=out)
        return
    mean = np.einsum("ij,ij->i", d, v) / total
    np.subtract(v, mean[:, None], out=out)
    np.multiply(out, d, out=out)


@dataclass(frozen=True, eq=False)
class BlockHessian(HessianOperator):
    """The slope of every entry, and its row sums where the rows are coupled."""

    d: FloatArray
    total: FloatArray | None
    n_threads: int

    def __call__(self, v: FloatArray, out: FloatArray | None = None) -> FloatArray:
        product = np.empty_like(self.d) if out is None else out

        def work(rows: slice, _: Scratch) -> None:
            total = None if self.total is None else self.total[rows]
            _multiply(self.d[rows], total, v[rows], product[rows])

        for_each_block(self.d.shape, self.d.itemsize, self.n_threads, work)
        return product


@dataclass(frozen=True, eq=False)
class RowBlocks(BoundLoss):
    """NumPy scores of the dtype of the targets."""

    kernel: RowKernel
    n_threads: int

    def _for_each_block(self, work: Callable[[slice, Scratch], None]) -> None:
        kernel = self.kernel
        for_each_block(
            kernel.targets.shape,
            kernel.targets.dtype.itemsize,
            self.n_threads if kernel.is_threaded else 1,
            work,
            kernel.block_bytes,
        )

    def _compute(
        self, output: Output, theta: FloatArray, value: FloatArray | None, out: FloatArray | None
    ) -> None:
        def work(rows: slice, scratch: Scratch) -> None:
            whole = BlockTask(output, slice(0, len(theta)), theta, value, out, scratch)
            self.kernel.compute(whole.part(rows))

        self._for_each_block(work)

    def value(self, theta: FloatArray) -> FloatArray:
        value = np.empty(len(theta), dtype=theta.dtype)
        self._compute(Output.GRADIENT, theta, value, None)
        return value

    def value_and_gradient(
        self, theta: FloatArray, out: Out = None
    ) -> tuple[FloatArray, FloatArray]:
        if out is None:
            out = np.empty(len(theta), dtype=theta.dtype), np.empty_like(theta)
        self._compute(Output.GRADIENT, theta, *out)
        return out

    def y_star(self, theta: FloatArray) -> FloatArray:
        y_star = np.empty_like(theta)
        self._compute(Output.Y_STAR, theta, None, y_star)
        return y_star

    @property
    def _is_coupled(self) -> bool:
        return self.kernel.loss.regularizer.is_coupled

    def hessian_operator(
        self, theta: FloatArray, reach: FloatArray | None = None
    ) -> HessianOperator:
        if not self.kernel.loss.regularizer.has_mean_slope:
            reach = None
        d = np.empty_like(theta)
        total = np.empty(len(theta), dtype=theta.dtype) if self._is_coupled else None

        def work(rows: slice, scratch: Scratch) -> None:
            output = Output.SLOPE if reach is None else Output.Y_STAR
            self.kernel.compute(BlockTask(output, rows, theta[rows], None, d[rows], scratch))
            if reach is not None:
                self._average_slopes(rows, theta[rows], reach[rows], d[rows], scratch)
            if total is not None:
                np.add.reduce(d[rows], axis=1, out=total[rows])

        self._for_each_block(work)
        return BlockHessian(d, total, self.n_threads)

    def _average_slopes(
        self, rows: slice, theta: FloatArray, reach: FloatArray, p: FloatArray, scratch: Scratch
    ) -> None:
        """Write mean slopes over the maximizers p of a block."""
        omega: Any = self.kernel.loss.regularizer
        y = self.kernel.targets.dense(rows, scratch)
        p[...] = omega.mean_slope(p, y, self.kernel.loss.tightness, theta, reach[:, None])

    def hessian_product(
        self, theta: FloatArray, v: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        product = np.empty_like(theta) if out is None else out

        def work(rows: slice, scratch: Scratch) -> None:
            d = scratch.array("d", theta[rows].shape, theta.dtype)
            self.kernel.compute(BlockTask(Output.SLOPE, rows, theta[rows], None, d, scratch))
            total = np.add.reduce(d, axis=1) if self._is_coupled else None
            _multiply(d, total, v[rows], product[rows])

        self._for_each_block(work)
        return product
