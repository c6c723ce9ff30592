"""Losses and gradients of rows at any tightness, independent of the package.

The root τ of a row is bracketed and bisected in float64, then refined in extended precision, where
the terms of the loss are summed as the mathematics states them: D + c (Q − D) + y (−s)₊, with D the
Bregman divergence and Q the quadratic form of the potential at the maximizer.
"""

import numpy as np
from scipy.special import wrightomega

LONG = np.longdouble


def omega(z):
    """The root of ω + log ω = z in extended precision."""
    with np.errstate(all="ignore"):
        out = wrightomega(z.astype(float)).astype(LONG)
        for _ in range(2):
            step = out * (z - out - np.log(out)) / (1 + out)
            out = np.where(np.isfinite(step), out + step, out)
        return np.where(z < -700, np.exp(z), out)  # 0 in float64


def entries(name, s, y, c):
    """The maximizer p at s = θ − τ, and its derivative."""
    if name == "logistic":
        with np.errstate(all="ignore"):
            w = (
                omega(np.log(y) + np.log(LONG(c)) - s)
                if s.dtype == LONG
                else wrightomega(np.log(y) + np.log(c) - s)
            )
            p = np.where((y > 0) & (w > 0), c * y / w, np.exp(s))
            return p, np.where(p > 0, p * p / (p + c * y), 0)
    if name == "sparsemax":
        return np.maximum(s + c * y, 0) / (1 + c), np.where(s + c * y > 0, 1 / (LONG(1) + c), 0)
    width = 2 + LONG(c)
    length = np.hypot(s, np.sqrt(4 * width * c * y))
    with np.errstate(all="ignore"):
        q = np.where(s > 0, (s + length) / (2 * width), 2 * c * y / (length - s))
        q = np.where(q > 0, q, 0)
        return q * q, np.where(q > 0, 2 * q * q / length, 0)


def terms(name, s, p, y, c):
    """The loss of each entry."""
    with np.errstate(all="ignore"):
        if name == "logistic":
            # p may underflow, its logarithm does not
            log_p = s if c == 0 else np.log(LONG(c) * y) - np.log(omega(np.log(LONG(c) * y) - s))
            divergence = np.where(y > 0, y * (np.log(y) - log_p), 0) - y + p
            square = np.where(y > 0, (p - y) ** 2 / p, p)
            normal = LONG(0)
        elif name == "sparsemax":
            divergence, square = (y - p) ** 2 / 2, (y - p) ** 2
            normal = np.where(y > 0, y * np.maximum(-(s + c * y), 0), 0)
        else:
            u, q = np.sqrt(y), np.sqrt(p)
            divergence = (u - q) ** 2 * (2 * u + q) * 2 / 3
            square = np.where(p > 0, (p - y) ** 2 / np.where(q > 0, q, 1), 0)
            normal = np.where((y > 0) & (p == 0), y * np.maximum(-s, 0), 0)
            square = np.where((p == 0) & (y > 0), np.inf, square)
        if c == 0:
            return divergence + normal
        out = divergence + c * (square - divergence) + normal
        return np.where(np.isinf(square), square, out)


def loss_and_gradient(name, c, y, theta):
    """Of rows y and θ of shape (n, k), in extended precision."""
    y, theta = np.asarray(y, LONG), np.asarray(theta, LONG)
    x = theta - theta.max(axis=1, keepdims=True)
    top = (x + c * y if name == "sparsemax" else x).max(axis=1, keepdims=True).astype(float)
    if name == "logistic":
        low = np.log(np.exp(x).sum(axis=1, keepdims=True)).astype(float)
        high = low + 2 * c + 1e-9  # c if the targets sum to one
        low -= 1e-9
    else:
        low = top - (1 if name == "sparsemax" else 2) - c
        high = top
    x64, y64 = x.astype(float), y.astype(float)
    for _ in range(54):
        middle = (low + high) / 2
        is_left = entries(name, x64 - middle, y64, c)[0].sum(axis=1, keepdims=True) > 1
        low, high = np.where(is_left, middle, low), np.where(is_left, high, middle)
    tau = ((low + high) / 2).astype(LONG)
    for _ in range(3):
        p, d = entries(name, x - tau, y, c)
        tau = tau + (p.sum(axis=1, keepdims=True) - 1) / d.sum(axis=1, keepdims=True)
    s = x - tau
    p, _ = entries(name, s, y, c)
    return terms(name, s, p, y, c).sum(axis=1), p - y
