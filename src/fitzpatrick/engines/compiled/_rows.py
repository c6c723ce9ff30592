"""What loops do to a row, or begin with; a support lists the entries y > 0, row after row."""

import numpy as np

from ._jit import loop, part
from ._math import exp


@part
def divided_sum(value, divisor, out):
    """The sum of the losses of rows over a number, by which their outputs are divided, too."""
    total = 0.0
    for i in range(len(value)):
        total += value[i]
    if divisor != 1:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] /= divisor
    return total / divisor


@loop
def highest(x):
    """The largest entry of a row; NaN is ignored.

    In eight independent chains, since LLVM does not vectorise it by itself.
    """
    a = b = c = d = e = f = g = h = -np.inf
    n = len(x) // 8
    for i in range(n):
        j = 8 * i
        a = max(a, x[j])
        b = max(b, x[j + 1])
        c = max(c, x[j + 2])
        d = max(d, x[j + 3])
        e = max(e, x[j + 4])
        f = max(f, x[j + 5])
        g = max(g, x[j + 6])
        h = max(h, x[j + 7])
    top = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for j in range(8 * n, len(x)):
        top = max(top, x[j])
    return top


@loop
def exponentials(theta, top, e):
    """Write the largest score of each row, and exp(θ − max θ), row after row, to a flat array."""
    n, k = theta.shape
    for i in range(n):
        top[i] = highest(theta[i])
        row = e[i * k : (i + 1) * k]
        for j in range(k):
            row[j] = theta[i, j] - top[i]
    for m in range(n * k):
        e[m] = exp(e[m])


@loop
def gather(y, starts, columns, values):
    """Write the lists of dense rows, and return how long they are."""
    k = y.shape[1]
    size = 0
    for i in range(len(y)):
        starts[i] = size
        count = 0
        for j in range(k):
            count += y[i, j] > 0
        if count == k:
            all_columns, all_values = columns[size : size + k], values[size : size + k]
            for j in range(k):
                all_columns[j] = j
                all_values[j] = y[i, j]
            size += k
            continue
        for j in range(k):
            columns[size] = j
            values[size] = y[i, j]
            size += y[i, j] > 0
    starts[len(y)] = size
    return size


@part
def are_classes(labels, k):
    """True if all labels are among k classes."""
    lowest, highest = 0, 0
    for label in labels:
        lowest = min(lowest, label)
        highest = max(highest, label)
    return lowest >= 0 and highest < k


# A slice costs as much as a short row: the functions below get an array and where to look in it.


@part
def take(x, columns, begin, end, own):
    """Write the entries of a row at its support; all of them are in order."""
    if end - begin == len(x):
        for m in range(len(x)):
            own[m] = x[m]
        return
    for m in range(begin, end):
        own[m - begin] = x[columns[m]]


@part
def give(own, columns, begin, end, x):
    """Write them back."""
    if end - begin == len(x):
        for m in range(len(x)):
            x[m] = own[m]
        return
    for m in range(begin, end):
        x[columns[m]] = own[m - begin]


@part
def drop(x, columns, begin, end):
    """Put −∞ at the support of a row, and return how many of its entries count: all, or none."""
    if end - begin == len(x):
        return 0
    for m in range(begin, end):
        x[columns[m]] = -np.inf
    return len(x)


@part
def put(own, columns, begin, end, i, out):
    """Write the entries of row i at its support."""
    k = out.shape[1]
    if end - begin == k:
        for m in range(k):
            out[i, m] = own[m]
        return
    for m in range(begin, end):
        out[i, columns[m]] = own[m - begin]
