"""Row weights: what multiplies the loss of each row, and the upstream gradient, in place.

The weight of a row is an entry of a tensor ("each"), or one over a number that all rows share
("shared"), or one over the number of labels that count ("counted"), which :func:`count_labels`
leaves in a few parts.
"""

import triton
import triton.language as tl


@triton.jit
def row_weight(scale, row, inside, scale_stride, divisor, o: tl.constexpr):
    """The weights of rows, 0 outside of the batch; ∞ for a mean over no label."""
    if o.scale == "each":
        return tl.load(scale + row * scale_stride, mask=inside, other=0.0).to(o.acc)
    elif o.scale == "counted":
        total = tl.sum(tl.load(scale + tl.arange(0, o.parts)), axis=0).to(o.acc)
        return tl.where(inside, 1.0 / total, 0.0)
    else:
        return tl.where(inside, 1.0 / (tl.full((), 1.0, o.acc) * divisor), 0.0)


@triton.jit
def label_and_weight(
    target, scale, row, inside, scale_stride, divisor, ignore_index, o: tl.constexpr
):
    """The labels of rows, their weights, and which of the rows count."""
    label = tl.load(target + row, mask=inside, other=ignore_index)
    weight = row_weight(scale, row, inside, scale_stride, divisor, o)
    return label, weight, (label != ignore_index) & (weight != 0)


@triton.jit
def count_labels(labels, counts, n, ignore_index, BLOCK: tl.constexpr):
    """How many labels are not ``ignore_index``; each program leaves the count of its part."""
    total = tl.zeros((BLOCK,), tl.int32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = tl.arange(0, BLOCK).to(tl.int64) + first
        label = tl.load(labels + at, mask=at < n, other=ignore_index)
        total += (label != ignore_index).to(tl.int32)
    tl.store(counts + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def scale_rows(
    rows, factors, n, k, factor_stride, ROWS: tl.constexpr, BLOCK: tl.constexpr, ACC: tl.constexpr
):
    """Multiply ROWS rows a program, split into column blocks over the second grid axis.

    Rows are touched only where some factor is not one.
    """
    first = tl.program_id(0).to(tl.int64) * ROWS
    row = first + tl.arange(0, ROWS)
    factor = tl.load(factors + row * factor_stride, mask=row < n, other=1.0)
    if tl.max(tl.where(factor == 1.0, 0, 1), axis=0) > 0:
        last = tl.minimum(first + ROWS, n)
        for i in range(first, last):
            one = tl.load(factors + i * factor_stride).to(ACC)
            at = rows + i * k
            for start in range(tl.program_id(1) * BLOCK, k, tl.num_programs(1) * BLOCK):
                cols = tl.arange(0, BLOCK).to(tl.int64) + start
                x = tl.load(at + cols, mask=cols < k, other=0.0).to(ACC)
                tl.store(at + cols, (x * one).to(rows.dtype.element_ty), mask=cols < k)
