"""Blocks of a row of proportions that is too wide for registers, as they are stored and loaded.

A group is what a thread loads at once, ``o.lanes`` entries. Eight of half precision come as four
words, and are taken apart into four even and four odd ones, so that registers hold the sums of one
half at a time.

``given`` is a tuple that says where the row's targets are: a pointer ("rows"); or, for smoothed
labels ("smoothed"), the label, what each class has, and what the label has on top of that; and, for
classes with weights ("weighted"), also a pointer to these weights.
"""

import triton
import triton.language as tl


@triton.jit
def inside_row(block, groups, o: tl.constexpr):
    """Which groups of a block are in the row."""
    return block * o.groups + tl.arange(0, o.groups) < groups


@triton.jit
def columns_of(block, o: tl.constexpr):
    """The groups of a block, and the columns of their lanes."""
    group = block * o.groups + tl.arange(0, o.groups)
    return group, group[:, None] * o.lanes + tl.arange(0, o.lanes)[None, :]


@triton.jit
def store_block(out, cols, x, inside, o: tl.constexpr):
    """Write a block of a row, which nothing reads again."""
    if o.even:
        tl.store(out + cols, x, cache_modifier=".cs")
    else:
        tl.store(out + cols, x, mask=inside[:, None], cache_modifier=".cs")


@triton.jit
def load(source, block, groups, o: tl.constexpr, AGAIN: tl.constexpr):
    """A block as it is stored, 0 outside of the row; the cache keeps it if it is read AGAIN."""
    POLICY: tl.constexpr = "evict_last" if AGAIN else "evict_first"
    KIND: tl.constexpr = source.dtype.element_ty
    WORDS: tl.constexpr = o.lanes == 8 and (KIND == tl.bfloat16 or KIND == tl.float16)
    WIDTH: tl.constexpr = 4 if WORDS else o.lanes
    group = block * o.groups + tl.arange(0, o.groups)
    cols = group[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    if WORDS:
        at = source.to(tl.pointer_type(tl.int32), bitcast=True) + cols
    else:
        at = source + cols
    if o.even:
        return tl.load(at, eviction_policy=POLICY)
    else:
        return tl.load(at, mask=(group < groups)[:, None], other=0, eviction_policy=POLICY)


@triton.jit
def load_targets(given, block, groups, o: tl.constexpr, AGAIN: tl.constexpr):
    """A block of what is stored of the targets."""
    if o.target == "smoothed":
        return tl.zeros((o.groups, 1), tl.int32)
    elif o.target == "weighted":
        return load(given[3], block, groups, o, AGAIN)
    else:
        return load(given[0], block, groups, o, AGAIN)


@triton.jit
def load_both(scores, given, block, groups, o: tl.constexpr, AGAIN: tl.constexpr):
    """A block of scores and targets."""
    x = load(scores, block, groups, o, AGAIN)
    return x, load_targets(given, block, groups, o, AGAIN)


@triton.jit
def half(block, which: tl.constexpr, source, o: tl.constexpr):
    """The even entries (0) of a block, or the odd ones (1); fewer than 8 lanes have even ones."""
    KIND: tl.constexpr = source.dtype.element_ty
    if o.lanes != 8:
        out = block
    elif block.dtype != tl.int32:
        out, odd = tl.split(tl.reshape(block, (block.shape[0], 4, 2)))
        if which == 1:
            out = odd
    elif KIND == tl.bfloat16:
        out = (block << 16 if which == 0 else block & -65536).to(tl.float32, bitcast=True)
    else:
        out = (block if which == 0 else block >> 16).to(tl.int16).to(KIND, bitcast=True)
    return out.to(o.acc)


@triton.jit
def join_halves(even, odd, o: tl.constexpr):
    """The two halves of a block together."""
    if o.lanes == 8:
        return tl.reshape(tl.join(even, odd), (o.groups, o.lanes))
    else:
        return even


@triton.jit
def targets_of_row(target, labels, mix, row, inside, target_groups, o: tl.constexpr):
    """Where the targets of a row are, or of several, as columns."""
    if o.target == "rows":
        return (target + row * target_groups * o.lanes,)
    else:
        label = tl.load(labels + row, mask=inside, other=-1).to(tl.int32)
        share = tl.load(mix + 2 * row, mask=inside, other=0.0)
        own = tl.load(mix + 2 * row + 1, mask=inside, other=0.0)
        if o.target == "weighted":
            return label, share, own, target
        else:
            return label, share, own


@triton.jit
def _smoothed(base, cols, given, o: tl.constexpr):
    """Smoothed labels: the row's share of the base, and its own at the label."""
    return (base * given[1] + tl.where(cols == given[0], given[2], 0.0)).to(o.acc)


@triton.jit
def targets_at(given, cols, mask, o: tl.constexpr):
    """The targets in some columns, 0 where masked."""
    if o.target == "rows":
        return tl.load(given[0] + cols, mask=mask, other=0.0).to(o.acc)
    else:
        base = 1.0
        if o.target == "weighted":
            base = tl.load(given[3] + cols, mask=mask, other=0.0).to(o.acc)
        return tl.where(mask, _smoothed(base, cols, given, o), 0.0)


@triton.jit
def targets_of_half(stored, which: tl.constexpr, given, block, o: tl.constexpr):
    """The targets of half a block."""
    if o.target == "rows":
        return half(stored, which, given[0], o)
    else:
        HALVES: tl.constexpr = 2 if o.lanes == 8 else 1
        group = block * o.groups + tl.arange(0, o.groups)
        cols = group[:, None] * o.lanes + tl.arange(0, o.lanes // HALVES)[None, :] * HALVES + which
        base = 1.0
        if o.target == "weighted":
            base = half(stored, which, given[3], o)
        return _smoothed(base, cols, given, o)


@triton.jit
def write_zeros(out, groups, o: tl.constexpr):
    """The gradient of a row that does not count."""
    zero = tl.zeros((o.groups, o.lanes), out.dtype.element_ty)
    for block in range(tl.cdiv(groups, o.groups)):
        group, cols = columns_of(block, o)
        tl.store(out + cols, zero, mask=(group < groups)[:, None], cache_modifier=".cs")
