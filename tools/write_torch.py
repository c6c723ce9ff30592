"""Write the PyTorch front end: a plain function and a plain module class for every registry name.

The code is written here and committed, so that an editor, ``inspect``, a type checker and a
documentation tool see it as it is. Numbers in the examples are those of the core.

    python tools/write_torch.py
"""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fitzpatrick as fp
from fitzpatrick.engines import find_kernel
from fitzpatrick.engines.triton.specs import parse_kernel
from fitzpatrick.losses import ends, regularizers_by_name

FOLDER = Path(__file__).parents[1] / "src" / "fitzpatrick" / "torch"
WRITTEN = "# Written by tools/write_torch.py: change that and run it again."
WIDTH = 100
NEWLINE = "\n"


@dataclass(frozen=True)
class Option:
    """An argument of a loss beyond scores and target."""

    name: str
    parameter: str
    doc: str
    is_keyword_only: bool

    @property
    def is_common(self) -> bool:
        """Whether all losses of a kind have it."""
        return self.name != "pos_weight"

    @property
    def type(self) -> str:
        """Its annotation."""
        return self.parameter.removeprefix(f"{self.name}: ").split(" = ")[0]


def parse_options(text: str) -> tuple[Option, ...]:
    """Options as they are written below: parameters, with their descriptions indented."""
    options: list[Option] = []
    positional, _, keyword_only = text.partition("\n*\n")
    for part, is_keyword_only in ((positional, False), (keyword_only, True)):
        for block in re.split(r"\n(?=\w)", part.strip()) if part.strip() else ():
            parameter, _, doc = block.partition("\n")
            name = parameter.split(":")[0]
            options.append(Option(name, parameter, " ".join(doc.split()), is_keyword_only))
    return tuple(options)


@dataclass(frozen=True)
class Kind:
    """How the entries of a target belong together, and what follows from that.

    Attributes:
        function: what computes the losses.
        targets: what they are a function of, in a few words.
    """

    function: str
    targets: str
    input: str
    target: str
    returns: str
    options: tuple[Option, ...]


TIGHTNESS = Option(
    "tightness", "tightness: float = 1.0", "c, any finite number that is not negative.", True
)

CLASSES = Kind(
    function="class_loss",
    targets="at class indices or proportions",
    input="scores; classes in axis 1 (axis 0 of a vector), or in ``dim``. Half precision is "
    "computed in float32. A class with the score −∞ is masked.",
    target="class indices, with the shape of ``input`` without its classes, or proportions, with "
    "the shape of ``input``.",
    returns="The loss, in the dtype of ``input``, differentiable twice in it, and in a ``weight`` "
    "that leaves the target as it is. Smoothed targets and proportions count Ω(target), which "
    "``cross_entropy`` leaves out.",
    options=parse_options("""
weight: Tensor | None = None
    one weight per class. A class index weighs its class's weight, a row of proportions
    ⟨weight, target⟩, which keeps the loss convex and its link. Smoothed class indices q are as in
    ``cross_entropy``: their target becomes weight ∘ q / ⟨weight, q⟩, their weight ⟨weight, q⟩, so
    that they and smoothed one-hot proportions are not the same.
ignore_index: int = -100
    class index that counts for nothing; proportions have none.
reduction: str = "mean"
    ``"mean"`` (over the total weight of class indices, over the number of rows of proportions),
    ``"sum"`` or ``"none"``.
label_smoothing: float = 0.0
    ε in [0, 1]; targets become (1 − ε) target + ε / k.
*
dim: int | None = None
    axis of the classes.
engine: str | None = None
    ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for the faster
    one that is there.
validate: bool | None = None
    whether to look at the targets' values: labels in range, proportions that sum to one. None looks
    on the CPU alone, since a GPU would have to wait. What is not looked at is not repaired: a label
    out of range makes its row NaN.
process_group: "ProcessGroup | None" = None
    processes that share the classes: each has the scores of some of them, next to one another, in
    the order of the ranks. Class indices and ``weight`` are of all classes and the same on every
    rank, proportions are those of the rank's classes. All ranks get the same loss, differentiable
    once, and each the gradient in its own scores. A ``DTensor`` that is sharded along the classes
    needs no group.
"""),
)
ENTRIES = Kind(
    function="entry_loss",
    targets="entry by entry",
    input="scores, of any shape. Half precision is computed in float32.",
    target="numbers in ``{domain!r}``, with the shape of ``input``.",
    returns="The loss, in the dtype of ``input``, differentiable twice in it. It counts Ω(target), "
    "a constant that ``binary_cross_entropy_with_logits`` leaves out for targets between 0 and 1.",
    options=parse_options("""
weight: Tensor | None = None
    weights that can be broadcast to ``input``.
reduction: str = "mean"
    ``"mean"`` (over entries), ``"sum"`` or ``"none"``.
pos_weight: Tensor | None = None
    weight of the positive side of each target, broadcast to ``input``: a loss
    pos_weight · y · (…) + (1 − y) · (…), written as the weight pos_weight · y + 1 − y of the target
    pos_weight · y / (pos_weight · y + 1 − y).
*
engine: str | None = None
    ``"triton"`` for GPU kernels, ``"reference"`` for the formulas of the core, None for the faster
    one that is there.
validate: bool | None = None
    whether to look at the targets' values; None looks on the CPU alone.
"""),
)
ROWS = Kind(
    function="row_loss",
    targets="vector by vector",
    input="scores, vectors along ``dim``. Half precision is computed in float32.",
    target="vectors of ``{domain!r}``, with the shape of ``input``.",
    returns="The loss, in the dtype of ``input``, differentiable twice in it.",
    options=parse_options("""
reduction: str = "mean"
    ``"mean"`` (over vectors), ``"sum"`` or ``"none"``.
*
dim: int = -1
    axis of the vectors.
engine: str | None = None
    ``"reference"`` or None; there are no kernels for this loss.
validate: bool | None = None
    whether to look at the targets' values; None looks on the CPU alone.
"""),
)


HEAD_OPTIONS = parse_options("""
*
weight: Tensor | None = None
    one weight per class, as in :func:`{name}_loss`; it has no derivative here.
ignore_index: int = -100
    class index that counts for nothing; its rows are left out of the matrix products.
reduction: str = "mean"
    ``"mean"``, ``"sum"`` or ``"none"``.
label_smoothing: float = 0.0
    ε in [0, 1]; targets become (1 − ε) target + ε / k.
chunk_size: int | None = None
    rows whose scores are held at once. None chooses so that they take 300 MiB on a GPU and 8 MiB on
    a CPU, or less.
accumulate_dtype: torch.dtype | None = None
    dtype in which the gradient of ``linear_weight`` is summed over the chunks: ``torch.float32``
    or its own. None keeps its error below twice that of a single product: its own dtype for at most
    16 chunks on a GPU, else float32.
engine: str | None = None
    as in :func:`{name}_loss`.
validate: bool | None = None
    whether to look at the targets' values, as in :func:`{name}_loss`.
process_group: "ProcessGroup | None" = None
    processes that share the classes: each has its rows of ``linear_weight`` and ``linear_bias``,
    and all have the same ``input``, whose gradient is summed over them; see :func:`{name}_loss`.
""")
HEAD_ARGUMENTS = (
    ("input", "features, (…, h)."),
    ("linear_weight", "weight of the layer, (k, h)."),
    (
        "target",
        "class indices, with the shape of ``input`` without its last axis, or proportions, (…, k).",
    ),
    ("linear_bias", "bias of the layer, (k,), or None."),
)
HEAD_RETURNS = (
    "The loss, in the dtype that the loss of ``torch.nn.functional.linear`` would have, "
    "differentiable once in ``input``, ``linear_weight`` and ``linear_bias``."
)


def module_name(name: str) -> str:
    """The class of a registry name.

    Example:
        >>> module_name("fitzpatrick_sparse_sigmoid")
        'FitzpatrickSparseSigmoidLoss'
    """
    return "".join(word.capitalize() for word in name.split("_")) + "Loss"


def rounded(x: Any) -> list[float]:
    """Four digits; adding zero makes −0 a 0, as rounding in another precision may."""
    return [round(float(entry), 4) + 0.0 for entry in x]


@dataclass(frozen=True)
class Named:
    """A loss of the registry, and what is written about it."""

    name: str

    @property
    def loss(self) -> fp.Loss:
        """The loss of the core."""
        return fp.get_loss(self.name)

    @property
    def pair(self) -> str:
        """The name of the regularizer, which is that of its link and of its Fenchel-Young loss."""
        return ends(self.name)[0]

    @property
    def is_fitzpatrick(self) -> bool:
        """Whether the loss has a tightness to choose."""
        return isinstance(self.loss, fp.FitzpatrickLoss)

    @property
    def kind(self) -> Kind:
        """By what the regularizer and its set say of themselves."""
        omega = self.loss.regularizer
        if omega.domain.has_labels:
            return CLASSES
        return ENTRIES if omega.is_entrywise else ROWS

    @property
    def options(self) -> list[Option]:
        """Positional ones first, then the tightness."""
        options = list(self.kind.options)
        # not from the front end, which may not be there yet
        coordinates = self.loss.regularizer.domain.coordinates
        if coordinates is None or coordinates.bounds != (0.0, 1.0):
            options = [option for option in options if option.name != "pos_weight"]
        positional = [option for option in options if not option.is_keyword_only]
        keyword_only = [option for option in options if option.is_keyword_only]
        return [*positional, *([TIGHTNESS] if self.is_fitzpatrick else []), *keyword_only]

    def example(self, tightness: float) -> tuple[list[float], Any, float, list[float]]:
        """A row of scores, a target, the mean loss and its gradient according to the core."""
        scores = [0.5, 0.25, -1.0]
        target: Any = [1] if self.kind is CLASSES else [[1.0, 0.0, 0.0]]
        loss = fp.FitzpatrickLoss(self.loss.regularizer, tightness)
        value, gradient = loss.value_and_gradient(np.asarray(target), np.asarray([scores]))
        count = len(scores) if self.kind is ENTRIES else 1
        return scores, target, rounded(value / count)[0], rounded(gradient[0] / count)


def paragraph(text: str, indent: int, hanging: int = 0) -> str:
    """Text in lines of at most WIDTH characters."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_on_hyphens=False,
        break_long_words=False,
    )


def packed(parts: list[str], indent: int) -> str:
    """Parts of a signature or a call, as many a line as there is room for."""
    joined = " ".join(part.replace(" ", "\0") + "," for part in parts)
    return paragraph(joined, indent).replace("\0", " ")


def call(function: str, arguments: list[str]) -> str:
    """A call, with its arguments below one another."""
    lines = packed(arguments, len(function) + 1).removesuffix(",")
    return f"{function}({lines.lstrip()})"


def signature(first: list[str], options: list[Option], indent: int) -> str:
    """The parameters of a function."""
    parameters = list(first)
    for option in options:
        if option.is_keyword_only and "*" not in parameters:
            parameters.append("*")
        parameters.append(option.parameter)
    return packed(parameters, indent)


FAMILY = r"""    With a tightness c ≥ 0 the loss of scores θ at targets y is one of a family,

    .. math:: L_c(y, \theta) = \max_{{y'}} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle, \qquad \nabla_\theta L_c = y^\star - y,

    where y* attains the maximum: the Fitzpatrick loss at c = 1, the Fenchel-Young loss
    :func:`{pair}_loss` at c = 0. It is never negative, 0 exactly where the target is the link
    ŷ(θ), convex in θ, and the lower the larger c is. Up to c = 1 it is convex in y, too.

    Args:
{arguments}

    Returns:
{returns}
"""
FITZPATRICK = r"""    .. math:: \max_{{y'}} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle

    The tightness c is 1 if not given. The link is :func:`{pair}`.
    The arguments are explained in :func:`{elsewhere}_loss`.
"""
FENCHEL_YOUNG = r"""    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle

    The loss of tightness 0. The link is :func:`{pair}`.
    The arguments are explained in :func:`{elsewhere}_loss`.
"""


def explains(named: Named) -> bool:
    """Whether the function explains all arguments of its kind, for the others to refer to."""
    return named.name == most_options(named.kind)


@functools.cache
def most_options(kind: Kind) -> str:
    """The loss of a kind with the most options, the first one in the registry."""
    names = [name for pair in regularizers_by_name() for name in ends(pair)]
    named = [Named(name) for name in names]
    return max((n for n in named if n.kind is kind), key=lambda n: len(n.options)).name


def about(named: Named) -> str:
    """What the loss is, with its formula and its arguments, or where those are explained."""
    kind = named.kind
    if explains(named):
        domain = named.loss.regularizer.domain
        arguments = [("input", kind.input), ("target", kind.target.format(domain=domain))]
        arguments += [(option.name, option.doc) for option in named.options]
        return FAMILY.format(
            pair=named.pair,
            arguments="\n".join(paragraph(f"{name}: {doc}", 8, 4) for name, doc in arguments),
            returns=paragraph(kind.returns, 8),
        )
    formula = FITZPATRICK if named.is_fitzpatrick else FENCHEL_YOUNG
    return formula.format(pair=named.pair, elsewhere=most_options(kind))


def title(named: Named) -> str:
    """The loss in a few words."""
    family = "Fitzpatrick" if named.is_fitzpatrick else "Fenchel-Young"
    return f"{family} loss of ``{named.loss.regularizer!r}``"


def write_function(name: str) -> str:
    """The function of a loss."""
    named = Named(name)
    scores, target, value, _ = named.example(named.loss.tightness)
    tightness = "tightness" if named.is_fitzpatrick else "0.0"
    passed = [f'"{named.pair}"', tightness, "input", "target"]
    for option in named.options:
        if option is not TIGHTNESS:
            is_named = option.is_keyword_only
            passed.append(f"{option.name}={option.name}" if is_named else option.name)
    return f'''
def {name}_loss(
{signature(["input: Tensor", "target: Tensor"], named.options, 4)}
) -> Tensor:
    r"""{title(named)}, {named.kind.targets}.

{about(named)}
    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> scores, target = torch.tensor([{scores}]), torch.tensor({target})
        >>> round(F.{name}_loss(scores, target).item(), 4)
        {value}
    """
{call(f"    return {named.kind.function}", passed)}
'''


HEAD = r"""    Equal, up to rounding, to the loss of the scores, which are never all in memory:

    .. math:: L(y, X W^\top + b)

    The forward pass computes the scores of a chunk of rows, turns them into their gradient in
    place, and multiplies that by the weight and by the input. The backward pass scales the results.

    Args:
{arguments}

    Returns:
{returns}
"""
HEAD_ELSEWHERE = r"""    .. math:: L(y, X W^\top + b)

    Equal to :func:`{name}_loss` of the scores, which are never all in memory.
    The arguments are explained in :func:`linear_{elsewhere}_loss`.
"""


def head_options(named: Named) -> list[Option]:
    """Those of a loss with a linear layer."""
    return [*HEAD_OPTIONS[:4], *([TIGHTNESS] if named.is_fitzpatrick else []), *HEAD_OPTIONS[4:]]


def head_example(named: Named) -> tuple[str, str]:
    """A line that makes a weight and a target, and what the loss is there of the feature 1."""
    scores, target, value, _ = named.example(named.loss.tightness)
    rows = [[score] for score in scores]
    return f"weight, target = torch.tensor({rows}), torch.tensor({target})", str(value)


def write_head_function(name: str) -> str:
    """The function of a loss with a linear layer."""
    named = Named(name)
    options = head_options(named)
    given, value = head_example(named)
    passed = [f'"{named.pair}"', "tightness" if named.is_fitzpatrick else "0.0"]
    passed += ["input", "linear_weight", "target", "linear_bias=linear_bias"]
    passed += [f"{o.name}={o.name}" for o in options if o is not TIGHTNESS]
    first = ["input: Tensor", "linear_weight: Tensor", "target: Tensor", "*"]
    first += ["linear_bias: Tensor | None = None"]
    if explains(named):
        arguments = [*HEAD_ARGUMENTS, *((o.name, o.doc.format(name=name)) for o in options)]
        text = HEAD.format(
            arguments="\n".join(paragraph(f"{key}: {doc}", 8, 4) for key, doc in arguments),
            returns=paragraph(HEAD_RETURNS, 8),
        )
    else:
        text = HEAD_ELSEWHERE.format(name=name, elsewhere=most_options(named.kind))
    return f'''
def linear_{name}_loss(
{signature(first, options, 4)}
) -> Tensor:
    r"""{title(named)}, of a linear layer.

{text}
    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> {given}
        >>> round(F.linear_{name}_loss(torch.ones(1, 1), weight, target).item(), 4)
        {value}
    """
{call("    return linear_class_loss", passed)}
'''


def write_head_module(name: str) -> str:
    """The module of a loss with a linear layer."""
    named = Named(name)
    own_name = f"Linear{module_name(name)}"
    options = head_options(named)
    first = ["self", "in_features: int", "num_classes: int", "*", "bias: bool = False"]
    first += ["device: torch.device | str | int | None = None", "dtype: torch.dtype | None = None"]
    given = [f'"{name}"', "in_features", "num_classes", "bias=bias", "device=device", "dtype=dtype"]
    given += [f"{o.name}={o.name}" for o in options if o is not TIGHTNESS]
    set_tightness = "        self.tightness = tightness\n" if named.is_fitzpatrick else ""
    return f'''
class {own_name}(NamedLinearClassLoss):
    r"""{title(named)}, of a linear layer.

    A module with the layer as ``linear``, as ``torch.nn.LinearCrossEntropyLoss`` has it; its
    options are those of :func:`.functional.linear_{name}_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import {own_name}
        >>> head = {own_name}(5, 3)
        >>> head(torch.ones(2, 4, 5), torch.zeros(2, 4, dtype=torch.long)).backward()
        >>> head.linear.weight.grad.shape
        torch.Size([3, 5])
    """

    def __init__(
{signature(first, options, 8)}
    ) -> None:
{call("        super().__init__", given)}
{set_tightness}
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)
'''


def write_head_base() -> str:
    """The base class of the modules with a linear layer."""
    attributes = [f"{option.name}: {option.type}" for option in HEAD_OPTIONS]
    return f'''
class NamedLinearClassLoss(NamedLinearLoss):
    """A module of a loss {CLASSES.targets}, of a linear layer."""

{"".join(f"    {attribute}{NEWLINE}" for attribute in attributes)}'''


# written by hand, in _activations.py
ACTIVATIONS = [
    "budget", "entmax", "entmax_loss", "fitzpatrick_entmax_loss", "normmax", "normmax_loss",
]  # fmt: skip


def alpha_of(name: str) -> float | None:
    """α of a link that is an α-entmax."""
    omega = regularizers_by_name()[name]
    kernel = None if omega.is_entrywise else find_kernel("triton", omega)
    return None if kernel is None else parse_kernel(kernel)[0].alpha


ON_SIMPLEX = '''def {name}(
    input: Tensor, dim: int = -1, *, mask: Tensor | None = None, engine: str | None = None
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``{omega!r}``.

    Taken along ``dim``, and differentiable any number of times. ``mask`` is True where an entry is
    kept, as in :func:`entmax`, which is this one at α = {alpha:g}.
'''

ELSEWHERE = '''def {name}(input: Tensor, dim: int = -1) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``{omega!r}``.

    Taken along ``dim``, and differentiable once.
'''


def write_link(name: str) -> str:
    """The function of a link."""
    scores = [0.5, 0.25, -1.0]
    omega = regularizers_by_name()[name]
    predictions = rounded(omega.link(np.asarray(scores)))
    alpha = alpha_of(name)
    head = ELSEWHERE if alpha is None else ON_SIMPLEX
    options = "" if alpha is None else ", mask=mask, engine=engine"
    return f'''
{head.format(name=name, omega=omega, alpha=alpha).rstrip()}

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import functional as F
        >>> [round(p, 4) for p in F.{name}(torch.tensor({scores})).tolist()]
        {predictions}
    """
    return link("{name}", input, dim{options})
'''


def base_name(kind: Kind) -> str:
    """The base class of the modules of a kind, which has their attributes."""
    return "".join(word.capitalize() for word in f"named_{kind.function}".split("_"))


def write_base(kind: Kind) -> str:
    """The base class of the modules of a kind."""
    attributes = [f"{option.name}: {option.type}" for option in kind.options if option.is_common]
    return f'''
class {base_name(kind)}(NamedLoss):
    """A module of a loss {kind.targets}."""

{"".join(f"    {attribute}{NEWLINE}" for attribute in attributes)}'''


def write_module(name: str) -> str:
    """The module of a loss."""
    named = Named(name)
    own_name = module_name(name)
    scores, target, _, gradient = named.example(named.loss.tightness)
    options = [option for option in named.options if option is not TIGHTNESS]
    attributes = "".join(f"    {o.name}: {o.type}\n" for o in options if not o.is_common)
    given = [f'"{name}"', *(f"{option.name}={option.name}" for option in options)]
    set_tightness = "        self.tightness = tightness\n" if named.is_fitzpatrick else ""
    return f'''
class {own_name}({base_name(named.kind)}):
    r"""{title(named)}, {named.kind.targets}.

    A module; its options are those of :func:`.functional.{name}_loss`.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import {own_name}
        >>> scores = torch.tensor([{scores}], requires_grad=True)
        >>> {own_name}()(scores, torch.tensor({target})).backward()
        >>> [round(slope, 4) for slope in scores.grad[0].tolist()]
        {gradient}
    """

{attributes}{NEWLINE if attributes else ""}    def __init__(
{signature(["self"], named.options, 8)}
    ) -> None:
{call("        super().__init__", given)}
{set_tightness}
    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)
'''


def listed(items: list[str]) -> str:
    """One a line, indented, with a comma."""
    return "".join(f"    {item},\n" for item in items)


FUNCTIONAL = '''\
r"""Losses and links as functions of tensors, one of each for every name of the registry.

A loss is its registry name plus ``_loss``; a link has the plain name of its Fenchel-Young loss
(:func:`sparsemax`, :func:`entmax15`, ``logistic`` for the soft argmax, …). Losses on the simplex
take the arguments of :func:`torch.nn.functional.cross_entropy`, losses of separate entries those of
:func:`torch.nn.functional.binary_cross_entropy_with_logits`. Fitzpatrick losses take a tightness.
A loss on the simplex with ``linear_`` before its name is that of a linear layer's scores.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import functional as F
    >>> scores = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.5, 0.0]], requires_grad=True)
    >>> loss = F.fitzpatrick_logistic_loss(scores, torch.tensor([0, 2]))
    >>> loss.backward()
    >>> round(loss.item(), 4), scores.grad.sum(-1).abs().max().item() < 1e-7
    (0.3108, True)
    >>> F.sparsemax(scores.detach())
    tensor([[1.0000, 0.0000, 0.0000],
            [0.1667, 0.6667, 0.1667]])
"""

{written}
# fmt: off
# ruff: noqa: A002  # ``input`` is PyTorch's name

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..losses import Loss, get_loss, name_of
from ._activations import (
{activations})
from ._handles import handle_of
from ._linear import linear_class_loss
from ._losses import {functions}

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = [
{all}]

{body}

_LOSSES: dict[str, Callable[..., Tensor]] = {{
{losses}}}

_LINKS: dict[str, Callable[..., Tensor]] = {{
{links}}}


def loss_function(loss: Loss | str) -> Callable[..., Tensor]:
    """The function (input, target, …) ↦ loss of any loss of the core, or of a registry name.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> ball = fp.sets.L2Ball()
        >>> function = loss_function(fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(ball)))
        >>> function(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])).item()
        1.236...
        >>> loss_function("sparsemax") is sparsemax_loss
        True
    """
    loss = get_loss(loss)
    name = name_of(loss)
    if name is not None:
        return _LOSSES[name]
    omega = loss.regularizer
    return functools.partial(loss_of_kind(omega), handle_of(omega), loss.tightness)


def link_function(loss: Loss | str) -> Callable[..., Tensor]:
    """The function (input, dim=-1) ↦ ŷ(input) of any loss of the core, or of a registry name.

    Example:
        >>> import torch, fitzpatrick as fp
        >>> entmax = link_function(fp.FenchelYoungLoss(fp.regularizers.Tsallis(1.25)))
        >>> entmax(torch.tensor([1.0, 1.0, -9.0]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    omega = handle_of(get_loss(loss).regularizer)
    return _LINKS[omega] if omega in _LINKS else functools.partial(link, omega)
'''

MODULES = '''"""Losses as ``torch.nn.Module``, one class for every name of the registry.

Example:
    >>> import torch
    >>> from fitzpatrick.torch import FitzpatrickLogisticLoss
    >>> criterion = FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion
    FitzpatrickLogisticLoss(label_smoothing=0.1)
    >>> criterion(torch.zeros(2, 3), torch.tensor([0, 2])).shape
    torch.Size([])
    >>> criterion.tightness = 0.5
    >>> criterion
    FitzpatrickLogisticLoss(tightness=0.5, label_smoothing=0.1)
"""

{written}
# Every class has methods of its own: torch.compile counts how often it compiles a function.
# fmt: off
# ruff: noqa: A002  # ``input`` is PyTorch's name

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._module import FenchelYoungLoss, FitzpatrickLoss, LossModule, NamedLinearLoss, NamedLoss

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

__all__ = [
{all}]

{body}'''


def sources() -> Iterator[tuple[Path, str]]:
    """Every file and its text."""
    losses, links = fp.loss_names(), sorted(regularizers_by_name())
    kinds = {Named(name).kind for name in losses}
    heads = [name for name in losses if Named(name).kind is CLASSES]
    functions = {kind.function for kind in kinds} | {"link", "loss_of_kind"}
    public = [f"{name}_loss" for name in losses] + links + ["link_function", "loss_function"]
    public += ACTIVATIONS + [f"linear_{name}_loss" for name in heads]
    body = [write_function(name) for name in losses] + [write_link(name) for name in links]
    body += [write_head_function(name) for name in heads]
    yield (
        FOLDER / "functional.py",
        FUNCTIONAL.format(
            written=WRITTEN,
            functions=", ".join(sorted(functions)),
            activations=listed(ACTIVATIONS),
            all=listed([f'"{name}"' for name in sorted(public)]),
            body="\n".join(body),
            losses=listed([f'"{name}": {name}_loss' for name in losses]),
            links=listed([f'"{name}": {name}' for name in links]),
        ),
    )
    modules = [module_name(name) for name in losses]
    modules += [f"Linear{module_name(name)}" for name in heads]
    bases = [write_base(kind) for kind in (CLASSES, ENTRIES, ROWS) if kind in kinds]
    bases.append(write_head_base())
    body = bases + [write_module(name) for name in losses]
    body += [write_head_module(name) for name in heads]
    any_omega = ["FenchelYoungLoss", "FitzpatrickLoss", "LossModule"]
    yield (
        FOLDER / "modules.py",
        MODULES.format(
            written=WRITTEN,
            all=listed([f'"{name}"' for name in sorted([*any_omega, *modules])]),
            body="\n".join(body),
        ),
    )


def main() -> None:
    """Write the files."""
    for path, text in sources():
        path.write_text(text)
        print(path)


if __name__ == "__main__":
    main()
