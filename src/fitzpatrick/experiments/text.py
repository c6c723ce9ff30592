"""Numbers and lines as the tables print them."""

import textwrap


def number(value: float, digits: int = 4) -> str:
    """Errors as the paper prints them, without the leading zero.

    Example:
        >>> number(0.18656), number(-0.5, 2), number(1.25, 2)
        ('.1866', '-.50', '1.25')
    """
    text = f"{value:.{digits}f}"
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + text.removeprefix("0")


def signed(value: float) -> str:
    """The same with its sign always shown."""
    return number(value) if value < 0 else f"+{number(value)}"


def wrapped(text: str) -> list[str]:
    """Lines of at most 79 columns, indented below the first."""
    return textwrap.wrap(
        text, 79, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
