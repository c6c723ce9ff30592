"""What a loss has to say about one block of rows, and the core's way of saying it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ..regularizers import SeparableRegularizer, Solution
from ._blocks import BLOCK_BYTES, FloatArray, Scratch, pieces
from ._output import Output
from ._targets import Labels, Support, TargetForm

if TYPE_CHECKING:  # the losses call the engines, which need no more of a loss than its methods
    from ..losses import Loss


class BlockTask(NamedTuple):
    """What is asked about one block of rows.

    Attributes:
        output: which array to write.
        rows: the rows that the block covers.
        theta: their scores, (r, k) in any memory order.
        value: any view of r numbers, for the loss of each row; it goes with the gradient.
        out: any view of the shape of the scores, for the output.
        scratch: buffers.
    """

    output: Output
    rows: slice
    theta: FloatArray
    value: FloatArray | None
    out: FloatArray | None
    scratch: Scratch

    def part(self, inside: slice) -> "BlockTask":
        """The same about some of the rows, counted from the start of the block."""
        return self._replace(
            rows=slice(self.rows.start + inside.start, self.rows.start + inside.stop),
            theta=self.theta[inside],
            value=None if self.value is None else self.value[inside],
            out=None if self.out is None else self.out[inside],
        )


@dataclass(frozen=True, eq=False)
class RowKernel(ABC):
    """One loss at targets of one form, block by block."""

    loss: "Loss"
    targets: TargetForm

    # how large a block should be, and whether several threads gain on one
    block_bytes: ClassVar[int] = BLOCK_BYTES
    is_threaded: ClassVar[bool] = True

    @abstractmethod
    def compute(self, task: BlockTask) -> None:
        """Write what is asked for about a block."""


def write_slope(loss: "Loss", y: Support | FloatArray, p: FloatArray) -> None:
    """Replace maximizers by their slopes, at dense targets or at the support of sparse ones."""
    omega, c = loss.regularizer, loss.tightness
    assert isinstance(omega, SeparableRegularizer)
    if isinstance(y, Support):
        own = omega.slope(y.gather(p), y.y, c)
        p[...] = omega.slope(p, np.zeros_like(p[:, :1]), c)
        y.scatter(p, own)
    else:
        p[...] = omega.slope(p, y, c)


# The core makes some twenty arrays of the size of its input.
PIECE_BYTES = 1 << 17


@dataclass(frozen=True, eq=False)
class CoreKernel(RowKernel):
    """The core on one piece of a block after the other, for any row-wise loss and any targets."""

    # many short calls of NumPy: two threads wait for each other, and are slower than one
    is_threaded: ClassVar[bool] = False

    def _solve(
        self, rows: slice, theta: FloatArray, scratch: Scratch
    ) -> Iterator[tuple[slice, Solution]]:
        """Pieces of the block, counted from its start, and their solutions."""
        for piece in pieces(rows, theta.shape[1], theta.itemsize, PIECE_BYTES):
            inside = slice(piece.start - rows.start, piece.stop - rows.start)
            if isinstance(self.targets, Labels):
                yield inside, self.loss.solve_labels(self.targets.labels[piece], theta[inside])
            else:
                y = self.targets.dense(piece, scratch)
                yield inside, self.loss.solve(y, theta[inside])

    def compute(self, task: BlockTask) -> None:
        output, rows, theta, value, out, scratch = task
        for piece, solution in self._solve(rows, theta, scratch):
            if value is not None:
                value[piece] = solution.value()
            if out is None:
                continue
            if output == Output.GRADIENT:
                out[piece] = solution.gradient()
            elif output == Output.Y_STAR:
                out[piece] = solution.y_star
            else:
                out[piece] = solution.slope()
