"""What a loss has to say about one block of rows, and the core's way of saying it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import numpy as np

from ..regularizers import Solution
from ._blocks import BLOCK_BYTES, FloatArray, Scratch, pieces
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

    # how large a block should be, and whether several threads gain on one
    block_bytes: ClassVar[int] = BLOCK_BYTES
    is_threaded: ClassVar[bool] = True

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


# The core makes some twenty arrays of the size of its input.
_PIECE_BYTES = 1 << 17


@dataclass(frozen=True)
class CoreRows(Rows[Targets]):
    """The core on one piece of a block after the other, for any separable loss and any targets."""

    loss: "Loss"

    # many short calls of NumPy: two threads wait for each other, and are slower than one
    is_threaded: ClassVar[bool] = False

    def _solve(
        self, rows: slice, theta: FloatArray, scratch: Scratch
    ) -> Iterator[tuple[slice, FloatArray, Solution]]:
        """Pieces of the block, counted from its start, with y and the solution."""
        for piece in pieces(rows, theta.shape[1], theta.itemsize, _PIECE_BYTES):
            y = self.targets.dense(piece, scratch)
            inside = slice(piece.start - rows.start, piece.stop - rows.start)
            yield inside, y, self.loss.solve(y, theta[inside])

    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        for piece, y, solution in self._solve(rows, theta, scratch):
            value[piece] = solution.value()
            if gradient is not None:
                np.subtract(solution.y_star, y, out=gradient[piece])

    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        for piece, _, solution in self._solve(rows, theta, scratch):
            y_star[piece] = solution.y_star

    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        for piece, _, solution in self._solve(rows, theta, scratch):
            d[piece] = solution.slope()
