"""Write the functions and PyTorch modules of the front ends, for every named loss.

Each of three files begins with a part that is written by hand. It has the losses that document the
arguments of their kind. The script derives the other losses from their signatures, and writes them
below as plain source code for editors, ``inspect``, type checkers and documentation tools. Run it
after a change to the registry, to one of these signatures or to this script:

    python tools/write_front_ends.py
"""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fitzpatrick as fp
from fitzpatrick.losses import ends, regularizers_by_name
from fitzpatrick.torch import SparseTargets, functional
from fitzpatrick.torch._losses import supports_pos_weight

SOURCE = Path(__file__).parents[1] / "src" / "fitzpatrick"
MARK = "# Everything below is written by tools/write_front_ends.py: change that and run it again.\n"
WIDTH = 100
# The losses whose functions document all arguments.
OF_CLASSES, OF_ENTRIES = "fitzpatrick_logistic", "fitzpatrick_sigmoid"
# A link of the registry, and its common name.
JAX_ALIASES = {"logistic": "softmax"}
FORMULAS = {
    "Fenchel-Young": r"    .. math:: \Omega(y) + \Omega^*(\theta) - \langle y, \theta\rangle",
    "Fitzpatrick": r"""    .. math:: \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
              + \langle y' - y, \theta\rangle""",
}
TARGETS = {
    "class": "at class indices or proportions",
    "entry": "entry by entry",
    "linear_class": "of a linear layer",
}


def pack(parts: list[str], indent: int) -> str:
    """Parameters or arguments, several per line."""
    text = " ".join(part.replace(" ", "\0") + "," for part in parts)
    start = " " * indent
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_on_hyphens=False,
        break_long_words=False,
    ).replace("\0", " ")


def call(head: str, arguments: list[str]) -> str:
    """A statement that ends in a call, with one argument per line."""
    return f"{head}({pack(arguments, len(head) + 1).lstrip().removesuffix(',')})"


def listed(name: str, items: list[str]) -> str:
    """A list of names, one per line."""
    return f"{name} = [\n" + "".join(f'    "{item}",\n' for item in sorted(items)) + "]\n"


def texts(parameters: list[inspect.Parameter], *, has_star: bool = False) -> list[str]:
    """Parameters as in a signature."""
    found = []
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            found.append("*")
            has_star = True
        text = str(parameter).replace("torch.Tensor", "Tensor")
        text = text.replace(f"{SparseTargets.__module__}.", "")
        found.append(text.replace("'", '"'))
    return found


@dataclass(frozen=True)
class Named:
    """A loss of the registry; ``kind`` says what its targets are, and if it has a linear layer."""

    name: str
    kind: str

    @property
    def omega(self) -> Any:
        """The regularizer."""
        return fp.get_loss(self.name).regularizer

    @property
    def pair(self) -> str:
        """The name of the regularizer, its link and its Fenchel-Young loss."""
        return ends(self.name)[0]

    @property
    def is_tight(self) -> bool:
        """True if the loss takes a tightness."""
        return fp.get_loss(self.name).tightness > 0

    @property
    def family(self) -> str:
        """The kind of the named loss, in words."""
        return "Fitzpatrick" if self.is_tight else "Fenchel-Young"

    @property
    def function(self) -> str:
        """The function of the loss in PyTorch."""
        return "linear_" * (self.kind == "linear_class") + f"{self.name}_loss"

    @property
    def explained(self) -> str:
        """The function that documents the arguments."""
        prefix = "linear_" * (self.kind == "linear_class")
        return f"{prefix}{OF_ENTRIES if self.kind == 'entry' else OF_CLASSES}_loss"

    def about(self, words: str, explained: str) -> str:
        """The docstring of a function."""
        formula = FORMULAS[self.family]
        if self.kind == "linear_class":
            formula = r"    .. math:: L(y, X W^\top + b)"
        link = f"The link is :func:`{self.pair}`."
        if self.kind == "linear_class":
            link = f"Equal, up to rounding, to :func:`{self.name}_loss` of the scores."
        return f'''    r"""{self.family} loss of ``{self.omega!r}``, {words}.

{formula}

    {link}
    The arguments are explained in :func:`{explained}`.
    """'''

    def parameters(self, function: Callable[..., Any]) -> list[inspect.Parameter]:
        """The parameters of the documenting function that this loss also has."""
        left_out = [] if self.is_tight else ["tightness"]
        left_out += [] if supports_pos_weight(self.omega) else ["pos_weight"]
        return [p for n, p in inspect.signature(function).parameters.items() if n not in left_out]

    # PyTorch

    @property
    def module(self) -> str:
        """The class of the loss in PyTorch."""
        words = self.function.split("_")
        return "".join(word.capitalize() for word in words)

    @property
    def base(self) -> str:
        """The class that has the options of the module."""
        words = "_tight" * self.is_tight + "_binary" * supports_pos_weight(self.omega)
        return "Named" + "".join(w.capitalize() for w in f"{words}_{self.kind}_loss".split("_"))

    def write_function(self) -> str:
        """The function for PyTorch."""
        parameters = self.parameters(getattr(functional, self.explained))
        passed = [f'"{self.pair}"', "tightness" if self.is_tight else "0.0"]
        passed += [
            f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name
            for p in parameters
            if p.name != "tightness"
        ]
        return f"""
def {self.function}(
{pack(texts(parameters), 4)}
) -> Tensor:
{self.about(TARGETS[self.kind], self.explained)}
{call(f"    return {self.kind}_loss", passed)}
"""

    def write_base(self) -> str:
        """The class that has the options of modules."""
        options = self.parameters(getattr(functional, self.explained))
        options = [p for p in options if p.default is not p.empty and p.name != "linear_bias"]
        passed = [f"{p.name}={p.name}" for p in options if p.name != "tightness"]
        layer, attributes = [], ""
        if self.kind == "linear_class":
            layer = ["in_features: int", "num_classes: int", "*", "bias: bool = False"]
            layer += ["device: torch.device | str | int | None = None"]
            layer += ["dtype: torch.dtype | None = None"]
            given = ["in_features", "num_classes", "bias=bias", "device=device", "dtype=dtype"]
            passed = given + passed
        parent = "NamedLinearLoss" if layer else "NamedLoss"
        about, ending = f"A module of a loss {TARGETS[self.kind]}", ""
        if self.is_tight:
            parent, about = self.base.replace("Tight", "", 1), f"{about}, with a tightness"
            ending = "        self.tightness = as_tightness(tightness)\n"
        else:
            types = [text.partition(" = ")[0] for text in texts(options, has_star=True)]
            attributes = "".join(f"    {text}\n" for text in types) + "\n"
        signature = ["self", *layer, *texts(options, has_star=bool(layer))]
        return f'''
class {self.base}({parent}):
    """{about}."""

{attributes}    def __init__(
{pack(signature, 8)}
    ) -> None:
{call("        super().__init__", passed)}
{ending}'''

    def write_module(self) -> str:
        """The module."""
        return f'''
class {self.module}({self.base}):
    r"""{self.family} loss of ``{self.omega!r}``, {TARGETS[self.kind]}.

    A module; its options are those of :func:`.functional.{self.function}`.
    """

    _name = "{self.name}"

    def forward(self, input: Tensor, target: Tensor | SparseTargets) -> Tensor:
        return super().forward(input, target)

    def link(self, input: Tensor, dim: int | None = None) -> Tensor:
        return super().link(input, dim)
'''

    def write_probabilities(self) -> str:
        """The function of the probabilities, for PyTorch."""
        parameters = ["input: Tensor", *["tightness: float = 1.0"] * self.is_tight, "dim: int = -1"]
        tightness = "tightness" if self.is_tight else "0.0"
        return f"""
def {self.name}_probabilities(
{pack(parameters, 4)}
) -> Tensor:
{self.about_probabilities("dim")}
    omega = regularizers_by_name()["{self.pair}"]
    return probabilities(omega, {tightness}, input, dim)
"""

    def about_probabilities(self, axis: str) -> str:
        """The docstring of a function of probabilities."""
        what = "Class probabilities" if self.kind == "class" else "Probabilities of entries"
        return f'''    r"""{what} that belong to scores of :func:`{self.name}_loss`.

    Scores that minimize the expected loss over labels of a distribution have that distribution as
    their probabilities, at every tightness; the link :func:`{self.pair}` is theirs at 0. Along
    ``{axis}``, differentiable, in the dtype of the scores.
    """'''

    # JAX

    def write_jax_probabilities(self) -> str:
        """The function of the probabilities, for JAX."""
        parameters = ["scores: ArrayLike", *["tightness: float = 1.0"] * self.is_tight]
        parameters += ["axis: int = -1", "where: ArrayLike | None = None"]
        tightness = ", as_static_tightness(tightness)" * self.is_tight
        return f"""
def {self.name}_probabilities(
{pack(parameters, 4)}
) -> Array:
{self.about_probabilities("axis")}
    loss = get_loss("{self.name}"{tightness})
    return probabilities_at(loss, scores, axis, where)
"""

    def write_jax(self, second: str) -> str:
        """The function for JAX, at targets or at labels."""
        suffix = "_with_integer_labels" * (second == "labels")
        explained = f"{OF_CLASSES}_loss{suffix}"
        lists = " | SparseTargets" * (second == "targets" and self.kind == "class")
        parameters = ["scores: ArrayLike", f"{second}: ArrayLike{lists}", "axis: int = -1"]
        parameters += ["where: ArrayLike | None = None"]
        parameters += ["*", "tightness: float = 1.0"] if self.is_tight else []
        tightness = ", as_static_tightness(tightness)" * self.is_tight
        return f"""
def {self.name}_loss{suffix}(
{pack(parameters, 4)}
) -> Array:
{self.about(f"at {second}", explained)}
    loss = get_loss("{self.name}"{tightness})
    return loss_at_{second}(loss, scores, {second}, axis, where)
"""


def write_link(name: str) -> str:
    """The function of a link, for PyTorch."""
    omega = regularizers_by_name()[name]
    parameters, more = ["input: Tensor", "dim: int = -1"], ""
    about = "once."
    if omega.entmax_alpha is not None:
        parameters += ["*", "mask: Tensor | None = None", "engine: str | None = None"]
        more = ", mask=mask, engine=engine"
        about = "any number of times. ``mask`` is True where an\n    entry is kept, as in "
        about += f":func:`entmax`, which is this one at α = {omega.entmax_alpha:g}."
    return f'''
def {name}(
{pack(parameters, 4)}
) -> Tensor:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``{omega!r}``.

    Taken along ``dim``, and differentiable {about}
    """
    return link_along("{name}", input, dim{more})
'''


def write_jax_link(name: str) -> str:
    """The function of a link, for JAX."""
    return f'''
def {name}(scores: ArrayLike, axis: int = -1, where: ArrayLike | None = None) -> Array:
    r"""Link ŷ(θ) = ∇Ω*(θ) of ``{regularizers_by_name()[name]!r}``.

    Predictions along ``axis``, in the dtype of the scores; 0 for classes that ``where`` leaves out.
    """
    return link_at(get_loss("{name}"), scores, axis, where)
'''


# Losses in JAX of a regularizer with an order: its class, and the tightness, if any.
JAX_ORDERS: dict[str, tuple[str, float | None]] = {
    "entmax": ("Tsallis", 0.0),
    "fitzpatrick_entmax": ("Tsallis", 1.0),
    "normmax": ("Norm", None),
}
ABOUT_ORDERS = {
    "Tsallis": """``alpha`` is a number from 1 to 2: logistic losses at 1, sparsemax losses at 2.
    The tightness is 0 for the Fenchel-Young loss and 1 for the Fitzpatrick loss.""",
    "Norm": r"The norm is :math:`\|y\|_\alpha`, and ``alpha`` a number above 1.",
}


def write_jax_order(name: str, second: str) -> str:
    """The function of a loss with an order, for JAX, at targets or at labels."""
    regularizer, tightness = JAX_ORDERS[name]
    link = name.removeprefix("fitzpatrick_")
    suffix = "_with_integer_labels" * (second == "labels")
    default = 1.5 if regularizer == "Tsallis" else 2.0
    parameters = ["scores: ArrayLike", f"{second}: ArrayLike", f"alpha: float = {default}"]
    parameters += ["axis: int = -1", "where: ArrayLike | None = None"]
    parameters += [] if tightness is None else ["*", f"tightness: float = {tightness}"]
    family = {None: "Fenchel-Young loss", 0.0: "Loss", 1.0: "Fitzpatrick loss"}[tightness]
    given = "alpha" if tightness is None else "alpha, tightness"
    return f'''
def {name}_loss{suffix}(
{pack(parameters, 4)}
) -> Array:
    r"""{family} of ``{regularizer}(alpha)``, at {second}; its link is :func:`{link}`.

    {ABOUT_ORDERS[regularizer]}
    The other arguments are explained in :func:`{OF_CLASSES}_loss{suffix}`.
    """
    return loss_at_{second}({link}_of({given}), scores, {second}, axis, where)
'''


def registry() -> list[Named]:
    """Every loss, and every loss on the simplex also with a linear layer."""
    plain = [
        Named(name, "class" if fp.get_loss(name).regularizer.domain.has_labels else "entry")
        for name in fp.loss_names()
    ]
    return plain + [Named(loss.name, "linear_class") for loss in plain if loss.kind == "class"]


def complete(path: str, names: Callable[[str], list[str]], parts: list[str]) -> tuple[Path, str]:
    """A file with the generated part below its mark, and public names from the part above."""
    file = SOURCE / path
    above = file.read_text().partition(MARK)[0]
    tree = "\n".join(parts).rstrip("\n")
    return file, f"{above}{MARK}# fmt: off\n\n{listed('__all__', names(above))}\n{tree}\n"


def defined(text: str, keyword: str) -> list[str]:
    """The public functions or classes that a text defines."""
    found = [line.split()[1] for line in text.splitlines() if line.startswith(f"{keyword} ")]
    return [name.partition("(")[0].rstrip(":") for name in found if not name.startswith("_")]


def files() -> dict[Path, str]:
    """Every file, with its text."""
    losses, links = registry(), list(regularizers_by_name())
    written = [loss for loss in losses if loss.function != loss.explained]
    functions = [loss.write_function() for loss in written] + [write_link(n) for n in sorted(links)]
    proper = [x for x in losses if x.omega.has_probabilities and x.kind != "linear_class"]
    functions += [loss.write_probabilities() for loss in proper]
    public = [*(loss.function for loss in losses), *links, "budget", "entmax", "normmax"]
    public += ["entmax_attention", "soft_rank", "soft_sort", "topk_mask"]
    public += [f"{loss.name}_probabilities" for loss in proper]
    bases = {loss.base: loss for loss in sorted(losses, key=lambda loss: loss.is_tight)}
    modules = [loss.write_base() for loss in bases.values()]
    modules += [loss.write_module() for loss in losses]
    in_jax = {}
    for loss in losses:
        if loss.kind != "linear_class":
            in_jax[f"{loss.name}_loss"] = loss.write_jax("targets")
        if loss.kind == "class":
            in_jax[f"{loss.name}_loss_with_integer_labels"] = loss.write_jax("labels")
    for name in JAX_ORDERS:
        in_jax[f"{name}_loss"] = write_jax_order(name, "targets")
        in_jax[f"{name}_loss_with_integer_labels"] = write_jax_order(name, "labels")
    in_jax |= {name: write_jax_link(name) for name in links}
    in_jax |= {f"{loss.name}_probabilities": loss.write_jax_probabilities() for loss in proper}
    in_jax |= {alias: f"\n{alias} = {name}\n" for name, alias in JAX_ALIASES.items()}

    def is_public_module(name: str) -> bool:
        return name.endswith(("Loss", "Module")) and not name.startswith(("Named", "Order"))

    def add(names: list[str], keyword: str) -> Callable[[str], list[str]]:
        return lambda above: [*{*names, *defined(above, keyword)}]

    return dict(
        [
            complete("torch/functional.py", add(public, "def"), functions),
            complete(
                "torch/modules.py",
                lambda above: [
                    *(loss.module for loss in losses),
                    *filter(is_public_module, defined(above, "class")),
                ],
                modules,
            ),
            complete(
                "jax/_functions.py",
                add([*in_jax], "def"),
                [text for name, text in in_jax.items() if OF_CLASSES + "_loss" not in name],
            ),
        ]
    )


if __name__ == "__main__":
    for file, text in files().items():
        file.write_text(text)
        print(file)
