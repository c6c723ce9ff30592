"""Working precision: how many digits a value needs, and how it is rounded to a float.

A loss is a difference of large numbers: with scores of 1e4 and a loss of 1e-300, the definition
cancels 304 digits. ``resolve`` therefore repeats an evaluation with more digits until the loss
has the number of correct digits asked for, or until it is certainly below every positive float.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf

Number = mpf | Fraction

# Digits set aside for rounding errors, conditioning and the final Newton correction.
GUARD_DIGITS = 12
# The smallest positive double is 4.9e-324: what is known to be below 1e-340 is zero.
UNDERFLOW_DIGITS = 340


@dataclass(frozen=True)
class Evaluation:
    """A loss, its maximizer (None where it is not unique), and the size of what cancelled.

    ``magnitude`` is the sum of the absolute values of the terms that were added to give
    ``value``, so ``magnitude * 10**-digits`` bounds the rounding error; 0 means exact.
    """

    value: Number
    y_star: tuple[Number, ...] | None
    magnitude: Number = Fraction(0)

    def rounded(self, size: int) -> tuple[float, np.ndarray]:
        """The loss and the maximizer as doubles; a row of NaN where the latter is not unique."""
        value = to_float(self.value) + 0.0  # a zero may come with a sign
        if value < 0:
            raise ArithmeticError(f"negative loss {value}: the maximum is wrong")
        if self.y_star is None:
            return value, np.full(size, np.nan)
        return value, np.array([to_float(number) for number in self.y_star])

    def rounds_safely(self, digits: int) -> bool:
        """True if ``digits`` correct digits decide all the doubles: none is next to a tie."""
        if isinstance(self.value, Fraction):
            return True
        with mp.workdps(digits + GUARD_DIGITS):
            above, below = 1 + mpf(10) ** -digits, 1 - mpf(10) ** -digits
            return all(
                to_float(number * above) == to_float(number * below)
                for number in (self.value, *(self.y_star or ()))
            )


def resolve(attempt: Callable[[], Evaluation], digits: int) -> Evaluation:
    """Run ``attempt`` at rising precision until its value has ``digits`` correct digits."""
    precision = digits + GUARD_DIGITS + 8
    while True:
        with mp.workdps(precision):
            evaluation = attempt()
            if not evaluation.magnitude:
                return evaluation
            error = evaluation.magnitude * mpf(10) ** (GUARD_DIGITS - precision)
            if evaluation.value >= error * mpf(10) ** digits:
                return evaluation
            if error < mpf(10) ** (-UNDERFLOW_DIGITS - digits):
                return evaluation
            missing = int(mp.log10(evaluation.magnitude)) + digits + GUARD_DIGITS
            if evaluation.value > error:
                missing -= int(mp.floor(mp.log10(evaluation.value)))
            else:
                missing = min(2 * precision, missing + UNDERFLOW_DIGITS)
        if precision > 5000:
            raise ArithmeticError("the evaluation does not settle at 5000 digits")
        precision = max(missing + 4, precision + 10)


def to_float(number: Number) -> float:
    """The double nearest to ``number``, ties to even, also among subnormals.

    Integer true division is correctly rounded in Python; mpmath's own conversion rounds twice
    among subnormals.
    """
    if number < 0:
        return -to_float(-number)
    if isinstance(number, Fraction):
        return number.numerator / number.denominator
    _, mantissa, exponent, bit_count = number._mpf_
    if exponent >= 0:
        return float(int(mantissa) << exponent)
    if exponent + bit_count < -1100:
        return 0.0
    return int(mantissa) / (1 << -exponent)
