r"""The losses of the negentropy at proportions, where only the entries with y > 0 see y.

Per row, with t = θ − max θ, r = Σ e^t over the entries with y = 0 and the tightness c > 0, the
maximizer is :math:`e^{t_i - \lambda}` at those and p = c y/ω at the others, where

.. math:: g(\lambda) = r e^{-\lambda} + \sum_{y_i > 0} p_i(\lambda) = 1, \qquad
          \omega_i + \log \omega_i = \log(c y_i) - t_i + \lambda .

Since :math:`\sum_i p_i e^{-\omega_i} = e^{\mathrm{lse}(t) - \lambda}`, Jensen's inequality with
:math:`\sum_i p_i \omega_i = c \sum_i y_i` gives :math:`\mathrm{lse}(t) \le \lambda \le
\mathrm{lse}(t) + c \sum_i y_i`, where the targets sum to one, but for what rounding or a sum of
small targets leaves. From the middle, Halley's method on log g triples the digits of λ in each
pass, and each pass moves every ω to the new λ by one step of fourth order. With v = 1/(1 + ω),
derivatives in λ are ω' = ωv, p' = −pv and p'' = pv²(2 − v). For c = 0 the root is lse(t). Rows are
treated in groups, with their entries side by side in buffers that stay in the first-level cache.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..negentropy import LAST_STEP, MAX_PASSES, MIN_OMEGA, MIN_Y
from ..rows import BlockTask
from ._jit import loop
from ._kernel import GRADIENT, NO_STATS, SLOPE, CompiledKernel, support_lists
from ._math import entropy_term, exp, log, omega_step, rough_omega
from ._rows import exponentials
from ._stats import finish_stats

# A group has this many scores, and this many entries with y > 0, unless it is a single row.
_SCORES, _ENTRIES = 1 << 14, 512
# Below this tightness log(p/y) is a logarithm of its own.
_MIN_FROM_ROOT = 0.25
# An ω is off by 1/72 of the fourth power of its last residual.
_LAST_RESIDUAL_POWER = 1e-15

# Below, arrays are copied in loops: for an assignment to a slice Numba compiles a check of shapes
# and the text of its error, which takes seconds.


@loop
def _collect(theta, starts, columns, top, e, rest, lse, t, own):
    """Take the entries with y > 0 out of e: t and e^t there, r and lse(t) of each row."""
    n, k = theta.shape
    for i in range(n):
        begin, end = starts[i] - starts[0], starts[i + 1] - starts[0]
        row = e[i * k : (i + 1) * k]
        others = 0.0
        if end - begin == k:
            t_row, own_row = t[begin:end], own[begin:end]
            for j in range(k):
                t_row[j] = theta[i, j] - top[i]
                own_row[j] = row[j]
        else:
            for m in range(begin, end):
                column = columns[starts[0] + m]
                t[m] = theta[i, column] - top[i]
                own[m] = row[column]
                row[column] = 0.0
            for j in range(k):
                others += row[j]
        total = others
        for m in range(begin, end):
            total += own[m] if t[m] > -np.inf else np.nan
        rest[i] = others
        lse[i] = log(total) if total < np.inf else np.nan


@loop
def _start(own, s, y, omega):
    """From e^s and s = t − λ: z = log y − s in its place, and ω within a few percent.

    Targets are drawn in from where p does not depend on them.
    """
    for m in range(len(y)):
        p = max(own[m], MIN_Y)
        known = max(y[m], max(MIN_OMEGA * p, MIN_Y))
        y[m] = known
        s[m] = log(known) - s[m]
        omega[m] = rough_omega(s[m])


@loop
def _advance(z, omega, power):
    """Move every ω to its z, and write the fourth power of the residual it had."""
    for m in range(len(z)):
        residual = z[m] - omega[m] - log(omega[m])
        omega[m] = omega_step(omega[m], residual)
        power[m] = residual * residual * residual * residual


@loop
def _point(y, omega, p, v):
    """p = y/ω and v = 1/(1 + ω), with one division."""
    for m in range(len(y)):
        shifted = 1 + omega[m]
        inverse = 1 / (omega[m] * shifted)
        p[m] = y[m] * shifted * inverse
        v[m] = omega[m] * inverse


@loop
def _halley(g, first, second, step):
    """Halley's step on log g, from g and its first two derivatives in λ."""
    for i in range(len(step)):
        f, slope = log(g[i]), first[i] / g[i]
        bend = second[i] / g[i] - slope * slope
        step[i] = 2 * f * slope / (2 * slope * slope - f * bend)


@loop
def _follow(lowest, highest, lam, step):
    """λ moved by the step, within its bracket, and how far that was."""
    for i in range(len(step)):
        there = min(max(lam[i] + step[i], lowest[i]), highest[i])
        step[i] = there - lam[i]
        lam[i] = there


@loop
def _scale(factor, lam, out):
    for i in range(len(out)):
        out[i] = factor[i] * exp(-lam[i])


@loop
def _find_root(tightness, starts, loss, numbers, entries):
    """Find λ and p for c > 0; on entry z holds t, y holds c y and p holds e^t, on exit z is at λ.

    The loss becomes the part of the entries with y = 0; NaN where no root was found.
    """
    rest, lse, lam, step, g, first, second, highest = numbers
    z, y, omega, p, v, power = entries
    n, base = len(loss), starts[0]
    for i in range(n):
        lam[i] = lse[i] + tightness / 2
        factor, sum_y = exp(-lam[i]), 0.0
        for m in range(starts[i] - base, starts[i + 1] - base):
            p[m] *= factor
            z[m] -= lam[i]
            sum_y += y[m]
        highest[i] = lse[i] + sum_y
    _start(p, z, y, omega)
    for m in range(len(power)):
        power[m] = 1.0
    for number in range(MAX_PASSES):
        if number > 0:  # the start will do for a first step
            _advance(z, omega, power)
        _point(y, omega, p, v)
        _scale(rest, lam, g)
        is_done = True
        for i in range(n):
            mass, slope, bend, worst = 0.0, 0.0, 0.0, 0.0
            for m in range(starts[i] - base, starts[i + 1] - base):
                d = p[m] * v[m]
                mass += p[m]
                slope += d
                bend += d * v[m] * (2 - v[m])
                worst += power[m]
            first[i] = g[i] + slope
            second[i] = g[i] + bend
            g[i] += mass
            if worst > _LAST_RESIDUAL_POWER:
                is_done = False
        _halley(g, first, second, step)
        _follow(lse, highest, lam, step)
        for i in range(n):
            if abs(step[i]) > LAST_STEP:
                is_done = False
        if is_done:
            break
        for i in range(n):
            for m in range(starts[i] - base, starts[i + 1] - base):
                u = v[m] * step[i]
                omega[m] *= 1 + u * (1 + u * v[m] * 0.5)  # ω at the new λ, to second order
                z[m] += step[i]
    _scale(rest, lam, loss)
    for i in range(n):
        for m in range(starts[i] - base, starts[i + 1] - base):
            u = v[m] * step[i]
            p[m] *= 1 - u * (1 - u * (1 - v[m] * 0.5))
            z[m] += step[i]
        loss[i] = loss[i] if is_done else np.nan


@loop
def _normalize(starts, loss, numbers, entries):
    """Find λ and p for c = 0: p = e^s; on exit z holds s = t − λ."""
    rest, lse, lam, _, _, _, _, _ = numbers
    s, _, _, p, _, _ = entries
    base = starts[0]
    for i in range(len(loss)):
        lam[i] = lse[i]
        factor = exp(-lam[i])
        for m in range(starts[i] - base, starts[i + 1] - base):
            p[m] *= factor
            s[m] -= lam[i]
        loss[i] = rest[i] * factor


@loop
def _terms(tightness, targets, entries):
    """Write the terms of the entries with y > 0 in place of z."""
    z, y, _, p, _, _ = entries
    if tightness == 1:
        for m in range(len(y)):
            z[m] = (p[m] - y[m]) * (p[m] - y[m]) / p[m]
        return
    if _MIN_FROM_ROOT <= tightness < 1:
        # log(p/y) = log c − log ω, where ω + log ω = z: for larger c the digits of ω would cancel,
        # and for small c those of log c
        log_c = math.log(tightness)
        for m in range(len(y)):
            known = max(targets[m], MIN_Y)
            ratio = known / max(p[m], MIN_Y)
            rho = log_c - z[m] + tightness * ratio
            z[m] = entropy_term(known, rho, p[m], ratio, tightness)
        return
    if tightness > 0:
        for m in range(len(y)):
            known = max(targets[m], MIN_Y)
            ratio = known / max(p[m], MIN_Y)
            z[m] = entropy_term(known, -log(ratio), p[m], ratio, tightness)
        return
    for m in range(len(y)):
        known = max(targets[m], MIN_Y)
        z[m] = entropy_term(known, z[m] - log(known), p[m], 0.0, 0.0)


@loop
def _write(starts, columns, e, lam, at_support, out):
    """Write e^(t − λ), and what the entries with y > 0 have instead."""
    n, k = out.shape
    for i in range(n):
        begin, end = starts[i] - starts[0], starts[i + 1] - starts[0]
        if end - begin == k:
            whole = at_support[begin:end]
            for j in range(k):
                out[i, j] = whole[j]
            continue
        factor, row = exp(-lam[i]), e[i * k : (i + 1) * k]
        for j in range(k):
            out[i, j] = row[j] * factor
        for m in range(begin, end):
            out[i, columns[starts[0] + m]] = at_support[m]


@loop
def proportions(
    theta, starts, columns, targets, tightness, output, value, out, e, numbers, entries, stats
):
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    The buffers are e, flat, for some rows of k, ten of one number for each of these rows, and six
    of one number for each of their entries with y > 0. The array of by-products is empty, or has a
    row for each.
    """
    n = len(theta)
    top, total, rest, lse, lam, step, g, slope, bend, highest = numbers
    t, y, work, p, v, power = entries
    first = 0
    while first < n:
        last = first + 1
        while last < n and last - first < len(top) and starts[last + 1] - starts[first] <= len(t):
            last += 1
        begin, size = starts[first], starts[last] - starts[first]
        scores, edges = theta[first:last], starts[first : last + 1]
        used = t[:size], y[:size], work[:size], p[:size], v[:size], power[:size]
        exponentials(scores, top, e)
        if len(stats):
            finish_stats(scores, edges, columns, targets, top, e, stats[first:last])
        _collect(scores, edges, columns, top, e, rest, lse, t, p)
        own_targets = targets[begin : begin + size]
        for m in range(size):
            y[m] = tightness * own_targets[m]
        rows = last - first
        roots = rest[:rows], lse[:rows], lam[:rows], step[:rows]
        of_rows = *roots, g[:rows], slope[:rows], bend[:rows], highest[:rows]
        loss = total[:rows]
        if tightness > 0:
            _find_root(tightness, edges, loss, of_rows, used)
        else:
            _normalize(edges, loss, of_rows, used)
        _terms(tightness, own_targets, used)
        for i in range(rows):
            own_loss = 0.0
            for m in range(edges[i] - begin, edges[i + 1] - begin):
                own_loss += t[m]
            value[first + i] = loss[i] + own_loss
        if output == GRADIENT:
            for m in range(size):
                p[m] -= own_targets[m]
        elif output == SLOPE and tightness > 0:
            for m in range(size):
                p[m] *= p[m] / (p[m] + y[m])
        _write(edges, columns, e, lam, p, out[first:last])
        first = last


@dataclass(frozen=True, eq=False)
class ProportionKernel(CompiledKernel):
    """Sparse and dense targets, and none at all for the link."""

    knows_stats: ClassVar[bool] = True

    def run(self, task: BlockTask) -> None:
        output, rows, theta, value, out, scratch, stats = task
        lists = support_lists(self.targets, rows, scratch)
        k = theta.shape[1]
        most = max(1, _SCORES // k)
        longest = int(np.diff(lists[0]).max(initial=0))
        e = scratch.array("e", (most * k,), np.float64)
        numbers = tuple(scratch.stack("numbers", 10, (most,), np.float64))
        entries = tuple(scratch.stack("entries", 6, (max(_ENTRIES, longest),), np.float64))
        buffers = e, numbers, entries, NO_STATS if stats is None else stats
        proportions(theta, *lists, self.tightness, int(output), value, out, *buffers)
