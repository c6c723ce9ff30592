"""What a loss has to say about one block of rows, and the core's way of saying it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ..regularizers._base import SeparableSolution
from ._blocks import FloatArray, Scratch
from ._targets import Targets

if TYPE_CHECKING:  # the losses call the engines, which need no more of a loss than its methods
    from ..losses import Loss

T = TypeVar("T", bound=Targets)


@dataclass(frozen=True)
class Rows(ABC, Generic[T]):
    """One loss at targets of one form, block by block.

    Every method gets a block of the scores, (r, k) in any memory order, and the slice of rows that
    it covers. The arrays to write into may be any view, and hold no defined values before.
    """

    targets: T

    @abstractmethod
    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        """Write the loss of each row, and the gradient where one is wanted."""

    @abstractmethod
    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        """Write the maximiser."""

    @abstractmethod
    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        """Write d, the derivative of the maximiser's entries in s = θ − τ."""


@dataclass(frozen=True)
class CoreRows(Rows[Targets]):
    """The core on one block after the other, for any separable loss and any form of targets."""

    loss: "Loss"

    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        y = self.targets.dense(rows, scratch)
        solution = self.loss.solve(y, theta)
        value[...] = solution.value()
        if gradient is not None:
            np.subtract(solution.y_star, y, out=gradient)

    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        y_star[...] = self.loss.solve(self.targets.dense(rows, scratch), theta).y_star

    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        solution = self.loss.solve(self.targets.dense(rows, scratch), theta)
        if isinstance(solution, SeparableSolution):
            d[...] = solution.kernel.point(solution.s)[1]
        else:
            d[...] = 0  # the perceptron's maximiser is locally constant
