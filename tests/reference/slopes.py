"""Hessians of the losses at a known maximizer, from the derivatives of the potentials.

The maximizer p of a separable loss solves ψ'(p) + c ψ''(p) (p − y) = s, with s = θ − τ on the
simplex and s = θ on a product. So d = dp/ds = 1/((1 + c) ψ'' + c ψ''' (p − y)), and the Hessian is
diag(d), less ddᵀ/⟨d, 1⟩ on the simplex.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from .recipe import Regularizer
from .smooth import BinaryNegentropy, SmoothLoss


def has_slope(regularizer: Regularizer) -> bool:
    """True unless the maximizer is no function of its own score and τ, as on a ball."""
    return regularizer.domain not in ("l1_ball", "l2_ball")


def has_kinks(regularizer: Regularizer) -> bool:
    """True if the maximizer reaches the boundary, where the Hessian jumps."""
    return regularizer.domain != "reals" and regularizer.name not in (
        "logistic",
        "sigmoid",
        "poisson",
    )


def slope(regularizer: Regularizer, p: np.ndarray, y: np.ndarray, c: float) -> np.ndarray:
    """d of every entry; 0 where the maximizer stays at the boundary."""
    if regularizer.is_perceptron:
        return np.zeros_like(p)
    loss = regularizer.loss_at(Fraction(c))
    with np.errstate(all="ignore"):
        if not isinstance(loss, SmoothLoss):  # half the squared norm
            inside = np.full_like(p, 1 / (1 + c))
        elif isinstance(loss.potential, BinaryNegentropy):
            variance = p * (1 - p)
            inside = variance
            if c > 0:
                inside = variance / ((1 + c) - c * (1 - 2 * p) * ((p - y) / variance))
        else:
            alpha = float(loss.potential.alpha)
            pull = c * (2 - alpha) * y
            pull = np.where(pull > 0, pull / p, 0.0)
            inside = p ** (2 - alpha) / (1 + c * (alpha - 1) + pull)
    if regularizer.domain == "reals":
        return inside
    return np.where((p > 0) & ((p < 1) | (regularizer.domain != "cube")), inside, 0.0)


def product(regularizer: Regularizer, d: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The Hessian with these slopes, applied to rows."""
    if regularizer.domain != "simplex":
        return d * v
    total = np.sum(d, axis=-1, keepdims=True)
    return d * (v - np.sum(d * v, axis=-1, keepdims=True) / np.where(total > 0, total, 1))
