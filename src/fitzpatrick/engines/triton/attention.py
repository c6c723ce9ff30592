r"""Kernels of entmax attention for α = 1.5 and α = 2, with one dense pass over the keys.

Scores are t = βs⟨q, k⟩, so that the weights are p = (t − τ)₊² for α = 1.5 and (t − τ)₊ for α = 2;
their sum f(τ) is one at the root, its slope is −2Σd or −Σd, with d = (t − τ)₊ or 1 where that is
positive.

1. A *scan* of all keys finds the largest scores, and guesses τ: f and its slope stand for the keys
   seen so far, and where f is above one, τ rises by the model f ∝ (top − τ)^m, whose m they
   determine. Each query notes the blocks whose largest score is not below its τ by a margin. At the
   end those are listed that are not below the last τ of some query by the margin.
2. The sums over listed blocks are exact at the guess. A Newton step on a convex function of τ is a
   lower bound, and a model is a better guess, with an error of about the square of the last step.
   Should the bound not cover what was left out, all blocks are listed.
3. The *output* Σpv is summed over the blocks that are not below the bound, and divided by Σp. Where
   that is too far from one, the pass is repeated.

Programs take blocks of queries one after another, from a counter, the largest first. Blocks of keys
with a weight are bits that the backward pass reads. The keys that a query sees are an
interval, which starts and ends no earlier than that of the query before. A mask hides more of them
(``o.mask`` is "seen") or is added to the scores ("added"), and slopes take the distance of query
and key off them.

``given`` holds what a block of queries reads: its keys and values, the interval, what is added to
the scores, the factor that makes t of them (β, or βs if nothing is added), and the number of keys;
``blocks`` where its blocks of keys are listed.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's language is not Python to a type checker

import triton
import triton.language as tl

from .math import exp2, log2

# How far below the guess of τ a block of keys may be and still be read, and how much more than one
# the first sum of weights shall be: a guess that is too high takes another pass.
_MARGIN, _LOWER = tl.constexpr(0.1), tl.constexpr(0.12)
# The relative error of scores in single precision, with room for that of their bound.
_SLACK = tl.constexpr(1e-6)
_MAX_STEPS, _MAX_OUTPUTS = tl.constexpr(24), tl.constexpr(3)
# The rounding error of a sum of weights in single precision.
_NOISE = tl.constexpr(8e-6)
# Of the model of f: the logarithm of the largest m, and how much faster than m its exponent rises
# by which the slope falls.
_MAX_LOG_EXPONENT, _FALL = tl.constexpr(6.0), tl.constexpr(1.4)
# How many pairs of blocks of keys a query notes, with their largest scores, in four words each.
MAX_NOTED = 16
_MAX_NOTED = tl.constexpr(MAX_NOTED)
# What does not change the compiled code, so that a new length needs none.
_SIZES = ["n", "n_keys", "groups", "n_words", "n_items", "n_heads", "n_key_heads", "n_query_blocks"]
_SIZES += ["n_scratch", "mask_stride"]
# Rows of masks begin at multiples of this, so that their elements are read together.
MASK_UNIT = 16
_MASK_UNIT = tl.constexpr(MASK_UNIT)
_SPANS = ["starts", "ends", "levels", "taken"]
# Blocks of keys that are sought in marks at once.
_CHUNK = tl.constexpr(128)


@triton.jit
def _rows_of(x, rows, width: tl.constexpr, padded: tl.constexpr):
    """Rows of a matrix, with zeros beyond its width."""
    e = tl.arange(0, padded)
    at = x + rows[:, None] * width + e[None, :]
    if padded == width:
        return tl.load(at)
    return tl.load(at, mask=(e < width)[None, :], other=0.0)


@triton.jit
def _max_or_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _load_bias(mask, mask_starts, mask_stride, slopes, scales, scale, head, o: tl.constexpr):
    """The head's scale, what :func:`_biased` reads, and the factor that takes its result to t."""
    slope = 0.0
    if o.has_scales:
        scale *= tl.load(scales + head)
    if o.mask != "":
        mask += tl.load(mask_starts + head) * _MASK_UNIT
    if o.has_slopes:
        slope = tl.load(slopes + head)
    factor = scale * o.beta
    if o.mask == "added" or o.has_slopes:
        factor = tl.full([], o.beta, tl.float32)
    return scale, factor, (mask, mask_stride, slope, scale)


@triton.jit
def _biased(r, rows, levels, places, bias, o: tl.constexpr):
    """Scores of ⟨q, k⟩, at rows of queries and places of keys.

    They are not multiplied by the scale if nothing is added to them: ``factor`` has it then.
    """
    mask, stride, slope, scale = bias
    if o.mask == "added" or o.has_slopes:
        r *= scale
    if o.mask != "":
        x = tl.load(mask + rows.to(tl.int64) * (stride * _MASK_UNIT) + places * o.mask_step)
        if o.mask == "seen":
            r = tl.where(x != 0, r, float("-inf"))
        else:
            r += x.to(tl.float32)
    if o.has_slopes:
        r -= slope * tl.abs(places - levels).to(tl.float32)
    return r


@triton.jit
def _read_keys(q, given, places, is_edge: tl.constexpr, o: tl.constexpr):
    """Keys, and their ⟨q, k⟩ with what is added to it, −∞ where a query does not see a key."""
    key, _value, start, end, rows, levels, bias, _factor, n_keys = given
    inside = tl.minimum(places, n_keys - 1) if is_edge else places
    k = _rows_of(key, inside, o.width, o.padded)
    r = tl.dot(q, tl.trans(k), input_precision=o.precision)
    r = _biased(r, rows[:, None], levels[:, None], inside[None, :], bias, o)
    if is_edge:
        is_seen = (places[None, :] >= start[:, None]) & (places[None, :] < end[:, None])
        r = tl.where(is_seen, r, float("-inf"))
    return k, r


@triton.jit
def _read_values(given, places, is_edge: tl.constexpr, o: tl.constexpr):
    """The values at places of keys."""
    rows = tl.minimum(places, given[8] - 1) if is_edge else places
    return _rows_of(given[1], rows, o.value_width, o.value_padded)


@triton.jit
def _excess(r, factor, origin, tau, o: tl.constexpr):
    """(t − τ)₊; if ``o.is_exact``, r and τ are counted from the top, whose digits they keep.

    Only a difference of two scores is then multiplied, which is zero at the top however it is
    rounded.
    """
    return _scaled_excess(r - origin if o.is_exact else r, factor, tau, o)


@triton.jit
def _scaled_excess(r, factor, tau, o: tl.constexpr):
    """(factor r − τ)₊, or one: but for rounding τ is no less than the top less one."""
    if o.fast:
        return tl.inline_asm_elementwise(
            "fma.rn.sat.f32 $0, $1, $2, $3;", "=f,f,f,f", [r, factor, -tau], tl.float32, True, 1
        )
    return tl.minimum(tl.maximum(r * factor - tau, 0.0), 1.0)


@triton.jit
def _terms(s, power: tl.constexpr):
    """p and d."""
    if power == 2:
        return s * s, s
    return s, (s > 0).to(tl.float32)


@triton.jit
def _exponent_of_slope(m, power: tl.constexpr):
    """What power of the room the slope falls by, where f falls by its m-th power.

    It is more than the m − 1 of a true power, since most keys of a crowd are far from its top.
    """
    return tl.minimum(_FALL * (m - power) + (power - 1.0), m)


@triton.jit
def _model(f, slope, room, power: tl.constexpr):
    """How far the root is, by a power that has the first two derivatives of f."""
    m = tl.minimum(tl.maximum(slope * power / f * tl.maximum(room, 1e-6), power), 64.0)
    m /= tl.maximum(1.0 - _exponent_of_slope(m, power) / m, 1.0 / 12)
    return f / slope * (m / power) * (1.0 - tl.exp2(tl.log2(f) / -m))


@triton.jit
def _model_at_top(top, tau, f, slope, n_seen, least, o: tl.constexpr):
    """The model f ∝ (top − τ)^m beside the largest score, and where f is one.

    It is m, the exponent of the slope, the logarithm of the room between τ and top, and the root.
    """
    room = tl.maximum(top - tau, 1e-6)
    log_room, log_f = log2(room, o.fast), log2(tl.maximum(f, 1e-30), o.fast)
    log_slope = log2(tl.maximum(slope, 1e-30), o.fast)
    log_m = log_slope + log_room - log_f + (o.power - 1.0)
    log_m = tl.minimum(tl.maximum(log_m, o.power - 1.0), _MAX_LOG_EXPONENT)
    m = exp2(log_m, o.fast)
    exponent = _exponent_of_slope(m, o.power)
    if o.power == 2:  # the slope's own slope is no more than the number of keys
        log_most = log2(tl.maximum(n_seen.to(tl.float32), 1.0), o.fast) + log_room - log_slope
        exponent = tl.maximum(tl.minimum(exponent, exp2(log_most, o.fast)), 1.0)
    kept = exp2(-tl.maximum(log_f, 0.0) * exp2(-log_m, o.fast), o.fast)
    # the largest of n weights is no less than 1/n
    root = tl.maximum(tl.minimum(tau + room * (1.0 - kept), top - least), tau)
    return m, exponent, log_room, root


@triton.jit
def _fade(top, tau, model, o: tl.constexpr):
    """What is left of f and of its slope when τ rises."""
    m, exponent, log_room, _root = model
    log_kept = tl.minimum(log2(tl.maximum(top - tau, 1e-30), o.fast) - log_room, 0.0)
    return exp2(m * log_kept, o.fast), exp2(exponent * log_kept, o.fast)


@triton.jit
def _interval(starts, ends, first, final, keys: tl.constexpr):
    """The blocks of keys that queries see, from low to high, and those that all of them see whole.

    These, and those to the left of them, have an even number; the others are at the edges.
    """
    low, high = tl.load(starts + first) // keys, tl.cdiv(tl.load(ends + final), keys)
    inner_low = tl.minimum(tl.maximum(tl.cdiv(tl.load(starts + final), keys), low), high)
    inner_low = tl.minimum(inner_low + (inner_low - low) % 2, high)
    inner_high = tl.minimum(tl.load(ends + first) // keys, high)
    inner_high = inner_low + tl.maximum(inner_high - inner_low, 0) // 2 * 2
    return low, high, inner_low, inner_high


@triton.jit
def _places(i, blocks, is_edge: tl.constexpr, o: tl.constexpr):
    """The i-th block of keys at the edges of the interval, or of those that are live; its keys."""
    live, low, n_left, inner_high = blocks
    j = tl.where(i < n_left, low + i, inner_high + i - n_left) if is_edge else tl.load(live + i)
    return j, j * o.keys + tl.arange(0, o.keys)


@triton.jit
def _scan(state, q, given, found, n_before, first, last, is_edge: tl.constexpr, o: tl.constexpr):
    """The state after two blocks of keys at a time: the largest scores, τ, f and its slope there.

    Blocks within that are less than a margin below τ are noted.
    """
    STAGES: tl.constexpr = 1 if is_edge else o.stages
    top, tau, f, slope, count = state
    factor = given[7]
    least = tl.rsqrt(given[8].to(tl.float32))
    for j in tl.range(first, last, 2, num_stages=STAGES):
        places = j * o.keys + tl.arange(0, 2 * o.keys)
        _k, r = _read_keys(q, given, places, is_edge, o)
        halves = tl.reduce(tl.reshape(r, [o.queries, 2, o.keys]), 2, _max_or_nan)
        left, right = tl.split(halves)
        highest = tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)
        # τ is no less than the top less one
        n_seen = (n_before + j - first) * o.keys
        model = _model_at_top(top * factor, tau, f, slope, n_seen, least, o)
        tau = tl.maximum(model[3], highest * factor - 1.0)
        of_f, of_slope = _fade(top * factor, tau, model, o)
        top = tl.maximum(top, highest, propagate_nan=tl.PropagateNan.ALL)
        p, d = _terms(_scaled_excess(r, factor, tau[:, None], o), o.power)
        f = f * of_f + tl.sum(p, 1)
        slope = slope * of_slope + tl.sum(d, 1)
        if not is_edge:
            count = _note(found, count, j, left * factor, right * factor, tau - _MARGIN, o)
    return top, tau, f, slope, count


@triton.jit
def _note(found, count, j, left, right, level, o: tl.constexpr):
    """Two blocks of keys are noted by queries with a score above a level; how many each has noted.

    ``left`` and ``right`` are the largest scores in block ``j`` and in the next. A query that has
    no room for more marks them.
    """
    marks, noted = found
    marks += j
    at = noted + 4 * _MAX_NOTED * tl.arange(0, o.queries)
    highest = tl.maximum(left, right)
    if o.fast:  # stores of Triton's would exchange the words between threads first
        return tl.inline_asm_elementwise(
            """
            {
                .reg .pred near, room;
                .reg .b64 at;
                setp.gt.f32 near, $5, $6;
                setp.lt.and.s32 room, $1, $9, near;
                mad.wide.s32 at, $1, 16, $2;
                @room st.global.v2.f32 [at], {$3, $4};
                @room st.global.b32 [at+8], $7;
                setp.ge.and.s32 room, $1, $9, near;
                @room st.global.b8 [$8], 1;
                @room st.global.b8 [$8+1], 1;
                mov.b32 $0, $1;
                @near add.s32 $0, $1, 1;
            }
            """,
            "=r,r,l,f,f,f,f,r,l,r",
            [
                count,
                at.to(tl.int64),
                left,
                right,
                highest,
                level,
                j,
                marks.to(tl.int64),
                _MAX_NOTED,
            ],
            tl.int32,
            is_pure=False,
            pack=1,
        )
    is_near = highest > level
    is_listed = is_near & (count < _MAX_NOTED)
    at += 4 * count
    tl.store(at, left, mask=is_listed)
    tl.store(at + 1, right, mask=is_listed)
    tl.store(at + 2, (j + tl.zeros_like(count)).to(tl.float32, bitcast=True), mask=is_listed)
    is_marked = is_near & (count >= _MAX_NOTED)
    tl.store(marks + tl.zeros_like(count), 1, mask=is_marked)
    tl.store(marks + 1 + tl.zeros_like(count), 1, mask=is_marked)
    return count + is_near.to(tl.int32)


@triton.jit
def _mark(at, is_marked, o: tl.constexpr):
    """Stores 1 at a byte where that is true of a query, as :func:`_note` does."""
    if o.fast:
        tl.inline_asm_elementwise(
            "{.reg .pred p; setp.ne.s32 p, $2, 0; @p st.global.b8 [$1], 1; mov.b32 $0, 0;}",
            "=r,l,r",
            [at.to(tl.int64), is_marked.to(tl.int32)],
            tl.int32,
            is_pure=False,
            pack=1,
        )
    else:
        tl.store(at + tl.zeros_like(is_marked.to(tl.int32)), 1, mask=is_marked)


@triton.jit
def _add_sums(sums, q, given, blocks, origin, tau, count, is_edge: tl.constexpr, o: tl.constexpr):
    """p and d of more keys, added to those of keys at the same places of their blocks."""
    STAGES: tl.constexpr = 1 if is_edge else o.stages
    f, slope = sums
    for i in tl.range(0, count, num_stages=STAGES):
        _j, places = _places(i, blocks, is_edge, o)
        _k, r = _read_keys(q, given, places, is_edge, o)
        p, d = _terms(_excess(r, given[7], origin[:, None], tau[:, None], o), o.power)
        f += tl.sum(tl.reshape(p, [o.queries, o.keys // 8, 8]), 1)
        slope += tl.sum(tl.reshape(d, [o.queries, o.keys // 8, 8]), 1)
    return f, slope


@triton.jit
def _add_outputs(
    sums, q, given, blocks, marks, origin, tau, count, is_edge: tl.constexpr, o: tl.constexpr
):
    """Σpv and Σp with those of more keys, whose blocks are marked if they have a weight."""
    STAGES: tl.constexpr = 1 if is_edge else o.stages
    acc, mass = sums
    for i in tl.range(0, count, num_stages=STAGES):
        j, places = _places(i, blocks, is_edge, o)
        _k, r = _read_keys(q, given, places, is_edge, o)
        p, _d = _terms(_excess(r, given[7], origin[:, None], tau[:, None], o), o.power)
        v = _read_values(given, places, is_edge, o)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision=o.precision)
        part = tl.sum(p, 1)
        mass += part
        _mark(marks + j, part > 0, o)
    return acc, mass


@triton.jit
def _append(live, is_live, j):
    """Writes the blocks ``j`` that are live behind one another; their number."""
    flags = is_live.to(tl.int32)
    tl.store(live + tl.cumsum(flags, 0) - 1, j, mask=is_live)
    return tl.sum(flags, 0)


@triton.jit
def _fill(marks, first, last, x: tl.constexpr):
    """Marks all blocks from ``first`` to ``last``, or none."""
    tl.debug_barrier()
    for base in range(first, last, _CHUNK):
        j = base + tl.arange(0, _CHUNK)
        tl.store(marks + j, tl.full([_CHUNK], x, tl.int8), mask=j < last)
    tl.debug_barrier()


@triton.jit
def _list(live, marks, picks, first, last):
    """Writes the blocks that are marked or picked behind one another; their number."""
    tl.debug_barrier()
    count = 0
    for base in range(first, last, _CHUNK):
        j = base + tl.arange(0, _CHUNK)
        found = tl.load(marks + j, mask=j < last, other=0)
        found |= tl.load(picks + j, mask=j < last, other=0)
        count += _append(live + count, found != 0, j)
    tl.debug_barrier()  # all threads read what some of them wrote
    return count


@triton.jit
def _list_above(live, found, picks, count, level, first, last, o: tl.constexpr):
    """Lists the blocks that are noted with a score above ``level``, and all that are marked."""
    marks, noted = found
    _fill(picks, first, last, 0)
    i = tl.arange(0, _MAX_NOTED)[None, :]
    at = noted + 4 * (tl.arange(0, o.queries)[:, None] * _MAX_NOTED + i)
    is_noted = i < count[:, None]
    j = tl.load(at + 2, mask=is_noted, other=0.0).to(tl.int32, bitcast=True)
    for half in tl.static_range(2):
        peak = tl.load(at + half, mask=is_noted, other=float("-inf"))
        one = tl.full([o.queries, _MAX_NOTED], 1, tl.int8)
        tl.store(picks + j + half, one, mask=peak > level[:, None])
    return _list(live, marks, picks, first, last)


@triton.jit
def _take(
    item, query, key, value, starts, ends, levels, live, bias, factor,
    n, n_keys, groups, n_items, n_heads, head, o: tl.constexpr,
):  # fmt: skip
    """A block of queries with what it reads, its rows, and the blocks of keys that it sees."""
    # the last queries first: where attention is causal, they see the most keys
    block = n_items // n_heads - 1 - item // n_heads
    first = block * o.queries
    rows = tl.minimum(first + tl.arange(0, o.queries), n - 1)
    q = _rows_of(query + head * n * o.width, rows, o.width, o.padded)
    start, end = tl.load(starts + rows), tl.load(ends + rows)
    level = tl.load(levels + rows) if o.has_slopes else start
    key_rows = key + head // groups * n_keys * o.width
    value_rows = value + head // groups * n_keys * o.value_width
    given = key_rows, value_rows, start, end, rows, level, bias, factor, n_keys
    final = tl.minimum(first + o.queries, n) - 1
    low, high, inner_low, inner_high = _interval(starts, ends, first, final, o.keys)
    is_inside = first + tl.arange(0, o.queries) < n
    inner = low, high, inner_low, inner_high
    return block, rows, is_inside, q, given, inner, (live, low, inner_low - low, inner_high)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_SPANS)
def attention_forward(
    query, key, value, starts, ends, levels, mask, mask_starts, slopes, scales,
    out, taus, origins, words, live, taken, marks, noted,
    scale, n, n_keys, groups, n_words, n_items, n_heads, n_scratch, mask_stride, tolerance,
    o: tl.constexpr,
):  # fmt: skip
    """Outputs and τ, in single precision with the top that it is counted from, and bits.

    ``tolerance`` is a bound of the square of the last step, in units in which the weights' sum
    changes by as much; about a third of it is left of that sum's distance from one.
    """
    program = tl.program_id(0).to(tl.int64)
    live += program * n_scratch
    marks += program * 2 * n_scratch
    picks = marks + n_scratch
    found = marks, noted + program * (4 * _MAX_NOTED * o.queries)
    n_blocks = n_items // n_heads
    item = tl.program_id(0)
    while item < n_items:
        following = tl.atomic_add(taken, 1) + tl.num_programs(0)
        head = (item % n_heads).to(tl.int64)
        _by_head, factor, bias = _load_bias(
            mask, mask_starts, mask_stride, slopes, scales, scale, head, o
        )
        block, rows, is_inside, q, given, interval, blocks = _take(
            item, query, key, value, starts, ends, levels, live, bias, factor,
            n, n_keys, groups, n_items, n_heads, head, o,
        )  # fmt: skip
        low, high, inner_low, inner_high = interval
        n_edges = inner_low - low + high - inner_high
        _fill(marks, low, high, 0)
        zero = tl.zeros([o.queries], tl.float32)
        state = zero + float("-inf"), zero - 1e30, zero, zero, zero.to(tl.int32)
        state = _scan(state, q, given, found, 0, low, inner_low, True, o)
        state = _scan(state, q, given, found, inner_low - low, inner_high, high, True, o)
        state = _scan(state, q, given, found, n_edges, inner_low, inner_high, False, o)
        top, tau, f, slope, n_noted = state
        # rows with NaN or ∞ are NaN, and those that see nothing are zero
        peak = top * factor
        is_dead = peak == float("-inf")
        is_usual = (peak < float("inf")) & (~is_dead)
        model = _model_at_top(peak, tau, f, slope, (high - low) * o.keys, 0.0, o)
        root = model[3]
        _, of_slope = _fade(peak, root, model, o)
        slope = tl.where(is_usual, slope * of_slope, 1.0)
        peak = tl.where(is_usual, peak, 0.0)
        tau = tl.where(is_usual, tl.minimum(root, peak), 0.0)
        least = tau - _MARGIN
        count = _list_above(live, found, picks, n_noted, least, inner_low, inner_high, o)
        origin = tl.where(is_usual, top, 0.0)
        slack = _SLACK * (tl.abs(peak) + 1.0)
        level = peak if o.is_exact else zero  # what τ is counted from
        tau -= level
        covered = tau - _MARGIN + slack
        # a large top less one may be the same number; less this it is another one
        bound = peak - level - (1.0 if o.is_exact else tl.maximum(0.15 * slack, 1.0))
        # rather too low than too high: then the root has no other blocks than τ
        tau = tl.maximum(tau - _LOWER / tl.maximum(slope * o.power, 1.0), bound)
        steps, longest = 0, 1e30
        # for α = 2, d jumps at keys between τ and the root, so that none may be left
        least_step = tolerance if o.power == 2 else 1e-3 * tolerance
        is_short = count < 0
        is_whole = is_short
        while (steps < _MAX_STEPS) & (longest > least_step):
            tile = tl.zeros([o.queries, 8], tl.float32)
            sums = tile, tile
            sums = _add_sums(sums, q, given, blocks, origin, tau, n_edges, True, o)
            sums = _add_sums(sums, q, given, blocks, origin, tau, count, False, o)
            f, slope = tl.sum(sums[0], 1), tl.sum(sums[1], 1)
            is_high = is_usual & (f < 1.0)
            has_weight = f > 0
            f, slope = tl.where(has_weight, f, 1.0), tl.where(has_weight, slope, 1.0)
            root = tl.sqrt(f)
            newton = (root - 1.0) * root / slope if o.power == 2 else (f - 1.0) / slope
            bound = tl.maximum(bound, tl.where(has_weight, tau + newton, bound))
            guess = tl.maximum(tau + _model(f, slope, peak - level - tau, o.power), bound)
            # beyond the root, keys that no sum has seen may lie just below τ
            is_guess = has_weight & (~is_high) & (steps < o.max_guesses)
            guess = tl.where(is_guess, guess, bound)
            moved = tl.where(is_usual, guess - tau, 0.0)
            tau += moved
            reach = tl.maximum(slope * slope, tl.where(is_high, n_keys.to(tl.float32), 0.0))
            longest = tl.max(moved * moved * reach, 0)
            is_short = tl.max((is_usual & (bound < covered)).to(tl.int32), 0) != 0
            if is_short & (~is_whole):
                _fill(picks, inner_low, inner_high, 1)
                count = _list(live, marks, picks, inner_low, inner_high)
                is_whole, longest = is_short, 1e30
            steps += 1

        if not is_short:
            least = bound + level - slack
            count = _list_above(live, found, picks, n_noted, least, inner_low, inner_high, o)
        _fill(marks, low, high, 0)
        acc, mass, longest = tl.zeros([o.queries, o.value_padded], tl.float32), zero, 1e30
        for _ in range(_MAX_OUTPUTS):
            if longest > tolerance / 3 + _NOISE:
                part = tl.zeros([o.queries, o.value_padded], tl.float32), zero
                part = _add_outputs(part, q, given, blocks, marks, origin, tau, n_edges, True, o)
                acc, mass = _add_outputs(
                    part, q, given, blocks, marks, origin, tau, count, False, o
                )
                mass = tl.where(is_usual & (mass > 0), mass, 1.0)
                # for α = 2 Newton's step is exact, since no key is left between τ and the root
                tau += (mass - 1.0) / (slope * o.power)
                longest = tl.max(tl.abs(mass - 1.0), 0)
        acc /= mass[:, None]
        tl.debug_barrier()
        # the marks as bits
        for word in range(low // 32, tl.cdiv(high, 32)):
            j = word * 32 + tl.arange(0, 32)
            bits = tl.load(marks + j, mask=(j >= low) & (j < high), other=0).to(tl.int32)
            bits = tl.sum((bits != 0).to(tl.int32) << tl.arange(0, 32), 0)
            tl.store(words + (head * n_blocks + block) * n_words + word, bits)
        poison = tl.where(is_usual | is_dead, 0.0, float("nan"))
        tl.store(taus + head * n + rows, tau + poison, mask=is_inside)
        if o.is_exact:
            tl.store(origins + head * n + rows, origin, mask=is_inside)
        e = tl.arange(0, o.value_padded)
        at = out + head * n * o.value_width + rows[:, None] * o.value_width + e[None, :]
        is_inside = is_inside[:, None] & (e < o.value_width)[None, :]
        tl.store(at, (acc + poison[:, None]).to(out.dtype.element_ty), mask=is_inside)
        item = following


@triton.jit
def _add_query_gradients(
    sums, q, d_out, level, given, blocks, origin, tau, count,
    is_edge: tl.constexpr, o: tl.constexpr,
):  # fmt: skip
    """Σ d g k, Σ d k, Σ d g and Σ d, with those of more keys, g counted from ``level``."""
    STAGES: tl.constexpr = 1 if is_edge else o.stages
    along_keys, mean_key, along, weight = sums
    for i in tl.range(0, count, num_stages=STAGES):
        _j, places = _places(i, blocks, is_edge, o)
        k, r = _read_keys(q, given, places, is_edge, o)
        v = _read_values(given, places, is_edge, o)
        g = tl.dot(d_out, tl.trans(v), input_precision=o.precision)
        _, d = _terms(_excess(r, given[7], origin[:, None], tau[:, None], o), o.power)
        mean_key = tl.dot(d.to(k.dtype), k, mean_key, input_precision=o.precision)
        weight += tl.sum(d, 1)
        g = d * (g - level[:, None])
        along += tl.sum(g, 1)
        along_keys = tl.dot(g.to(k.dtype), k, along_keys, input_precision=o.precision)
    return along_keys, mean_key, along, weight


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_SPANS)
def attention_query_gradient(
    query, key, value, upstream, out, starts, ends, levels, mask, mask_starts, slopes, scales,
    taus, origins, words, live, taken, means, by_query, by_scale,
    scale, n, n_keys, groups, n_words, n_items, n_heads, n_scratch, mask_stride,
    o: tl.constexpr,
):  # fmt: skip
    """The gradients of queries and of the scale, and τ and Δ = ⟨d, g⟩/⟨d, 1⟩ of each, g = dO Vᵀ.

    With g counted from ⟨dO, out⟩, which is near Δ, one pass does: Σ d (g − Δ) k is a difference of
    two sums that are hardly larger than it.
    """
    live += tl.program_id(0).to(tl.int64) * n_scratch
    n_blocks = n_items // n_heads
    item = tl.program_id(0)
    while item < n_items:
        following = tl.atomic_add(taken, 1) + tl.num_programs(0)
        head = (item % n_heads).to(tl.int64)
        by_head, factor, bias = _load_bias(
            mask, mask_starts, mask_stride, slopes, scales, scale, head, o
        )
        block, rows, is_inside, q, given, interval, blocks = _take(
            item, query, key, value, starts, ends, levels, live, bias, factor,
            n, n_keys, groups, n_items, n_heads, head, o,
        )  # fmt: skip
        low, high, inner_low, inner_high = interval
        n_edges = inner_low - low + high - inner_high
        d_out = _rows_of(upstream + head * n * o.value_width, rows, o.value_width, o.value_padded)
        y = _rows_of(out + head * n * o.value_width, rows, o.value_width, o.value_padded)
        level = tl.sum(d_out.to(tl.float32) * y.to(tl.float32), 1)
        tau = tl.load(taus + head * n + rows)
        origin = tl.load(origins + head * n + rows) if o.is_exact else tau
        tl.debug_barrier()
        count = 0
        for base in range(inner_low, inner_high, _CHUNK):
            j = base + tl.arange(0, _CHUNK)
            at = (head * n_blocks + block) * n_words + j // 32
            found = tl.load(words + at, mask=j < inner_high, other=0) >> (j % 32)
            count += _append(live + count, (found & 1) != 0, j)
        tl.debug_barrier()  # all threads read what some of them wrote
        zero, acc = tl.zeros([o.queries], tl.float32), tl.zeros([o.queries, o.padded], tl.float32)
        sums = acc, acc, zero, zero
        sums = _add_query_gradients(
            sums, q, d_out, level, given, blocks, origin, tau, n_edges, True, o
        )
        along_keys, mean_key, along, weight = _add_query_gradients(
            sums, q, d_out, level, given, blocks, origin, tau, count, False, o
        )
        mean = along / tl.where(weight > 0, weight, 1.0) + tl.where(tau == tau, 0.0, float("nan"))
        pair = tl.join(tau, level + mean)
        at = means + 2 * (head * n + rows)[:, None] + tl.arange(0, 2)[None, :]
        tl.store(at, pair, mask=is_inside[:, None])
        found = along_keys - mean[:, None] * mean_key
        if o.has_scales:
            along = tl.sum(found * q.to(tl.float32), 1)
            tl.store(by_scale + head * n + rows, along, mask=is_inside)
        found *= by_head
        e = tl.arange(0, o.padded)
        at = by_query + head * n * o.width + rows[:, None] * o.width + e[None, :]
        is_inside = is_inside[:, None] & (e < o.width)[None, :]
        tl.store(at, found.to(by_query.dtype.element_ty), mask=is_inside)
        item = following


@triton.jit
def _add_key_gradients(
    sums, query, k, v, upstream, live, starts, ends, levels, origins, means, places, inside,
    bias, factor, n, count, is_edge: tl.constexpr, o: tl.constexpr,
):  # fmt: skip
    """Σ d (g − Δ) q and Σ p dO, with those of more queries of a head."""
    STAGES: tl.constexpr = 1 if is_edge else o.stages
    by_key, by_value = sums
    for i in tl.range(0, count, num_stages=STAGES):
        rows = tl.load(live + i) * o.queries + tl.arange(0, o.queries)
        is_inside = rows < n
        rows = tl.minimum(rows, n - 1) if is_edge else rows
        q = _rows_of(query, rows, o.width, o.padded)
        d_out = _rows_of(upstream, rows, o.value_width, o.value_padded)
        r = tl.dot(k, tl.trans(q), input_precision=o.precision)
        level = tl.load(levels + rows) if o.has_slopes else rows
        keys = inside if is_edge else places
        r = _biased(r, rows[None, :], level[None, :], keys[:, None], bias, o)
        g = tl.dot(v, tl.trans(d_out), input_precision=o.precision)
        if is_edge:
            start, end = tl.load(starts + rows), tl.load(ends + rows)
            is_seen = (places[:, None] >= start[None, :]) & (places[:, None] < end[None, :])
            r = tl.where(is_seen & is_inside[None, :], r, float("-inf"))
        tau, mean = tl.split(tl.load(means + 2 * rows[:, None] + tl.arange(0, 2)[None, :]))
        origin = tl.load(origins + rows) if o.is_exact else tau
        p, d = _terms(_excess(r, factor, origin[None, :], tau[None, :], o), o.power)
        by_value = tl.dot(p.to(d_out.dtype), d_out, by_value, input_precision=o.precision)
        g = d * (g - mean[None, :])
        by_key = tl.dot(g.to(q.dtype), q, by_key, input_precision=o.precision)
    return by_key, by_value


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_SPANS)
def attention_key_gradient(
    query, key, value, upstream, starts, ends, levels, mask, mask_starts, slopes, scales,
    origins, words, live, taken, means, by_key, by_value,
    scale, n, n_keys, groups, n_words, n_items, n_key_heads, n_query_blocks, n_scratch,
    mask_stride, o: tl.constexpr,
):  # fmt: skip
    """The gradients of ``o.pair`` blocks of keys and values, one or two."""
    live += tl.program_id(0).to(tl.int64) * n_scratch
    width: tl.constexpr = o.width
    value_width: tl.constexpr = o.value_width
    item = tl.program_id(0)
    while item < n_items:
        following = tl.atomic_add(taken, 1) + tl.num_programs(0)
        # the first keys first: where attention is causal, most queries see them
        block, key_head = o.pair * (item // n_key_heads), (item % n_key_heads).to(tl.int64)
        places = block * o.keys + tl.arange(0, o.pair * o.keys)
        bits = (2 * o.pair - 1) << (block % 32)
        inside = tl.minimum(places, n_keys - 1)
        k = _rows_of(key + key_head * n_keys * width, inside, width, o.padded)
        v = _rows_of(value + key_head * n_keys * value_width, inside, value_width, o.value_padded)
        by_k = tl.zeros([o.pair * o.keys, o.padded], tl.float32)
        by_v = tl.zeros([o.pair * o.keys, o.value_padded], tl.float32)
        for group in range(groups):
            head = key_head * groups + group
            by_head, factor, bias = _load_bias(
                mask, mask_starts, mask_stride, slopes, scales, scale, head, o
            )
            tl.debug_barrier()
            # of queries who all see all of the keys, and others, behind them
            n_inner, n_edges = 0, 0
            for base in range(0, n_query_blocks, _CHUNK):
                i = base + tl.arange(0, _CHUNK)
                is_block = i < n_query_blocks
                at = (head * n_query_blocks + i) * n_words + block // 32
                found = tl.load(words + at, mask=is_block, other=0)
                is_live = is_block & ((found & bits) != 0)
                final = tl.minimum((i + 1) * o.queries, n) - 1
                is_inner = tl.load(starts + final, mask=is_block, other=0) <= block * o.keys
                last = tl.load(ends + i * o.queries, mask=is_block, other=0)
                is_inner = is_inner & (last >= block * o.keys + o.pair * o.keys)
                is_inner = is_inner & ((i + 1) * o.queries <= n)
                n_inner += _append(live + n_inner, is_live & is_inner, i)
                n_edges += _append(live + n_query_blocks + n_edges, is_live & (~is_inner), i)
            tl.debug_barrier()  # all threads read what some of them wrote
            query_rows, up_rows = query + head * n * width, upstream + head * n * value_width
            # a scale of its own multiplies here, since heads of queries share the keys
            sums = by_k, by_v
            if o.has_scales:
                sums = tl.zeros_like(by_k), by_v
            sums = _add_key_gradients(
                sums, query_rows, k, v, up_rows, live + n_query_blocks, starts, ends, levels,
                origins + head * n, means + 2 * head * n, places, inside,
                bias, factor, n, n_edges, True, o,
            )  # fmt: skip
            sums = _add_key_gradients(
                sums, query_rows, k, v, up_rows, live, starts, ends, levels,
                origins + head * n, means + 2 * head * n, places, inside,
                bias, factor, n, n_inner, False, o,
            )  # fmt: skip
            by_v = sums[1]
            by_k = by_k + sums[0] * by_head if o.has_scales else sums[0]
        if not o.has_scales:
            by_k *= scale
        e, f = tl.arange(0, o.padded), tl.arange(0, o.value_padded)
        is_inside = (places < n_keys)[:, None]
        at = by_key + key_head * n_keys * width + inside[:, None] * width + e[None, :]
        tl.store(at, by_k.to(by_key.dtype.element_ty), mask=is_inside & (e < width)[None, :])
        at = by_value + key_head * n_keys * value_width + inside[:, None] * value_width + f[None, :]
        found = by_v.to(by_value.dtype.element_ty)
        tl.store(at, found, mask=is_inside & (f < value_width)[None, :])
        item = following
