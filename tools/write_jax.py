r"""Write src/fitzpatrick/jax/_functions.py, the functions of fitzpatrick.jax, from the registry.

The functions are committed as plain source, so that an editor, ``inspect``, a type checker and a
documentation tool can read them. Each docstring is composed of the formula of its family, of what
the regularizer's own docstring says about Ω, and of an example whose numbers come from the NumPy
core; the doctests compare JAX with them.

Run after a change to the registry, to a regularizer's docstring or to this script:
    python tools/write_jax.py            write the file
    python tools/write_jax.py --check    exit with 1 if the file is not up to date
"""

import inspect
import sys
import textwrap
from pathlib import Path

import numpy as np

from fitzpatrick.losses import Loss, ends, get_loss, regularizers_by_name
from fitzpatrick.regularizers import Regularizer

TARGET = Path(__file__).parents[1] / "src/fitzpatrick/jax/_functions.py"

# Name of a link in the registry → the name under which everybody knows it.
LINK_ALIASES = {"logistic": "softmax"}

INDENT = " " * 4
WIDTH = 100

HEADER = '''\
"""The losses and links of the registry, as functions of scores and targets.

Written by tools/write_jax.py: change that script and run it again, not this file.
"""

from jax import Array
from jax.typing import ArrayLike

from ..losses import get_loss
from ._arguments import as_static_tightness
from ._evaluate import link_at, loss_at_labels, loss_at_targets

__all__ = [
{names}]
'''

LOSS = '''

def {name}(
    scores: ArrayLike,
    {second}: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
{tightness}) -> Array:
    r"""{doc}
    """
{body}
'''

LINK = '''

def {name}(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""{doc}
    """
    return link_at(get_loss("{name}"), scores, axis, where)
'''

FENCHEL_YOUNG = r"""Fenchel-Young loss of ``{omega!r}``.

.. math:: L_{{FY}}(y, \theta) = \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle,
          \qquad \nabla_\theta L_{{FY}}(y, \theta) = \hat y(\theta) - y.

Never negative, and 0 exactly where the targets are the link of the scores: Ω(y) is included."""

FITZPATRICK = r"""Fitzpatrick loss of ``{omega!r}``.

.. math:: L_c(y, \theta) = \max_{{y'}} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                           + \langle y' - y, \theta\rangle,
          \qquad \nabla_\theta L_c(y, \theta) = y^\star - y,

where y* attains the maximum and c is the tightness: the Fitzpatrick loss
:math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
decreasing in c."""

LINK_FORMULA = r"""Link of ``{omega!r}``.

.. math:: \hat y(\theta) = \nabla\Omega^*(\theta)
          = \operatorname{{argmax}}_y \langle y, \theta\rangle - \Omega(y)."""

# The arguments, each as one paragraph.
SCORES = (
    "scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half "
    "precision is computed in float32."
)
REMOVED = " A score of −∞ removes a class whose target is 0."
TARGETS = (
    "targets: y, of the shape of scores, points of ``{domain!r}``. Their values are not checked. "
    "Derivatives in the targets hold along directions that stay in the domain{steep}."
)
STEEP = "; at a target of 0 they are infinite, as the slope of Ω is"
STEEP_UNLESS_ONE = "; at a target of 0 they are infinite, as the slope of Ω is, unless c = 1"
LABELS = (
    "labels: integers, the shape of scores without ``axis``: the class that has all of y. A label "
    "outside 0..k-1 makes the loss of its example NaN, with gradient 0."
)
AXIS = "axis: the axis of the classes."
WHERE = "where: boolean, broadcast to the shape of scores; classes that are False are "
WHERE_CLASSES = (
    "left out, as by a score of −∞: the loss is infinite if one of them has a positive target. An "
    "example without a class left has the loss 0."
)
WHERE_ENTRIES = "left out, with their targets."
WHERE_LINK = "predicted as 0."
TIGHTNESS = (
    "tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant: "
    "mark it static or close over it."
)

# Scores and targets of the examples: two rows in each domain.
EXAMPLE_SCORES = [[1.0, 0.0, -1.0], [0.5, 2.0, 0.0]]
EXAMPLE_LABELS = [0, 2]
EXAMPLE_TARGETS = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]
EXAMPLE_TIGHTNESS = 0.5
DIGITS = 4
SHOW = f">>> print(jnp.array_str({{}}, precision={DIGITS}, suppress_small=True))"


def about(regularizer: Regularizer) -> str:
    """What the regularizer's docstring says before its arguments and examples."""
    text = inspect.getdoc(type(regularizer)) or ""
    for section in ("Args:", "Example:"):
        text = text.split(f"\n{section}")[0]
    return text.strip()


def is_steep(omega: Regularizer) -> bool:
    """Whether the slope of Ω at a target of 0 is infinite."""
    with np.errstate(divide="ignore"):
        return not np.all(np.isfinite(omega.potential_gradient(np.zeros(1))))


def is_removed_by_minus_infinity(omega: Regularizer) -> bool:
    """Whether the prediction for a score of −∞ is 0."""
    return bool(omega.link(np.asarray([-np.inf, 0.0, 0.0]))[0] == 0)


def printed(values: np.ndarray) -> str:
    """What the examples print."""
    return np.array_str(np.asarray(values), precision=DIGITS, suppress_small=True)


def describe_loss(loss: Loss, name: str, labels: bool) -> str:
    """The docstring of a loss function."""
    omega = loss.regularizer
    has_tightness = loss.tightness > 0
    steep = (STEEP_UNLESS_ONE if has_tightness else STEEP) if is_steep(omega) else ""
    targets = TARGETS.format(domain=omega.domain, steep=steep)
    arguments = [
        SCORES + (REMOVED if is_removed_by_minus_infinity(omega) else ""),
        LABELS if labels else targets,
        AXIS,
        WHERE + (WHERE_ENTRIES if omega.is_entrywise else WHERE_CLASSES),
        *([TIGHTNESS] if has_tightness else []),
    ]
    second, given = ("labels", EXAMPLE_LABELS) if labels else ("targets", EXAMPLE_TARGETS)
    scores, y = np.asarray(EXAMPLE_SCORES), np.asarray(given)
    example = [
        ">>> import jax.numpy as jnp",
        f">>> from fitzpatrick.jax import {name}",
        f">>> scores = jnp.asarray({EXAMPLE_SCORES})",
        f">>> {second} = jnp.asarray({given})",
        f">>> losses = {name}(scores, {second})",
        SHOW.format("losses"),
        printed(loss.value(y, scores)),
    ]
    if has_tightness:
        half = get_loss(loss, EXAMPLE_TIGHTNESS)
        example += [
            f">>> losses = {name}(scores, {second}, tightness={EXAMPLE_TIGHTNESS})",
            SHOW.format("losses"),
            printed(half.value(y, scores)),
        ]
    return compose(
        (FITZPATRICK if has_tightness else FENCHEL_YOUNG).format(omega=omega),
        about(omega),
        arguments,
        "One loss per example: the shape of scores without ``axis``, in the dtype of scores.",
        example,
    )


def describe_link(loss: Loss, name: str) -> str:
    """The docstring of a link."""
    omega = loss.regularizer
    example = [
        ">>> import jax.numpy as jnp",
        f">>> from fitzpatrick.jax import {name}",
        f">>> predictions = {name}(jnp.asarray({EXAMPLE_SCORES}))",
        SHOW.format("predictions"),
        *printed(loss.link(np.asarray(EXAMPLE_SCORES))).splitlines(),
    ]
    return compose(
        LINK_FORMULA.format(omega=omega),
        about(omega),
        [SCORES, AXIS, WHERE + WHERE_LINK],
        "The predictions that belong to the scores, in their shape and dtype.",
        example,
    )


def wrap(argument: str) -> str:
    """The description of an argument, broken into lines."""
    return textwrap.fill(
        argument,
        width=WIDTH - len(INDENT),
        initial_indent=INDENT,
        subsequent_indent=2 * INDENT,
        break_on_hyphens=False,
    )


def compose(
    formula: str, omega: str, arguments: list[str], returns: str, example: list[str]
) -> str:
    """A docstring, indented as in a function's body."""
    parts = [
        formula,
        omega,
        "\n".join(["Args:", *map(wrap, arguments)]),
        f"Returns:\n{INDENT}{returns}",
        "\n".join(["Example:", *(INDENT + line for line in example)]),
    ]
    lines = "\n\n".join(parts).splitlines()
    return "\n".join([lines[0], *(f"{INDENT}{line}".rstrip() for line in lines[1:])])


def loss_source(name: str, labels: bool) -> tuple[str, str]:
    """Name and source of a loss function."""
    loss = get_loss(name)
    function = f"{name}_loss_with_integer_labels" if labels else f"{name}_loss"
    second = "labels" if labels else "targets"
    if loss.tightness > 0:
        tightness = f"{INDENT}*,\n{INDENT}tightness: float = 1.0,\n"
        body = f'loss = get_loss("{name}", as_static_tightness(tightness))\n{INDENT}'
    else:
        tightness = ""
        body = f'loss = get_loss("{name}")\n{INDENT}'
    body += f"return loss_at_{second}(loss, scores, {second}, axis, where)"
    doc = describe_loss(loss, function, labels)
    return function, LOSS.format(
        name=function, second=second, tightness=tightness, doc=doc, body=INDENT + body
    )


def render() -> str:
    """The whole file."""
    functions: dict[str, str] = {}
    for pair, omega in regularizers_by_name().items():
        for name in ends(pair):
            functions.update([loss_source(name, labels=False)])
            if omega.domain.has_labels:
                functions.update([loss_source(name, labels=True)])
        functions[pair] = LINK.format(name=pair, doc=describe_link(get_loss(pair), pair))
        if pair in LINK_ALIASES:
            functions[LINK_ALIASES[pair]] = f"\n\n{LINK_ALIASES[pair]} = {pair}\n"
    names = "".join(f'{INDENT}"{name}",\n' for name in sorted(functions))
    return HEADER.format(names=names) + "".join(functions.values())


def main(arguments: list[str]) -> int:
    """Write the file, or check it; returns the exit status."""
    source = render()
    if arguments == ["--check"]:
        if TARGET.read_text() != source:
            print(f"{TARGET} is not up to date: run python tools/write_jax.py")
            return 1
        return 0
    TARGET.write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
