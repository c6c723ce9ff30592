"""What the kernels share: blocks in the memory layout they know, and the core for the rest."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._blocks import FloatArray, Scratch
from .._rows import CoreRows, Rows
from .._targets import TargetForm
from ._lists import usable
from ._what import CURVATURE, GRADIENT, Y_STAR

if TYPE_CHECKING:
    from ...losses import Loss


@dataclass(frozen=True)
class CompiledRows(Rows[TargetForm]):
    """Rows of one loss through a kernel, which computes in float64 whatever the scores are.

    A kernel leaves NaN as the loss of a row that holds something it does not know. The core
    computes that row, and all between the first and the last such row of a block.
    """

    loss: "Loss"

    block_bytes: ClassVar[int] = 1 << 20

    @abstractmethod
    def _call(
        self,
        rows: slice,
        theta: FloatArray,
        what: int,
        value: FloatArray,
        out: FloatArray,
        scratch: Scratch,
    ) -> None:
        """Call the kernel on contiguous arrays that may be written to."""

    def evaluate(
        self,
        rows: slice,
        theta: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        self._solve(GRADIENT, rows, theta, value, gradient, scratch)

    def maximize(
        self, rows: slice, theta: FloatArray, y_star: FloatArray, scratch: Scratch
    ) -> None:
        self._solve(Y_STAR, rows, theta, None, y_star, scratch)

    def curvature(self, rows: slice, theta: FloatArray, d: FloatArray, scratch: Scratch) -> None:
        self._solve(CURVATURE, rows, theta, None, d, scratch)

    def _solve(
        self,
        what: int,
        rows: slice,
        theta: FloatArray,
        value: FloatArray | None,
        out: FloatArray | None,
        scratch: Scratch,
    ) -> None:
        theta = usable(theta)
        own_value = _buffer(value, "value", theta.shape[:1], theta.dtype, scratch)
        own_out = _buffer(out, "out", theta.shape, theta.dtype, scratch)
        self._call(rows, theta, what, own_value, own_out, scratch)
        bad = np.flatnonzero(np.isnan(own_value))
        if len(bad):
            part = slice(int(bad[0]), int(bad[-1]) + 1)
            self._core(what, rows, part, theta, own_value, own_out, scratch)
        if value is not None and value is not own_value:
            value[...] = own_value
        if out is not None and out is not own_out:
            out[...] = own_out

    def _core(
        self,
        what: int,
        rows: slice,
        part: slice,
        theta: FloatArray,
        value: FloatArray,
        out: FloatArray,
        scratch: Scratch,
    ) -> None:
        core = CoreRows(self.targets, self.loss)
        at = slice(rows.start + part.start, rows.start + part.stop)
        if what == GRADIENT:
            core.evaluate(at, theta[part], value[part], out[part], scratch)
        elif what == Y_STAR:
            core.maximize(at, theta[part], out[part], scratch)
        else:
            core.curvature(at, theta[part], out[part], scratch)


def _buffer(
    given: FloatArray | None, name: str, shape: tuple[int, ...], dtype: Any, scratch: Scratch
) -> FloatArray:
    """What was given, if a kernel can write into it."""
    if given is not None and given.flags.carray:
        return given
    return scratch.array(f"compiled {name}", shape, dtype)
