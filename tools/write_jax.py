r"""Write src/fitzpatrick/jax/_functions.py, the functions of fitzpatrick.jax, from the registry.

The functions are committed as plain source, so that an editor, ``inspect``, a type checker and a
documentation tool can read them. Each docstring has the formula of its family and an example whose
numbers come from the NumPy core; the doctests compare JAX with them. One function of a kind
explains the arguments.

Run after a change to the registry, to a regularizer's docstring or to this script:
    python tools/write_jax.py            write the file
    python tools/write_jax.py --check    exit with 1 if the file is not up to date
"""

import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fitzpatrick.losses import Loss, ends, get_loss, regularizers_by_name
from fitzpatrick.regularizers import Regularizer

TARGET = Path(__file__).parents[1] / "src/fitzpatrick/jax/_functions.py"

# Name of a link in the registry → the name under which everybody knows it.
LINK_ALIASES = {"logistic": "softmax"}

INDENT = " " * 4
WIDTH = 100

HEADER = """\
\"""The losses and links of the registry, as functions of scores and targets.

Written by tools/write_jax.py: change that script and run it again, not this file.
\"""

# fmt: off

from jax import Array
from jax.typing import ArrayLike

from ..losses import get_loss
from ._arguments import as_static_tightness
from ._evaluate import link_at, loss_at_labels, loss_at_targets

__all__ = [
{names}]
"""

FUNCTION = """

def {name}({parameters}) -> Array:
    r\"""{doc}
    \"""
{body}
"""

FENCHEL_YOUNG = r"""Fenchel-Young loss of ``{omega!r}``, at {second}.

.. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle
"""
FITZPATRICK = r"""Fitzpatrick loss of ``{omega!r}``, at {second}.

.. math:: \max_{{y'}} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
          + \langle y' - y, \theta\rangle
"""
FAMILY = r"""
Here c is the tightness, and the gradient in the scores θ is y* − y, where y* attains the
maximum: the Fitzpatrick loss
:math:`F[\partial\Omega](y, \theta) - \langle y, \theta\rangle` at c = 1, the Fenchel-Young
loss at c = 0. Never negative, 0 exactly where the targets are the link of the scores, and
decreasing in c.
"""
LINK = r"""Link of ``{omega!r}``.

.. math:: \hat y(\theta) = \operatorname{{argmax}}_y \langle y, \theta\rangle - \Omega(y)

Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
"""

# The arguments, each as one paragraph.
SCORES = (
    "scores: θ, floating-point; the classes along ``axis``, any other axes are examples. Half "
    "precision is computed in float32."
)
REMOVED = " A score of −∞ removes a class whose target is 0."
TARGETS = (
    "targets: y, of the shape of scores, points of the domain of Ω. Their values are not checked. "
    "Derivatives in the targets hold along directions that stay in the domain."
)
STEEP = "At a target of 0 derivatives in the targets are infinite, as the slope of Ω is."
STEEP_UNLESS_ONE = STEEP.removesuffix(".") + ", unless c = 1."
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
RETURNS = "One loss per example, in the dtype of scores and in their shape without ``axis``."
TIGHTNESS = (
    "tightness: c, a Python number, finite and not negative. Under ``jax.jit`` it is a constant: "
    "mark it static or close over it."
)

EXAMPLE_SCORES = [1.0, 0.0, -1.0]
EXAMPLE_LABEL = 1
EXAMPLE_TARGETS = [0.5, 0.5, 0.0]
DIGITS = 4


def is_steep(omega: Regularizer) -> bool:
    """Whether the slope of Ω at a target of 0 is infinite."""
    with np.errstate(divide="ignore"):
        return not np.all(np.isfinite(omega.potential_gradient(np.zeros(1))))


def is_removed_by_minus_infinity(omega: Regularizer) -> bool:
    """Whether the prediction for a score of −∞ is 0."""
    return bool(omega.link(np.asarray([-np.inf, 0.0, 0.0]))[0] == 0)


@dataclass(frozen=True)
class LossFunction:
    """A loss of the registry as a function of scores and of targets, or of labels."""

    loss_name: str
    takes_labels: bool

    @property
    def name(self) -> str:
        """The name of the function."""
        return f"{self.loss_name}_loss" + self.takes_labels * "_with_integer_labels"

    @property
    def second(self) -> str:
        """The name of its second argument."""
        return "labels" if self.takes_labels else "targets"

    @property
    def loss(self) -> Loss:
        """The loss of the core."""
        return get_loss(self.loss_name)

    @property
    def has_tightness(self) -> bool:
        """Whether the user may choose a tightness."""
        return self.loss.tightness > 0

    @property
    def kind(self) -> tuple[bool, bool]:
        """Functions of a kind share the explanation of their arguments."""
        return self.takes_labels, self.loss.regularizer.is_entrywise

    @property
    def note(self) -> str:
        """What is to be said of the derivatives in the targets."""
        if self.takes_labels or not is_steep(self.loss.regularizer):
            return ""
        return STEEP_UNLESS_ONE if self.has_tightness else STEEP

    def arguments(self) -> list[str]:
        """The arguments, explained."""
        omega = self.loss.regularizer
        return [
            SCORES + (REMOVED if is_removed_by_minus_infinity(omega) else ""),
            LABELS if self.takes_labels else TARGETS,
            AXIS,
            WHERE + (WHERE_ENTRIES if omega.is_entrywise else WHERE_CLASSES),
            TIGHTNESS,
        ]

    def example(self) -> list[str]:
        """A call, and what it prints."""
        y = EXAMPLE_LABEL if self.takes_labels else EXAMPLE_TARGETS
        value = self.loss.value(np.asarray(y), np.asarray(EXAMPLE_SCORES))
        return [
            ">>> import jax.numpy as jnp",
            f">>> from fitzpatrick.jax import {self.name}",
            f">>> scores, {self.second} = jnp.asarray({EXAMPLE_SCORES}), jnp.asarray({y})",
            f">>> round(float({self.name}(scores, {self.second})), {DIGITS})",
            str(round(float(value), DIGITS)),
        ]

    def source(self, elsewhere: str) -> str:
        """The function; its arguments are explained in ``elsewhere``, which may be itself."""
        formula = FITZPATRICK if self.has_tightness else FENCHEL_YOUNG
        text = formula.format(omega=self.loss.regularizer, second=self.second)
        if self.name == elsewhere:
            text += FAMILY + "\n" + "\n".join(["Args:", *map(wrap, self.arguments())])
            text += f"\n\nReturns:\n{INDENT}{RETURNS}"
            text += f"\n\n{self.note}" if self.note else ""
        else:
            text += f"\nThe arguments are explained in :func:`{elsewhere}`."
            text += f"\n{self.note}" if self.note else ""
        parameters = f"\n{INDENT}scores: ArrayLike, {self.second}: ArrayLike, axis: int = -1,"
        parameters += " where: ArrayLike | None = None,"
        name = f'"{self.loss_name}"'
        if self.has_tightness:
            parameters += f"\n{INDENT}*, tightness: float = 1.0,"
            name += ", as_static_tightness(tightness)"
        body = f"""\
    loss = get_loss({name})
    return loss_at_{self.second}(loss, scores, {self.second}, axis, where)"""
        doc = indented(text, self.example())
        return FUNCTION.format(name=self.name, parameters=f"{parameters}\n", doc=doc, body=body)


def link_source(name: str) -> str:
    """The function of a link."""
    loss = get_loss(name)
    example = [
        ">>> import jax.numpy as jnp",
        f">>> from fitzpatrick.jax import {name}",
        f">>> print(jnp.array_str({name}(jnp.asarray({EXAMPLE_SCORES})), precision={DIGITS}))",
        np.array_str(loss.link(np.asarray(EXAMPLE_SCORES)), precision=DIGITS),
    ]
    text = LINK.format(omega=loss.regularizer)
    return FUNCTION.format(
        name=name,
        parameters="scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None",
        doc=indented(text, example),
        body=f'{INDENT}return link_at(get_loss("{name}"), scores, axis, where)',
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


def indented(text: str, example: list[str]) -> str:
    """A docstring, indented as in a function's body."""
    lines = [*text.strip().splitlines(), "", "Example:", *(INDENT + line for line in example)]
    return "\n".join([lines[0], *(f"{INDENT}{line}".rstrip() for line in lines[1:])])


def render() -> str:
    """The whole file."""
    omegas = regularizers_by_name()
    losses = [
        LossFunction(name, takes_labels)
        for pair, omega in omegas.items()
        for name in ends(pair)
        for takes_labels in (False, True)
        if omega.domain.has_labels or not takes_labels
    ]
    # the first function of a kind that has all arguments explains them
    elsewhere = {f.kind: f.name for f in reversed(losses) if f.has_tightness}
    functions = {f.name: f.source(elsewhere[f.kind]) for f in losses}
    functions.update({name: link_source(name) for name in omegas})
    functions.update({new: f"\n\n{new} = {name}\n" for name, new in LINK_ALIASES.items()})
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
