"""Numbers and lines as the tables print them."""

import textwrap

_MAX_DIGITS = 9


def number(value: float, digits: int = 4) -> str:
    """Errors as the paper prints them, without the leading zero.

    Example:
        >>> number(0.18656), number(-0.5, 2), number(1.25, 2)
        ('.1866', '-.50', '1.25')
    """
    text = f"{value:.{digits}f}"
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + text.removeprefix("0")


def signed(value: float, digits: int = 4) -> str:
    """The same with its sign always shown."""
    return number(value, digits) if value < 0 else f"+{number(value, digits)}"


def signed_alike(*values: float) -> list[str]:
    """Numbers with their signs, and so many digits that none but zero looks like zero.

    Example:
        >>> signed_alike(0.0213, -0.00002), signed_alike(-0.5, 0.0)
        (['+.02130', '-.00002'], ['-.5000', '+.0000'])
    """
    digits = 4
    while digits < _MAX_DIGITS and any(value and not round(value, digits) for value in values):
        digits += 1
    return [signed(value, digits) for value in values]


def wrapped(text: str) -> list[str]:
    """Lines of at most 79 columns, indented below the first."""
    return textwrap.wrap(
        text, 79, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def edge_of_grid(alpha: float, *, is_weakest: bool) -> str:
    """A sentence on a choice at an end of the grid, with the way beyond it."""
    end, factor = ("weakest", 0.1) if is_weakest else ("strongest", 10.0)
    further = ",".join(f"{alpha * factor**step:g}" for step in (0, 1, 2))
    return f"α = {alpha:g} is the {end} penalty that was tried: --alphas {further} goes further"
