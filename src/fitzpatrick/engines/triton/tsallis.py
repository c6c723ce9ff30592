r"""The kernel for class indices of the Tsallis losses with any 1 < α < 2, at every tightness c.

With β = α − 1 and R = 1/β + c the entries of the other classes are
:math:`p = ((\theta - \tau)/R)_+^{1/\beta}`. That of the label is :math:`e^{-u}` with

.. math:: c\,e^{(1 - \beta) u} + R\,(1 - e^{-\beta u}) = \tau + R - \theta_j

for c > 0, increasing in u; for c = 0 it is one of the others.
"""

import triton
import triton.language as tl

from .formulas import tightness_of
from .links import is_active, ramp_start, ramps, row_sums
from .math import exp, expm1_minus_x, log, log1p, relu
from .root import solve_tau
from .tiles import columns_of
from .weights import label_and_weight


@triton.jit
def _one_minus_exp(x):
    """1 − e^−x for x >= 0, with the digits of a small x."""
    small = tl.where(x < 0.5, x, 0.0)
    return tl.where(x < 0.5, small - expm1_minus_x(-small, False), 1.0 - tl.exp(-x))


@triton.jit
def _label_root(z, beta, c, o: tl.constexpr):
    """u of the label at z = τ + R − θ_j >= c > 0.

    First in logarithms, where the slope is between 1 − β or β and 1 and any start will do, then by
    Newton's steps on the equation itself, which keep the digits.
    """
    LAST: tl.constexpr = 4 if o.acc == tl.float32 else 6
    reach = 1.0 / beta + c
    s = reach - z
    deep = s < 0
    u = tl.minimum(tl.log(tl.maximum(z / c, 1.0)) / (1.0 - beta), relu(z - c))
    for _ in tl.static_range(5):
        q = reach * exp(-beta * u, o.fast)
        e = c * exp(tl.minimum((1.0 - beta) * u, 80.0), o.fast)
        below = q + tl.abs(s)
        above = relu(s) + e
        ratio = tl.where(deep, below / c, reach / above)
        value = log(ratio, o.fast) - tl.where(deep, 1.0 - beta, beta) * u
        slope = tl.where(deep, beta * q / below + (1.0 - beta), beta + (1.0 - beta) * (e / above))
        u = relu(u + value / slope)
    for _ in tl.static_range(LAST):
        e = c * tl.exp((1.0 - beta) * u)
        excess = e + reach * _one_minus_exp(beta * u) - z
        slope = (1.0 - beta) * e + reach * beta * tl.exp(-beta * u)
        u = relu(u - excess / slope)
    return u


@triton.jit
def _distance(s, beta, c, o: tl.constexpr):
    """τ + R − θ_j; careful kernels count τ from there."""
    if o.careful:
        return -s
    else:
        return (1.0 / beta + c) - s


@triton.jit
def _label_point(own, tau, low, beta, c, o: tl.constexpr):
    """The label's entry and its slope."""
    s = (own - tau) - low
    if o.mode == "zero":
        return ramps(s, beta, beta, o)
    else:
        u = _label_root(_distance(s, beta, c, o), beta, c, o)
        e = c * tl.exp((1.0 - beta) * u)
        p = tl.exp(-u)
        return p, p / ((1.0 - beta) * e + (1.0 + beta * c) * tl.exp(-beta * u))


@triton.jit
def _sums_of_maxima(given, tau, low, o: tl.constexpr):
    """Σp and the slope of the maxima and of the label."""
    tops, own, c, rate, beta = given
    p, d = ramps((tops - tau) - low, beta, rate, o)
    own_p, own_d = _label_point(own, tau, low, beta, c, o)
    return tl.sum(row_sums(p), axis=0) + own_p, tl.sum(row_sums(d), axis=0) + own_d


@triton.jit
def _tile(source, block, k, label, active, o: tl.constexpr):
    """Columns of a tile and their scores, −∞ at the label and where nothing is active."""
    _, cols = columns_of(block, o)
    x = tl.load(source + cols, mask=(cols < k) & active[:, None], other=float("-inf"))
    return cols, tl.where(cols == label, float("-inf"), x.to(o.acc))


@triton.jit
def _sums_of_row(given, tau, low, o: tl.constexpr):
    """Σp and the slope of a row, by a pass over the groups that reach above τ."""
    source, k, label, top, peaks, own, c, rate, beta = given
    totals = tl.zeros((o.groups,), o.acc)
    slopes = tl.zeros((o.groups,), o.acc)
    active = is_active(peaks, tau, low, rate, o)
    for block in range(tl.cdiv(k, o.groups * o.lanes)):
        _cols, x = _tile(source, block, k, label, active, o)
        p, d = ramps(((x - top) - tau) - low, beta, rate, o)
        totals += row_sums(p)
        slopes += row_sums(d)
    own_p, own_d = _label_point(own, tau, low, beta, c, o)
    return tl.sum(totals, axis=0) + own_p, tl.sum(slopes, axis=0) + own_d


@triton.jit
def _label_loss(mass, s, beta, c, o: tl.constexpr):
    """The label's part of the loss, from the mass of the others, 1 − p, and its own s."""
    ALPHA = 1.0 + beta
    if o.mode == "zero":
        p, _d = ramps(s, beta, beta, o)
        u = -tl.log(tl.where(p > 0, p, 1.0))
        missing = tl.where(p > 0, _one_minus_exp(beta * u), 1.0)
    else:
        u = _label_root(_distance(s, beta, c, o), beta, c, o)
        missing = _one_minus_exp(beta * u)
    q = 1.0 - missing
    # D = (1 − q − β q (1 − p))/(αβ), or, where that cancels, p q (E(αx) − α E(x))/(αβ) with
    # x = log(1/p): the sum of (αⁿ⁻¹ − 1)/β xⁿ/n!
    near = mass < 0.25
    known = tl.where(near, mass, 0.0)
    x = log1p(known / (1.0 - known))
    TERMS: tl.constexpr = 10 if o.acc == tl.float32 else 20
    series = x * 0.0
    factor = x
    power = x * 0.0 + 1.0
    scale = x * 0.0 + ALPHA
    for n in tl.static_range(2, TERMS):
        factor *= x * (1.0 / n)
        series += power * factor
        power += scale
        scale *= ALPHA
    divergence = tl.where(near, (1.0 - known) * q * series, (missing / beta - q * mass) / ALPHA)
    if o.mode == "zero":
        return divergence + relu(_distance(s, beta, c, o) - 1.0 / beta)
    else:
        quadratic = mass * mass * tl.exp((1.0 - beta) * u)
        return divergence + c * (quadratic - divergence)


@triton.jit(do_not_specialize=["divisor", "tightness"])
def tsallis_label_rows(
    theta, target, scale, value, gradient,
    n, k, theta_stride, out_stride, scale_stride, divisor, ignore_index, max_steps,
    tolerance, beta: tl.float64, tightness: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """One row of any width, in tiles."""
    c = tightness_of(tightness, o)
    beta = (tl.full((), 0.0, tl.float64) + beta).to(o.acc)
    rate = beta / (1.0 + c * beta)
    row = tl.program_id(0).to(tl.int64)
    label, weight, counts = label_and_weight(
        target, scale, row, row < n, scale_stride, divisor, ignore_index, o
    )
    source = theta + row * theta_stride
    out = gradient + row * out_stride
    valid = (label >= 0) & (label < k)
    own = tl.load(source + label, mask=counts & valid, other=float("nan")).to(o.acc)
    label = label.to(tl.int32)
    blocks = tl.cdiv(k, o.groups * o.lanes)
    every = tl.full((o.groups,), 1, tl.int1)
    if counts:
        tops = tl.full((o.groups, o.lanes), float("-inf"), o.acc)
        for block in range(blocks):
            _cols, x = _tile(source, block, k, label, every, o)
            tops = tl.maximum(tops, x, propagate_nan=tl.PropagateNan.ALL)
        peaks = tl.max(tops, axis=1)
        highest = tl.max(peaks, axis=0)
        # a masked label has an infinite loss; the others solve for τ as if it were very low
        is_masked = (own == float("-inf")) & (highest > float("-inf"))
        own = tl.where(is_masked, highest - 1e20, own)
        top = tl.maximum(highest, own)
        own -= top
        peaks -= top
        # one entry alone is one there; the label's is at θ_j + c
        start = ramp_start(tl.maximum(highest - top, own + c), rate, o)
        tau, low = solve_tau(
            _sums_of_maxima, (tops - top, own, c, rate, beta), start, tl.zeros((), o.acc),
            max_steps, tolerance, o,
        )  # fmt: skip
        tau, low = solve_tau(
            _sums_of_row, (source, k, label, top, peaks, own, c, rate, beta),
            tau, low - 2 * tolerance, max_steps, tolerance, o,
        )  # fmt: skip
        active = is_active(peaks, tau, low, rate, o)
        masses = tl.zeros((o.groups,), o.acc)
        costs = tl.zeros((o.groups,), o.acc)
        for block in range(blocks):
            _cols, x = _tile(source, block, k, label, active, o)
            s = ((x - top) - tau) - low
            p, _d = ramps(s, beta, rate, o)
            masses += row_sums(p)
            base = rate * s
            if o.careful:
                base = 1.0 + base
            costs += row_sums(p * relu(base))
        mass = tl.sum(masses, axis=0)
        if o.with_value:
            loss = _label_loss(mass, (own - tau) - low, beta, c, o)
            loss += tl.sum(costs, axis=0) * ((1.0 + c * beta) / (1.0 + beta))
            loss = tl.where(is_masked, float("inf"), loss)
            loss = tl.where(tau == tau, loss, tau)
            tl.store(value + row, loss * weight)
        if o.with_gradient:
            for block in range(blocks):
                cols, x = _tile(source, block, k, label, active, o)
                p, _d = ramps(((x - top) - tau) - low, beta, rate, o)
                p = tl.where(cols == label, -mass, p)
                p = tl.where(tau == tau, p, tau) * weight
                p = p.to(gradient.dtype.element_ty)
                tl.store(out + cols, p, mask=cols < k, cache_modifier=".cs")
    else:
        if o.with_value:
            tl.store(value + row, 0.0 * weight)
        if o.with_gradient:
            for block in range(blocks):
                cols, _x = _tile(source, block, 0, label, every, o)
                zero = tl.zeros((o.groups, o.lanes), gradient.dtype.element_ty)
                tl.store(out + cols, zero, mask=cols < k, cache_modifier=".cs")
