"""A loss bound to its targets: checked and prepared once, evaluated at many scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._array import quiet
from ._blocks import FloatArray, Scratch, for_each_block
from ._rows import Rows
from ._targets import Targets

if TYPE_CHECKING:
    from ..losses import Loss

Out = tuple[FloatArray, FloatArray] | None


class HessianOperator(ABC):
    """The Hessian of the loss in θ at one θ, applied to the rows of any number of arrays."""

    @abstractmethod
    def __call__(self, v: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Hessian times v, shape (n, k), into ``out`` if given; ``out`` may be ``v`` itself."""


class BoundLoss(ABC):
    """A loss at fixed targets, for NumPy scores of shape (n, k) and its own dtype, unchecked.

    They may be in any memory order. Buffers given as ``out`` must not overlap the scores.
    """

    @property
    @abstractmethod
    def targets(self) -> Targets:
        """The targets in their own form."""

    @abstractmethod
    def value_and_gradient(
        self, theta: FloatArray, out: Out = None
    ) -> tuple[FloatArray, FloatArray]:
        """The loss of each row, (n,), and its gradient in θ, (n, k), into ``out`` if given."""

    @abstractmethod
    def value(self, theta: FloatArray) -> FloatArray:
        """The loss of each row."""

    @abstractmethod
    def y_star(self, theta: FloatArray) -> FloatArray:
        """The maximiser."""

    @abstractmethod
    def hessian_product(
        self, theta: FloatArray, v: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        """One Hessian product; for several at one θ, :meth:`hessian_operator` is faster."""

    @abstractmethod
    def hessian_operator(self, theta: FloatArray) -> HessianOperator:
        """The Hessian at θ: the curvature is computed here, once."""


def _apply(d: FloatArray, v: FloatArray, total: FloatArray | None, out: FloatArray) -> None:
    """Write d ⊙ (v − ⟨d, v⟩/⟨d, 1⟩), or d ⊙ v where the rows are not coupled."""
    if total is None:
        np.multiply(d, v, out=out)
        return
    mean = np.einsum("ij,ij->i", d, v) / total
    np.subtract(v, mean[:, None], out=out)
    np.multiply(out, d, out=out)


@dataclass(frozen=True, eq=False)
class BlockedHessian(HessianOperator):
    """The curvature d of every entry, and its row sums where the rows are coupled."""

    d: FloatArray
    total: FloatArray | None
    n_threads: int

    def __call__(self, v: FloatArray, out: FloatArray | None = None) -> FloatArray:
        product = np.empty_like(self.d) if out is None else out

        def work(rows: slice, _: Scratch) -> None:
            total = None if self.total is None else self.total[rows]
            _apply(self.d[rows], v[rows], total, product[rows])

        for_each_block(self.d.shape, self.d.itemsize, self.n_threads, work)
        return product


@dataclass(frozen=True, eq=False)
class BlockedLoss(BoundLoss):
    """Row blocks on several threads."""

    rows: Rows[Any]
    coupled: bool
    n_threads: int

    @property
    def targets(self) -> Targets:
        return self.rows.targets  # type: ignore[no-any-return]  # rows of any targets

    def _for_each_block(self, work: Callable[[slice, Scratch], None]) -> None:
        targets = self.targets
        n_threads = self.n_threads if self.rows.is_threaded else 1
        for_each_block(
            targets.shape, targets.dtype.itemsize, n_threads, work, self.rows.block_bytes
        )

    def value_and_gradient(
        self, theta: FloatArray, out: Out = None
    ) -> tuple[FloatArray, FloatArray]:
        if out is None:
            out = np.empty(len(theta), dtype=theta.dtype), np.empty_like(theta)
        value, gradient = out
        self._for_each_block(
            lambda rows, scratch: self.rows.evaluate(
                rows, theta[rows], value[rows], gradient[rows], scratch
            )
        )
        return value, gradient

    def value(self, theta: FloatArray) -> FloatArray:
        value = np.empty(len(theta), dtype=theta.dtype)
        self._for_each_block(
            lambda rows, scratch: self.rows.evaluate(rows, theta[rows], value[rows], None, scratch)
        )
        return value

    def y_star(self, theta: FloatArray) -> FloatArray:
        y_star = np.empty_like(theta)
        self._for_each_block(
            lambda rows, scratch: self.rows.maximize(rows, theta[rows], y_star[rows], scratch)
        )
        return y_star

    def hessian_product(
        self, theta: FloatArray, v: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        product = np.empty_like(theta) if out is None else out

        def work(rows: slice, scratch: Scratch) -> None:
            d = scratch.array("d", theta[rows].shape, theta.dtype)
            self.rows.curvature(rows, theta[rows], d, scratch)
            _apply(d, v[rows], d.sum(axis=1) if self.coupled else None, product[rows])

        self._for_each_block(work)
        return product

    def hessian_operator(self, theta: FloatArray) -> HessianOperator:
        d = np.empty_like(theta)
        total = np.empty(len(theta), dtype=theta.dtype) if self.coupled else None

        def work(rows: slice, scratch: Scratch) -> None:
            self.rows.curvature(rows, theta[rows], d[rows], scratch)
            if total is not None:
                np.add.reduce(d[rows], axis=1, out=total[rows])

        self._for_each_block(work)
        return BlockedHessian(d, total, self.n_threads)


@dataclass(frozen=True, eq=False)
class CoreHessian(HessianOperator):
    """The product of a solution of the core."""

    product: Callable[[FloatArray], FloatArray]

    @quiet
    def __call__(self, v: FloatArray, out: FloatArray | None = None) -> FloatArray:
        return _deliver(self.product(v), out)


@dataclass(frozen=True, eq=False)
class CoreLoss(BoundLoss):
    """The core on all rows at once: any set, any regulariser, in one thread."""

    loss: "Loss"
    bound_targets: Targets

    @property
    def targets(self) -> Targets:
        return self.bound_targets

    def _dense(self) -> FloatArray:
        return self.targets.dense(slice(0, self.targets.shape[0]), Scratch())

    @quiet
    def value_and_gradient(
        self, theta: FloatArray, out: Out = None
    ) -> tuple[FloatArray, FloatArray]:
        y = self._dense()
        solution = self.loss.solve(y, theta)
        value, gradient = (None, None) if out is None else out
        return _deliver(solution.value(), value), _deliver(solution.gradient(), gradient)

    @quiet
    def value(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.loss.solve(self._dense(), theta).value())

    @quiet
    def y_star(self, theta: FloatArray) -> FloatArray:
        return np.asarray(self.loss.solve(self._dense(), theta).y_star)

    def hessian_product(
        self, theta: FloatArray, v: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        return self.hessian_operator(theta)(v, out)

    @quiet
    def hessian_operator(self, theta: FloatArray) -> HessianOperator:
        return CoreHessian(self.loss.solve(self._dense(), theta).hessian_product)


def _deliver(result: FloatArray, out: FloatArray | None) -> FloatArray:
    if out is None:
        return result
    out[...] = result
    return out
