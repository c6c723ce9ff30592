"""A kernel that multiplies rows in place, and touches none where every factor is one."""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

__all__ = ["scale_rows"]


@triton.jit
def scale_rows(
    rows,
    factors,
    n,
    k,
    factor_stride,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    ACC: tl.constexpr,
):
    """ROWS rows a program; the second grid axis deals their column blocks out."""
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = first + tl.arange(0, ROWS)
    factor = tl.load(factors + row * factor_stride, mask=row < n, other=1.0)
    if tl.max(tl.where(factor == 1.0, 0, 1), axis=0) > 0:
        last = tl.minimum(first + ROWS, n)
        for i in range(first, last):
            one = tl.load(factors + i * factor_stride).to(ACC)
            at = rows + i * k
            for start in range(tl.program_id(1) * BLOCK, k, tl.num_programs(1) * BLOCK):
                cols = start + tl.arange(0, BLOCK)
                x = tl.load(at + cols, mask=cols < k, other=0.0).to(ACC)
                tl.store(at + cols, (x * one).to(rows.dtype.element_ty), mask=cols < k)
