r"""What happens to scores before a loss, inside of its kernel, and numbers of rows beside it.

A loss sees :math:`s = f u` of :math:`u = c \tanh(\theta/c)`, or of θ itself; ``o.transform`` is
"scale", "cap", "both", or nothing. Masked classes, with the score −∞, stay masked.

The numbers of a row (:class:`fitzpatrick.torch.RowStats`) come from its maximum, Σ e^d and
Σ e^d d, where d is a score less the maximum.
"""

import triton
import triton.language as tl

from .math import exp, relu, tanh


@triton.jit
def load_transform(factor, cap, o: tl.constexpr):
    """The factor and the cap in the kernel's precision."""
    f = tl.full((), 1.0, o.acc)
    if o.transform == "scale" or o.transform == "both":
        f = tl.load(factor).to(o.acc)
    return f, (tl.full((), 0.0, tl.float64) + cap).to(o.acc)


@triton.jit
def capped(x, given, o: tl.constexpr):
    """u of a score."""
    if o.transform == "cap" or o.transform == "both":
        u = given[1] * tanh(x * (1.0 / given[1]), o.careful, o.fast)
        return tl.where(x == float("-inf"), x, u)
    else:
        return x


@triton.jit
def scaled(u, given, o: tl.constexpr):
    """The score that the loss sees."""
    if o.transform == "scale" or o.transform == "both":
        return tl.where(u == float("-inf"), u, u * given[0])
    else:
        return u


@triton.jit
def seen(x, given, o: tl.constexpr):
    """The score that the loss sees, from the one that is given."""
    return scaled(capped(x, given, o), given, o)


@triton.jit
def with_slope(g, u, given, o: tl.constexpr):
    """The derivative in θ from that in s."""
    if o.transform == "cap" or o.transform == "both":
        ratio = u * (1.0 / given[1])
        g *= tl.where(u == float("-inf"), 1.0, relu(1.0 - ratio * ratio))
    if o.transform == "scale" or o.transform == "both":
        g *= given[0]
    return g


@triton.jit
def along_factor(g, u):
    """Terms of the derivative in f."""
    return tl.where(g == 0, 0.0, g * u)


@triton.jit
def rebased(top, total, mean, base):
    """Σ e^d and Σ e^d d of parts with their own maxima, for another one."""
    gap = tl.where(top == float("-inf"), 0.0, top - base)
    decay = tl.where(top == float("-inf"), 0.0, tl.exp(gap))
    return total * decay, (mean + total * gap) * decay


@triton.jit
def finite_top(top):
    """A maximum that may be taken off −∞."""
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def sums_of_block(x, o: tl.constexpr):
    """The maximum, Σ e^d and Σ e^d d of the rows of a block."""
    top = tl.max(x, axis=1)
    d = x - finite_top(top)[:, None]
    e = exp(d, o.fast)
    return top, tl.sum(e, axis=1), tl.sum(tl.where(e == 0, 0.0, e * d), axis=1)


@triton.jit
def merged(top, total, mean, other_top, other_total, other_mean):
    """The sums of two parts together."""
    both = tl.maximum(top, other_top)
    total, mean = rebased(top, total, mean, finite_top(both))
    other_total, other_mean = rebased(other_top, other_total, other_mean, finite_top(both))
    return both, total + other_total, mean + other_mean


@triton.jit
def over_places(tops, totals, means):
    """The sums of a row from those of its places."""
    top = tl.max(tops, axis=0)
    totals, means = rebased(tops, totals, means, finite_top(top))
    return top, tl.sum(totals, axis=0), tl.sum(means, axis=0)


@triton.jit
def store_numbers(numbers, row, inside, top, total, mean, score, best):
    """log Σ e^s, the entropy, the target's score, and whether nothing is higher than ``best``."""
    lse = tl.where((top == float("inf")) | (total == 0), top, top + tl.log(total))
    is_correct = (best >= top) & ((total == total) | (top == float("inf")))
    at = numbers + 4 * row
    tl.store(at, lse, mask=inside)
    tl.store(at + 1, tl.log(total) - mean / total, mask=inside)
    tl.store(at + 2, score, mask=inside)
    tl.store(at + 3, tl.where(is_correct, 1.0, 0.0), mask=inside)
