"""The command line: ``fitzpatrick`` or ``python -m fitzpatrick``.

Each command gathers its options and hands over; the work is in :mod:`fitzpatrick.experiments`.
"""

import functools
import inspect
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np

from .losses import ends, get_loss, loss_names, regularizers_by_name

if TYPE_CHECKING:
    from .datasets import ReadOptions, Table

ERROR = 2

try:
    import typer
except ModuleNotFoundError as error:
    problem = f"error: the command line needs {error.name}: pip install 'fitzpatrick[cli]'"
    print(problem, file=sys.stderr)
    raise SystemExit(ERROR) from error

app = typer.Typer(
    name="fitzpatrick",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)


FigureFormat = StrEnum("FigureFormat", ["png", "svg", "pdf"])
Scaling = StrEnum("Scaling", ["standardize", "none"])
MissingValues = StrEnum(
    "MissingValues",
    {"impute": "impute", "drop_targets": "drop-targets", "drop": "drop", "error": "error"},
)
CategoryChoice = StrEnum("CategoryChoice", ["encode", "error"])
DecimalMark = StrEnum("DecimalMark", {"point": ".", "comma": ","})
FileFormat = StrEnum("FileFormat", ["csv", "libsvm", "arff", "parquet", "xlsx", "jsonl"])
Precision = StrEnum("Precision", ["float64", "float32"])
Model = StrEnum("Model", ["linear", "boosted"])


def _option(
    metavar: str | None, text: str, default: str | bool = True, *names: str, **limits: Any
) -> Any:
    """An option with a placeholder for its value; a text for the default, or whether to show it."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=default, **limits)


def _flag(text: str, *names: str) -> Any:
    """An option whose value is listed, or that has none."""
    return _option(None, text, True, *names)


_TO = ("--output", "-o")
_KINDS = "Models: linear, boosted (trees), or both with a comma between them."
_EVERY = "Fit every penalty, even where weaker ones have become clearly worse."
_FORMATS = "CSV, LIBSVM, ARFF, Excel, parquet or JSON lines."
_STOP_EARLY = (
    "End each path of penalties once its dev error has clearly risen; the paper fits every one."
)
_GRID = "1e4, 1e3, …, 1e-4"
_NAMES = "Losses, separated by commas."
Folder = Annotated[
    Path, _option("FOLDER", "Folder for records and results.", True, *_TO, file_okay=False)
]
Seeds = Annotated[int, _option("N", "Number of random dev splits.", min=1, max=1000)]
Jobs = Annotated[int, _option("N", "Number of processes.", "one per core", "--jobs", "-j", min=0)]
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help=_FORMATS)]
Format = Annotated[
    FileFormat | None, _flag("Format of FILE; by default its suffix tells.", "--format")
]
Decimal = Annotated[
    DecimalMark | None, _flag("Decimal mark, if the file does not make it clear.", "--decimal")
]
NoHeader = Annotated[
    bool,
    _flag("The first line is data; columns are called column_1, column_2, …", "--no-header"),
]
Formats = Annotated[list[FigureFormat], _flag("Format; may be repeated.", "--format", "-f")]
Refit = Annotated[bool, _flag("Test a model that is fitted to train and dev together.")]
Alphas = Annotated[str, _option("NUMBERS", "Penalties to choose from, separated by commas.", _GRID)]
WholeGrid = Annotated[bool, _flag(_EVERY, "--whole-grid")]
Intercept = Annotated[bool, _flag("Learn an unpenalized intercept.")]
ScalingOption = Annotated[Scaling, _flag("How to scale the features.")]


@dataclass(frozen=True)
class Source:
    """A file to learn from, and how it is read."""

    file: Path
    targets: list[str] | None
    format: str | None
    ignore: Sequence[str]
    options: "ReadOptions"

    def read(
        self, *, plain: bool = False, test: Path | None = None, like: "Table | None" = None
    ) -> "Table":
        """Its features and targets, or those of a test file by what was learned from it."""
        from .datasets import read_table

        given = test or self.file, self.targets, self.format, like
        return read_table(*given, ignore=self.ignore, plain=plain, options=self.options)


def _source(
    file: FileArgument,
    targets: Annotated[
        str, _option("NAMES", "Target columns, separated by commas (not LIBSVM).")
    ] = "",
    format: Format = None,  # noqa: A002  (the option's name)
    ignore: Annotated[str, _option("NAMES", "Columns to leave out (not LIBSVM).")] = "",
    missing: Annotated[MissingValues, _flag("How to treat missing values.")] = MissingValues.impute,
    categories: Annotated[
        CategoryChoice, _flag("How to treat columns of words.")
    ] = CategoryChoice.encode,
    kinds: Annotated[
        str, _option("NAME=KIND,…", "Kinds of columns: number, category, tags or ignored.")
    ] = "",
    tags: Annotated[
        str, _option("NAMES", "Columns with several words in a cell, such as rock;jazz.")
    ] = "",
    missing_values: Annotated[
        str, _option("WORDS", "Words that stand for a missing value, besides NA and the like.")
    ] = "",
    decimal: Decimal = None,
    normalize: Annotated[
        bool,
        _flag("Divide target columns, such as counts, by their sum in each row.", "--normalize"),
    ] = False,
    no_header: NoHeader = False,
) -> Source:
    from .datasets import ReadOptions

    kind_of, columns_of_tags = _kinds(kinds), _names(tags)
    for name in columns_of_tags:
        if kind_of.get(name, "tags") != "tags":
            fail(f"--tags names {name!r}, which is {kind_of[name]} in --kinds")
    reading = ReadOptions(
        missing=missing,
        categories=categories,
        kinds=kind_of,
        tags=columns_of_tags,
        missing_values=_names(missing_values),
        decimal=decimal,
        normalize=normalize,
        header=not no_header,
    )
    return Source(file, _names(targets) or None, format, _names(ignore), reading)


def _reads_a_file(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :func:`_source`, and hand it what that makes of them."""
    shared, own = (inspect.signature(one, eval_str=True) for one in (_source, command))
    parameters = [*shared.parameters.values(), *own.parameters.values()]
    parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in parameters if one.name != "source"]

    @functools.wraps(command)
    def call(**given: Any) -> None:
        source = _source(**{name: given.pop(name) for name in shared.parameters})
        command(source=source, **given)

    call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def _version(value: bool) -> None:
    if value:
        from . import __version__

        typer.echo(f"fitzpatrick {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def overview(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Fenchel-Young and Fitzpatrick losses: the paper's experiment, and your own data.

    Without a command: every loss at one example, with its link.
    """
    if context.invoked_subcommand is None:
        typer.echo(losses_table())


def losses_table() -> str:
    """Every loss of the registry at one target and one row of scores."""
    y, theta = np.asarray([0.5, 0.5, 0.0]), np.asarray([1.5, 0.2, -1.0])
    names = [name for family in regularizers_by_name() for name in ends(family)]
    lines = [
        "Losses with the same link, and how they fall with the tightness c: c = 0 is the",
        "Fenchel-Young loss, c = 1 the Fitzpatrick loss, and larger c lie beyond it.",
        f"Example: target y = {_row(y)}, scores θ = {_row(theta)}",
        "",
        f"{'loss':<28}{'L(y, θ)':>8}   {'link ŷ(θ)':<20}{'maximizer y*(y, θ)'}",
    ]
    for name in names:
        loss = get_loss(name)
        value, link, y_star = loss.value(y, theta), loss.link(theta), loss.y_star(y, theta)
        lines.append(f"{name:<28}{float(value):8.4f}   {_row(link):<20}{_row(y_star)}")
    tightnesses = (0.0, 0.25, 0.5, 1.0, 2.0)
    lines += ["", f"{'--loss NAME --tightness c':<28}" + "".join(f"{c:>8g}" for c in tightnesses)]
    for name in names:
        if get_loss(name).tightness > 0:
            values = [float(get_loss(name, c).value(y, theta)) for c in tightnesses]
            lines.append(f"{name:<28}" + "".join(f"{value:8.4f}" for value in values))
    return "\n".join([*lines, "", "fitzpatrick --help lists the commands."])


def _row(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.2f}".rstrip("0").rstrip(".") for value in values) + ")"


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATASET", help="Names of data sets, or 'all'. [default: yeast]"),
    ] = None,
    _: Annotated[bool, typer.Option("--datasets", hidden=True)] = False,
    intercept: Annotated[bool, _flag("Learn an unpenalized intercept.", "--intercept")] = False,
    scaling: ScalingOption = Scaling.standardize,
    losses: Annotated[str, _option("NAMES", _NAMES, "the paper's four")] = "",
    refit: Refit = False,
    split: Annotated[
        int | None,
        _option("SEED", "Divide data sets that come as one file at random, with this seed.", min=0),
    ] = None,
    seeds: Seeds = 5,
    jobs: Annotated[
        int,
        _option(
            "N", "Number of processes.", "one per core; 1 with --device", "--jobs", "-j", min=0
        ),
    ] = 0,
    precision: Annotated[Precision, _flag("Floating-point precision.")] = Precision.float64,
    tol: Annotated[
        float, _option("X", "Gradient norm, relative to the one at zero, that ends a fit.")
    ] = 1e-8,
    alphas: Alphas = "",
    stop_early: Annotated[bool, _flag(_STOP_EARLY, "--stop-early")] = False,
    device: Annotated[
        str | None, _option("NAME", "PyTorch device, such as cuda.", "none: NumPy")
    ] = None,
    output: Folder = Path("out"),
) -> None:
    """Reproduce Table 1 of the paper, our numbers beside the paper's.

    Runs on the embedded yeast data unless you name other sets. Every finished fit is kept: run the
    same command again to continue after an interruption.
    """
    from .datasets import DATASETS, PAPER_LOSSES
    from .experiments.protocol import Protocol, at_tightnesses
    from .experiments.reproduce import reproduce as run
    from .experiments.runner import RunOptions

    chosen = list(dict.fromkeys(names or ["yeast"]))
    if "all" in chosen:
        chosen = list(DATASETS)
    for name in chosen:
        if name not in DATASETS:
            fail(f"unknown data set {name!r}; the names are {', '.join(DATASETS)}, and all")
    wanted = _losses(losses) if losses else PAPER_LOSSES
    protocol = Protocol(
        intercept,
        scaling,
        _alphas(alphas),
        dtype=precision,
        refit=refit,
        tol=_positive("--tol", tol),
        whole_grid=not stop_early,
        device=_device(device) if device else None,
    )
    n_jobs = jobs or (1 if device else os.cpu_count() or 1)  # each would have to start the device
    options = RunOptions(at_tightnesses(wanted), protocol, seeds, n_jobs, output, _command())
    if run(chosen, options, typer.echo, warn, split) == 0:
        raise typer.Exit(ERROR)


@app.command()
@_reads_a_file
def compare(
    source: Source,
    context: typer.Context,
    test: Annotated[
        Path | None, _flag("File with test samples; by default a quarter of FILE is held out.")
    ] = None,
    losses: Annotated[
        str,
        _option(
            "NAMES", _NAMES, "logistic, sparsemax, entmax15, sigmoid for labels, and Fitzpatrick"
        ),
    ] = "",
    tightness: Annotated[
        str, _option("NUMBERS", "Tightnesses of the Fitzpatrick losses.", "1")
    ] = "",
    models: Annotated[str, _option("NAMES", _KINDS, "both if lightgbm is there", "--model")] = "",
    alphas: Alphas = "",
    whole_grid: WholeGrid = False,
    intercept: Intercept = True,
    scaling: ScalingOption = Scaling.standardize,
    refit: Refit = True,
    seeds: Seeds = 5,
    jobs: Jobs = 0,
    output: Folder = Path("out"),
) -> None:
    """Compare losses on your own file: linear models, boosted trees.

    Targets are 0/1 indicators, proportions that sum to one, or one column of class names or tags.
    """
    from .experiments.compare import LABEL_LOSSES, SIMPLEX_LOSSES, Recommendation, experiment_of
    from .experiments.compare import compare as run
    from .experiments.learners import NEEDS_LIBRARY, can_boost
    from .experiments.protocol import MODELS, Protocol, at_tightnesses
    from .experiments.runner import RunOptions

    wanted = _losses(losses, LABEL_LOSSES) if losses else SIMPLEX_LOSSES
    tightnesses: Sequence[float | None] = (None,)
    if tightness:
        tightnesses = _numbers("--tightness", tightness)
        if wrong := [one for one in tightnesses if not 0 <= one < float("inf")]:
            fail(f"--tightness must be a finite number of at least 0, got {wrong[0]:g}")
    grid = _alphas(alphas)
    chosen = _models(models) if models else tuple(MODELS)[: 1 + can_boost()]
    table, file = source.read(), source.file
    held_out = source.read(test=test, like=table) if test else None
    if table.has_several_labels and not losses:
        wanted += LABEL_LOSSES
    for name in set(LABEL_LOSSES) & set(wanted):
        if not table.has_several_labels:
            fail(f"{name!r} is for labels that occur together, and each row of {file} has one")
    protocol = Protocol(intercept, scaling, grid, refit=refit, whole_grid=whole_grid, refine=True)
    wanted_at = at_tightnesses(wanted, tightnesses, chosen)
    n_jobs = jobs or os.cpu_count() or 1
    options = RunOptions(wanted_at, protocol, seeds, n_jobs, output, _command())
    experiment, notes = experiment_of(table, file, held_out, test, options)
    if not models and len(chosen) == 1:
        notes += (f"boosted trees were not tried: {NEEDS_LIBRARY}",)
    elif not models:
        notes += ("boosted trees were tried, too; --model linear leaves them out and is faster",)

    def fit_command(advice: Recommendation) -> str:
        is_linear = advice.loss.model == "linear"
        words = [str(file), *_given(context, "fit", () if is_linear else _OF_LINEAR_MODELS)]
        words += ["--loss", advice.loss.name] + ([] if is_linear else ["--model", "boosted"])
        if advice.loss.tightness is not None:
            words += ["--tightness", repr(advice.loss.tightness)]
        if table.without_label and not advice.loss.has_classes:
            words += ["--labelled-only"]  # as compared
        words += [advice.loss.kind.option, f"{advice.setting:g}"]
        words += ["-o", "model.safetensors"]
        return shlex.join(["fitzpatrick", "fit", *words])

    run(experiment, table.kind, notes, options, fit_command, typer.echo)


# the others mean nothing to boosted trees
_OF_LINEAR_MODELS = ("alpha", "alphas", "intercept", "scaling", "coefficients")


@app.command()
@_reads_a_file
def fit(
    source: Source,
    context: typer.Context,
    output: Annotated[Path, _flag("Model file to write (.safetensors).", *_TO)],
    loss: Annotated[str, _flag("Name of the loss.")] = "fitzpatrick_logistic",
    model: Annotated[Model, _flag("Linear model or boosted trees.")] = Model.linear,
    rounds: Annotated[
        int | None,
        _option("N", "Rounds of boosting; by default cross-validation chooses.", False, min=1),
    ] = None,
    alpha: Annotated[float | None, _flag("Penalty; by default cross-validation chooses.")] = None,
    alphas: Alphas = "",
    whole_grid: WholeGrid = False,
    tightness: Annotated[
        float | None, _option(None, "Tightness of a Fitzpatrick loss: 0 is Fenchel-Young.", "1")
    ] = None,
    intercept: Intercept = True,
    scaling: ScalingOption = Scaling.standardize,
    labelled_only: Annotated[
        bool, _flag("Leave out samples without a label, as compare does.", "--labelled-only")
    ] = False,
    coefficients: Annotated[
        Path | None, _option("FILE", "Table of the coefficients to write (.csv).", False)
    ] = None,
) -> None:
    """Fit a model to a file and save it.

    The losses squared, poisson and sigmoid take the targets as they are: numbers, counts, or
    labels that may occur together.
    """
    from .datasets._files import write_atomically
    from .datasets._table import counted
    from .experiments import model_files, models
    from .experiments.protocol import LossChoice
    from .experiments.report import number, wrapped

    _check_loss(loss, tightness)
    _models(model)
    if source.options.normalize and not LossChoice(loss).has_classes:
        fail(f"--normalize makes shares of the targets, and {loss!r} takes them as they are")
    foreign = ("rounds",) if model is Model.linear else _OF_LINEAR_MODELS
    if unused := [name for name in foreign if _is_given(context, name)]:
        fail(f"--{unused[0]} means nothing to a model that is {model}")
    if alpha is not None:
        _positive("--alpha", alpha)
        if alphas:
            fail("--alpha says the penalty, --alphas what to choose it from: give one of them")
    grid = _alphas(alphas)
    if coefficients is not None and coefficients.resolve() == output.resolve():
        fail("--coefficients and --output name one file; name two")
    for written in filter(None, (output, coefficients)):
        _check_not_input(source.file, written)
    table = models.read_for_fit(source.read, loss)
    fitted = models.fit(
        table,
        source.file,
        loss,
        alpha if model is Model.linear else rounds,
        model=model,
        alphas=grid,
        whole_grid=whole_grid,
        tightness=tightness,
        intercept=intercept,
        standardize=scaling is Scaling.standardize,
        labelled_only=labelled_only,
    )
    saved = fitted.model
    model_files.save(saved, output)
    if coefficients:
        write_atomically(coefficients, models.coefficients_csv(saved))
    choice = LossChoice.of(loss, tightness, model)
    lines = [
        f"fitted {choice} to {counted(fitted.samples, 'sample')}, "
        f"{counted(saved.columns.n_features, 'feature')}, "
        f"{counted(len(saved.target_names), 'target')} ({saved.kind})"
    ]
    if saved.cv_score is not None:
        setting = choice.in_words(f"{fitted.setting:g}")
        lines.append(f"{setting}: cross-validated squared error {number(-saved.cv_score)}")
        lines.append(f"baseline, the mean target for every sample: {number(fitted.baseline or 0)}")
    lines += [f"note: {note}" for note in fitted.notes]
    lines += [f"wrote {written}" for written in (output, coefficients) if written]
    for line in lines:
        typer.echo("\n".join(wrapped(line)))


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that 'fit' saved.")],
    file: FileArgument,
    output: Annotated[Path | None, _flag("CSV file; by default standard output.", *_TO)] = None,
    format: Format = None,  # noqa: A002  (the option's name)
    keep: Annotated[
        str, _option("NAMES", "Columns of FILE to put before the predictions (not LIBSVM).")
    ] = "",
    decimal: Decimal = None,
    no_header: NoHeader = False,
) -> None:
    """Predict the targets of a file, as CSV.

    One line per sample, in the order of the file. Columns that the model does not use are ignored.
    Notes on missing values, new words and the like go to standard error. For class names, a last
    column holds the class with the largest probability. Text that a spreadsheet would take for a
    formula begins with an apostrophe.
    """
    from .datasets import DataError, read_cells, read_inputs
    from .datasets._files import write_atomically
    from .experiments import model_files, models

    if output is not None:
        _check_not_input(file, output)
        _check_not_input(model, output)
    loaded = model_files.load(model)
    header = not no_header
    table = read_inputs(file, loaded.columns, format, header=header, decimal=decimal)
    kept = read_cells(file, _names(keep), format, header=header) if keep else None
    for note in table.notes:
        typer.echo(f"note: {note}", err=True)  # standard output is for the predictions
    try:
        text = models.predictions_csv(loaded, table.X, kept)
    except model_files.ScoreOverflowError as error:
        raise DataError(error.problem, file, int(table.lines[error.row])) from None
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text)
        typer.echo(f"wrote {output}")


@app.command()
def figures(
    output: Annotated[
        Path, _option("FOLDER", "Folder to write to.", True, *_TO, file_okay=False)
    ] = Path("out"),
    formats: Formats = [FigureFormat.png],  # noqa: B006  (typer only reads the default)
) -> None:
    """Draw the losses: bounds, gaps, level sets and tightnesses."""
    from .experiments.figures import write_figures

    for path in write_figures(output, formats):
        typer.echo(f"wrote {path}")


@app.command()
def explore(
    output: Annotated[Path, _option("FILE", "Page to write (.html).", True, *_TO)] = Path(
        "out/explorer.html"
    ),
    show: Annotated[bool, _flag("Open it in the browser.", "--open/--no-open")] = True,
) -> None:
    """Explore the losses in the browser: drag scores and targets."""
    from .datasets._files import write_atomically
    from .explorer import page, show_in_browser

    write_atomically(output, page())
    is_shown = show and show_in_browser(output)
    typer.echo(f"wrote {output}" + ("" if is_shown else ": open it in a browser"))


@app.command()
def datasets(
    details: Annotated[bool, _flag("Show sources, licenses and notes, too.", "--details")] = False,
) -> None:
    """List the data sets of the paper, and where to get them."""
    from .datasets import where
    from .experiments.report import dataset_details, datasets_table

    typer.echo(datasets_table(where()))
    if details:
        typer.echo(f"\n{dataset_details()}")


def _names(text: str) -> list[str]:
    from .datasets.options import split_names

    return split_names(text)


def _kinds(text: str) -> dict[str, str]:
    """Column → kind, of ``zip=category,note=ignored``."""
    from .datasets.options import KINDS

    found: dict[str, str] = {}
    for pair in _names(text):
        name, _, kind = (part.strip() for part in pair.rpartition("="))
        if not name or kind not in KINDS:
            fail(f"--kinds needs NAME=KIND, with KIND among {', '.join(KINDS)}, got {pair!r}")
        if found.setdefault(name, kind) != kind:
            fail(f"--kinds names {name!r} twice, as {found[name]} and as {kind}")
    return found


def _check_loss(name: str, tightness: float | None = None) -> None:
    try:
        get_loss(name, tightness)
    except (TypeError, ValueError) as error:
        fail(str(error))


def _models(text: str) -> tuple[str, ...]:
    """Kinds of models that can be fitted here."""
    from .experiments.learners import NEEDS_LIBRARY, can_boost
    from .experiments.protocol import MODELS

    names = tuple(dict.fromkeys(_names(text)))
    if not names or not set(names) <= set(MODELS):
        fail(f"--model needs one or more of {', '.join(MODELS)}, got {text!r}")
    if "boosted" in names and not can_boost():
        fail(f"--model boosted grows trees: {NEEDS_LIBRARY}")
    return names


def _losses(text: str, others: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of losses whose predictions are proportions, or that are among the others."""
    from .experiments.protocol import LossChoice

    names, known = _names(text), [*loss_names(), *others]
    known = [name for name in known if name in others or LossChoice(name).has_classes]
    for name in names:
        _check_loss(name)
        if name not in known:
            fail(f"{name!r} does not predict proportions; choose among {', '.join(known)}")
    if not names or len(set(names)) != len(names):
        fail(f"--losses needs one or more different names, got {text!r}")
    return tuple(names)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _given(context: typer.Context, command: str, without: Sequence[str]) -> list[str]:
    """The options that were given, as far as they say the same to another command."""
    others = {one.name for one in _commands()[command].params}
    others -= {"output", "tightness", "alphas", "whole_grid", *without}
    words: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        is_option = parameter.param_type_name == "option" and name in others
        if not is_option or not _is_given(context, name):
            continue
        value = context.params[name]
        if isinstance(value, bool):
            words += [parameter.opts[0] if value else parameter.secondary_opts[0]]
        else:
            words += [parameter.opts[0], str(value)]
    return words


def _check_not_input(file: Path, output: Path) -> None:
    """Refuse to write over a file that is read."""
    if output.exists() and file.exists() and output.samefile(file):
        fail(f"--output names {file}, which is read; name another file")


def _positive(name: str, value: float) -> float:
    if not 0 < value < float("inf"):
        fail(f"{name} must be a positive number, got {value:g}")
    return value


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        fail(f"{name} needs numbers with commas between them, got {text!r}")


def _alphas(text: str) -> tuple[float, ...]:
    """Different positive numbers, from the largest to the smallest; by default the paper's."""
    if not text:
        from .linear_model import DEFAULT_ALPHAS

        return DEFAULT_ALPHAS[::-1]
    numbers = {_positive("--alphas", alpha) for alpha in _numbers("--alphas", text)}
    return tuple(sorted(numbers, reverse=True))


def _device(name: str) -> str:
    """A device that PyTorch can compute on here."""
    from .experiments.runner import find_device

    try:
        find_device(name)
    except ImportError:
        fail("--device needs PyTorch: pip install 'fitzpatrick[torch]'")
    except ValueError as error:
        fail(f"--device: {error}")
    return name


def _command() -> str:
    """The line that was typed."""
    return shlex.join(["fitzpatrick", *sys.argv[1:]])


def warn(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)


def fail(message: str) -> NoReturn:
    """End with one line and exit code 2."""
    warn(message)
    raise typer.Exit(ERROR)


def _commands() -> dict[str, typer.core.TyperCommand]:
    """The commands by name."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # of a group


def _has_options(advice: str) -> bool:
    """True if the command that runs, or another one that the advice names, has its options."""
    named = re.search(r"fitzpatrick (\w+)", advice)
    command = _commands()[named[1] if named else sys.argv[1]]
    known = {option for parameter in command.params for option in parameter.opts}
    return set(re.findall(r"--[a-z-]+", advice)) <= known


def main() -> None:
    """Run the command line; what is wrong with a file or a folder is said in one line."""
    from concurrent.futures import BrokenExecutor

    from .datasets import DataError, UnavailableError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may know no α
    try:
        app()
    except DataError as error:
        has_options = error.advice is None or _has_options(error.advice)
        problem = str(error if has_options else error.without_advice())
    except UnavailableError as error:
        problem = str(error)
    except BrokenExecutor:
        problem = (
            "a worker process was killed, perhaps for lack of memory; the same command goes on "
            "from the finished paths, with -j 1 in a single process"
        )
    except OSError as error:
        problem = f"{error.filename or 'the output'}: {error.strerror or error}"
    else:
        return
    print(f"error: {' '.join(problem.split())}", file=sys.stderr)
    sys.exit(ERROR)
