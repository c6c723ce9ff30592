r"""Kernels of entmax attention for α = 1.5 and α = 2, with one dense pass over the keys.

Scores are t = β s⟨q, k⟩, so that the weights are (t − τ)₊² for α = 1.5 and (t − τ)₊ for α = 2. A
program has a block of queries. Its first pass finds their largest scores and a lower bound of τ:
the τ of any set of keys is one, and so is what a Newton step finds from anywhere, since the sum of
weights is convex and falls. The pass marks blocks of keys that are above the bound. All that
follows reads marked blocks only: Newton steps to τ, the output, which is divided by the sum of the
weights, and the backward pass, which has the marks of blocks with a weight. Keys that a query sees
are an interval, which starts and ends no earlier than the interval of the query before.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's language is not Python to a type checker

import triton
import triton.language as tl

from .math import relu

# What a score may exceed the bound by and still be rounding, in units of its size.
_SLACK = tl.constexpr(1e-6)
# A step that is shorter than this moves no weight by more than float32 can tell.
_SHORT_STEP = tl.constexpr(1e-7)
_MAX_STEPS = tl.constexpr(24)


@triton.jit
def _rows_of(x, first, n, size: tl.constexpr, width: tl.constexpr, padded: tl.constexpr):
    """Rows of a matrix of n rows, from ``first`` on, zeros beyond it."""
    rows, e = first + tl.arange(0, size), tl.arange(0, padded)
    is_inside = (rows < n)[:, None] & (e < width)[None, :]
    return tl.load(x + rows[:, None] * width + e[None, :], mask=is_inside, other=0.0)


@triton.jit
def _scores(q, k, starts, ends, first, size: tl.constexpr, factor, precision: tl.constexpr):
    """A tile of t from queries and keys, −∞ where a query does not see a key."""
    places = first + tl.arange(0, size)
    t = tl.dot(q, tl.trans(k), input_precision=precision) * factor
    is_seen = (places[None, :] >= starts[:, None]) & (places[None, :] < ends[:, None])
    return tl.where(is_seen, t, float("-inf"))


@triton.jit
def _step(s, power: tl.constexpr):
    """A Newton step in τ for rows of s = t − τ, on the root of the sum if it is of squares."""
    s = relu(s)
    if power == 2:
        total, slope = tl.sqrt(tl.sum(s * s, 1)), tl.sum(s, 1)
        excess = (total - 1.0) * total
    else:
        excess, slope = tl.sum(s, 1) - 1.0, tl.sum(tl.where(s > 0, 1.0, 0.0), 1)
    return tl.where(slope > 0, excess / tl.where(slope > 0, slope, 1.0), 0.0)


@triton.jit
def attention_forward(
    query, key, value, starts, ends, out, tops, maxima, marks,
    factor, n, n_keys, groups, n_blocks,
    power: tl.constexpr, width: tl.constexpr, value_width: tl.constexpr,
    padded: tl.constexpr, value_padded: tl.constexpr,
    queries: tl.constexpr, keys: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """Outputs, largest weights and scores of a block of queries, and which blocks have weights."""
    block, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first = block * queries
    rows = first + tl.arange(0, queries)
    query += head * n * width
    key += head // groups * n_keys * width
    value += head // groups * n_keys * value_width
    marks += (head * tl.num_programs(0) + block) * n_blocks
    q = _rows_of(query, first, n, queries, width, padded)
    start = tl.load(starts + rows, mask=rows < n, other=0)
    end = tl.load(ends + rows, mask=rows < n, other=0)
    low = tl.load(starts + first) // keys
    high = tl.cdiv(tl.load(ends + tl.minimum(first + queries, n) - 1), keys)
    top = tl.full([queries], float("-inf"), tl.float32)
    bound = top
    for j in range(low, high):
        k = _rows_of(key, j * keys, n_keys, keys, width, padded)
        t = _scores(q, k, start, end, j * keys, keys, factor, precision)
        highest = tl.max(t, 1)
        top = tl.maximum(top, highest)
        # two steps from the left end of the bracket, or from a bound that is above it
        is_seen = highest > float("-inf")
        tau = tl.where(is_seen, tl.maximum(highest - 1.0, bound), 0.0)
        tau += _step(t - tau[:, None], power)
        tau += _step(t - tau[:, None], power)
        bound = tl.where(is_seen, tl.maximum(bound, tau), bound)
        highest = tl.where(is_seen, highest, 0.0)
        slack = _SLACK * (tl.abs(highest) + 1.0)
        is_live = tl.max(tl.where(is_seen & (highest + slack > bound), 1, 0), 0)
        has_nan = tl.max(tl.max(tl.where(t != t, 1, 0), 1), 0)
        tl.store(marks + j, tl.maximum(is_live, has_nan).to(tl.int8))
    tl.debug_barrier()  # one thread stores a mark, and all of them read it
    is_dead = top == float("-inf")
    top = tl.where(is_dead, 0.0, top)
    # from here on x = t − top, whose digits do not depend on the size of the scores
    tau = tl.where(is_dead, 0.0, bound - top - _SLACK * (tl.abs(top) + 1.0))
    tau = tl.maximum(tau, -1.0)
    steps, longest = 0, 1.0
    while (steps < _MAX_STEPS) & (longest > _SHORT_STEP):
        total = tl.zeros([queries], tl.float32)
        slope = tl.zeros([queries], tl.float32)
        for j in range(low, high):
            if tl.load(marks + j) != 0:
                k = _rows_of(key, j * keys, n_keys, keys, width, padded)
                t = _scores(q, k, start, end, j * keys, keys, factor, precision)
                s = relu(t - top[:, None] - tau[:, None])
                if power == 2:
                    total += tl.sum(s * s, 1)
                    slope += tl.sum(s, 1)
                else:
                    total += tl.sum(s, 1)
                    slope += tl.sum(tl.where(s > 0, 1.0, 0.0), 1)
        if power == 2:
            total = tl.sqrt(total)
            excess = (total - 1.0) * total
        else:
            excess = total - 1.0
        step = tl.where(slope > 0, excess / tl.where(slope > 0, slope, 1.0), 0.0)
        tau += step
        longest = tl.max(tl.abs(step), 0)
        steps += 1
    total = tl.zeros([queries], tl.float32)
    acc = tl.zeros([queries, value_padded], tl.float32)
    for j in range(low, high):
        if tl.load(marks + j) != 0:
            k = _rows_of(key, j * keys, n_keys, keys, width, padded)
            t = _scores(q, k, start, end, j * keys, keys, factor, precision)
            p = relu(t - top[:, None] - tau[:, None])
            p = p * p if power == 2 else p
            total += tl.sum(p, 1)
            v = _rows_of(value, j * keys, n_keys, keys, value_width, value_padded)
            acc += tl.dot(p.to(v.dtype), v, input_precision=precision)
            # a maximum over all threads: none of them is still to read the mark
            has_weight = tl.max(tl.max(tl.where(p != 0, 1, 0), 1), 0)
            tl.store(marks + j, has_weight.to(tl.int8))
    total = tl.where(total > 0, total, 1.0)
    largest = -tau * -tau if power == 2 else -tau
    tl.store(tops + head * n + rows, tl.where(is_dead, 0.0, largest / total), mask=rows < n)
    tl.store(maxima + head * n + rows, top, mask=rows < n)
    e = tl.arange(0, value_padded)
    is_inside = (rows < n)[:, None] & (e < value_width)[None, :]
    found = (acc / total[:, None]).to(out.dtype.element_ty)
    at = out + head * n * value_width + rows[:, None] * value_width + e[None, :]
    tl.store(at, found, mask=is_inside)


@triton.jit
def _weights(t, top, root, power: tl.constexpr):
    """p and d = ∂p/∂z from t, the largest t, and the largest weight or its square root."""
    s = relu(root[:, None] + (t - top[:, None]))
    if power == 2:
        return s * s, s
    return s, tl.where(s > 0, 1.0, 0.0)


@triton.jit
def attention_query_gradient(
    query, key, value, upstream, starts, ends, tops, maxima, marks, means, by_query,
    factor, scale, n, n_keys, groups, n_blocks,
    power: tl.constexpr, width: tl.constexpr, value_width: tl.constexpr,
    padded: tl.constexpr, value_padded: tl.constexpr,
    queries: tl.constexpr, keys: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """The gradient of a block of queries, and Δ = ⟨d, g⟩/⟨d, 1⟩ of each, g = dO Vᵀ."""
    block, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first = block * queries
    rows = first + tl.arange(0, queries)
    query += head * n * width
    upstream += head * n * value_width
    key += head // groups * n_keys * width
    value += head // groups * n_keys * value_width
    marks += (head * tl.num_programs(0) + block) * n_blocks
    q = _rows_of(query, first, n, queries, width, padded)
    d_out = _rows_of(upstream, first, n, queries, value_width, value_padded)
    start = tl.load(starts + rows, mask=rows < n, other=0)
    end = tl.load(ends + rows, mask=rows < n, other=0)
    root = tl.load(tops + head * n + rows, mask=rows < n, other=0.0)
    root = tl.sqrt(root) if power == 2 else root
    top = tl.load(maxima + head * n + rows, mask=rows < n, other=0.0)
    low = tl.load(starts + first) // keys
    high = tl.cdiv(tl.load(ends + tl.minimum(first + queries, n) - 1), keys)
    weight = tl.zeros([queries], tl.float32)
    along = tl.zeros([queries], tl.float32)
    for j in range(low, high):
        if tl.load(marks + j) != 0:
            k = _rows_of(key, j * keys, n_keys, keys, width, padded)
            v = _rows_of(value, j * keys, n_keys, keys, value_width, value_padded)
            t = _scores(q, k, start, end, j * keys, keys, factor, precision)
            _, d = _weights(t, top, root, power)
            g = tl.dot(d_out, tl.trans(v), input_precision=precision)
            weight += tl.sum(d, 1)
            along += tl.sum(d * g, 1)
    mean = along / tl.where(weight > 0, weight, 1.0)
    tl.store(means + head * n + rows, mean, mask=rows < n)
    acc = tl.zeros([queries, padded], tl.float32)
    for j in range(low, high):
        if tl.load(marks + j) != 0:
            k = _rows_of(key, j * keys, n_keys, keys, width, padded)
            v = _rows_of(value, j * keys, n_keys, keys, value_width, value_padded)
            t = _scores(q, k, start, end, j * keys, keys, factor, precision)
            _, d = _weights(t, top, root, power)
            g = tl.dot(d_out, tl.trans(v), input_precision=precision)
            d_z = d * (g - mean[:, None])
            acc += tl.dot(d_z.to(k.dtype), k, input_precision=precision)
    e = tl.arange(0, padded)
    is_inside = (rows < n)[:, None] & (e < width)[None, :]
    at = by_query + head * n * width + rows[:, None] * width + e[None, :]
    tl.store(at, (acc * scale).to(by_query.dtype.element_ty), mask=is_inside)


@triton.jit
def attention_key_gradient(
    query, key, value, upstream, starts, ends, tops, maxima, marks, means, by_key, by_value,
    factor, scale, n, n_keys, groups, n_query_blocks,
    power: tl.constexpr, width: tl.constexpr, value_width: tl.constexpr,
    padded: tl.constexpr, value_padded: tl.constexpr,
    queries: tl.constexpr, keys: tl.constexpr, precision: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values, from all queries with a weight for them."""
    block, key_head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first = block * keys
    key += key_head * n_keys * width
    value += key_head * n_keys * value_width
    k = _rows_of(key, first, n_keys, keys, width, padded)
    v = _rows_of(value, first, n_keys, keys, value_width, value_padded)
    acc_key = tl.zeros([keys, padded], tl.float32)
    acc_value = tl.zeros([keys, value_padded], tl.float32)
    for g in range(groups):
        head = key_head * groups + g
        for i in range(n_query_blocks):
            at = (head * n_query_blocks + i) * tl.num_programs(0) + block
            if tl.load(marks + at) != 0:
                rows = i * queries + tl.arange(0, queries)
                q = _rows_of(query + head * n * width, i * queries, n, queries, width, padded)
                d_out = _rows_of(
                    upstream + head * n * value_width, i * queries, n, queries, value_width,
                    value_padded,
                )  # fmt: skip
                start = tl.load(starts + rows, mask=rows < n, other=0)
                end = tl.load(ends + rows, mask=rows < n, other=0)
                root = tl.load(tops + head * n + rows, mask=rows < n, other=0.0)
                root = tl.sqrt(root) if power == 2 else root
                top = tl.load(maxima + head * n + rows, mask=rows < n, other=0.0)
                mean = tl.load(means + head * n + rows, mask=rows < n, other=0.0)
                t = _scores(q, k, start, end, first, keys, factor, precision)
                p, d = _weights(t, top, root, power)
                acc_value += tl.dot(tl.trans(p).to(d_out.dtype), d_out, input_precision=precision)
                d_p = tl.dot(d_out, tl.trans(v), input_precision=precision)
                d_z = d * (d_p - mean[:, None])
                acc_key += tl.dot(tl.trans(d_z).to(q.dtype), q, input_precision=precision)
    places, e, f = first + tl.arange(0, keys), tl.arange(0, padded), tl.arange(0, value_padded)
    at = by_key + key_head * n_keys * width + places[:, None] * width + e[None, :]
    is_inside = (places < n_keys)[:, None]
    found = (acc_key * scale).to(by_key.dtype.element_ty)
    tl.store(at, found, mask=is_inside & (e < width)[None, :])
    at = by_value + key_head * n_keys * value_width + places[:, None] * value_width + f[None, :]
    found = acc_value.to(by_value.dtype.element_ty)
    tl.store(at, found, mask=is_inside & (f < value_width)[None, :])
