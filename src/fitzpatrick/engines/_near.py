"""The divergence of an entropy near y = p, where its terms are differences that lose digits."""

import math

import numpy as np

from ._blocks import FloatArray

# Below this |log(p/y)| the terms are a series; above, differences of numbers up to 32 times as
# large.
NEAR = 1 / 16
_TERMS = 10


def near_terms(rho: FloatArray, tightness: float) -> FloatArray:
    """E(ρ) + c E(−ρ) for small ρ = log(p/y), with E(x) = exp(x) − 1 − x."""
    total = np.zeros_like(rho)
    for n in range(_TERMS, 1, -1):
        total += (1 + tightness * (-1) ** n) / math.factorial(n)
        total *= rho
    return np.asarray(total * rho)
