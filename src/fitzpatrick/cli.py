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
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np

from . import __version__
from .datasets import (
    DATASETS,
    PAPER_LOSSES,
    DataError,
    ReadOptions,
    Table,
    UnavailableError,
    read_cells,
    read_inputs,
    read_table,
    where,
)
from .datasets._files import write_atomically
from .datasets._table import counted
from .datasets.options import KINDS, split_names
from .losses import ends, get_loss, loss_names, regularizers_by_name

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
MissingValues = StrEnum("MissingValues", ["impute", "drop-targets", "drop", "error"])
CategoryChoice = StrEnum("CategoryChoice", ["encode", "error"])
DecimalMark = StrEnum("DecimalMark", {"point": ".", "comma": ","})
FileFormat = StrEnum("FileFormat", ["csv", "libsvm", "arff", "parquet", "xlsx", "jsonl"])
Precision = StrEnum("Precision", ["float64", "float32"])
Model = StrEnum("Model", ["linear", "boosted"])


def _option(text: str, *names: str, **details: Any) -> Any:
    """An option with its help; without names it is called as its parameter is."""
    return typer.Option(*names, help=text, **details)


_TO, _JOBS = ("--output", "-o"), ("--jobs", "-j")
_NAMES = "Losses, separated by commas."
# by name, or by command and name where it means something else there
_OPTIONS = {
    # a file to learn from, and how it is read
    "file": typer.Argument(metavar="FILE", help="CSV, LIBSVM, ARFF, Excel, parquet or JSON lines."),
    "targets": _option("Target columns, separated by commas (not LIBSVM).", metavar="NAMES"),
    "format": _option("Format of FILE; by default, from its suffix.", "--format"),
    "ignore": _option("Columns to leave out (not LIBSVM).", metavar="NAMES"),
    "missing": _option("How to treat missing values."),
    "categories": _option("How to treat columns of words."),
    "kinds": _option("Kinds of columns: number, category, tags or ignored.", metavar="NAME=KIND,…"),
    "tags": _option("Columns with several words in a cell, such as rock;jazz.", metavar="NAMES"),
    "missing_values": _option(
        "Words that stand for a missing value, besides NA and the like.", metavar="WORDS"
    ),
    "decimal": _option("Decimal mark, if the file does not make it clear.", "--decimal"),
    "normalize": _option(
        "Divide target columns, such as counts, by their sum in each row.", "--normalize"
    ),
    "no_header": _option(
        "The first line is data; columns are called column_1, column_2, …", "--no-header"
    ),
    "sheet": _option("Sheet of an Excel workbook; by default the first.", metavar="NAME"),
    # what is fitted
    "names": typer.Argument(
        metavar="DATASET", help="Names of data sets, or 'all'. [default: yeast]"
    ),
    "_": typer.Option("--datasets", hidden=True),
    "test": _option("File with test samples; by default a quarter of FILE is held out."),
    "loss": _option("Name of the loss."),
    "losses": _option(
        _NAMES,
        metavar="NAMES",
        show_default="logistic, sparsemax, entmax15, sigmoid for labels, and Fitzpatrick",
    ),
    "reproduce.losses": _option(_NAMES, metavar="NAMES", show_default="the paper's four"),
    "tightness": _option(
        "Tightnesses of the Fitzpatrick losses.", metavar="NUMBERS", show_default="1"
    ),
    "fit.tightness": _option(
        "Tightness of a Fitzpatrick loss: 0 is Fenchel-Young.", show_default="1"
    ),
    "model": _option("Linear model or boosted trees."),
    "models": _option(
        "Models: linear, boosted, or both: linear,boosted.",
        "--model",
        metavar="NAMES",
        show_default="both if LightGBM is installed, for up to 50 classes",
    ),
    "rounds": _option(
        "Rounds of boosting; by default cross-validation chooses.",
        metavar="N",
        show_default=False,
        min=1,
    ),
    "alpha": _option("Penalty; by default cross-validation chooses."),
    "alphas": _option(
        "Penalties to choose from, separated by commas.",
        metavar="NUMBERS",
        show_default="1e4, 1e3, …, 1e-4",
    ),
    "whole_grid": _option(
        "Fit every penalty, even where weaker ones have become clearly worse.", "--whole-grid"
    ),
    "stop_early": _option(
        "End each path of penalties once its dev error has clearly risen; the paper fits every "
        "one.",
        "--stop-early",
    ),
    "intercept": _option("Learn an unpenalized intercept."),
    "reproduce.intercept": _option("Learn an unpenalized intercept.", "--intercept"),
    "scaling": _option("How to scale the features."),
    "labelled_only": _option(
        "Leave out samples without a label, as compare does.", "--labelled-only"
    ),
    "refit": _option("Test a model that is fitted to train and dev together."),
    "split": _option(
        "Divide data sets that come as one file at random, with this seed.", metavar="SEED", min=0
    ),
    "seeds": _option("Number of random dev splits.", metavar="N", min=1, max=1000),
    "tol": _option("Gradient norm, relative to the one at zero, that ends a fit.", metavar="X"),
    # where it is computed, and where the results go
    "jobs": _option(
        "Number of processes.", *_JOBS, metavar="N", show_default="one per core", min=0
    ),
    "reproduce.jobs": _option(
        "Number of processes.",
        *_JOBS,
        metavar="N",
        show_default="one per core; 1 with --device",
        min=0,
    ),
    "precision": _option("Floating-point precision."),
    "device": _option("PyTorch device, such as cuda.", metavar="NAME", show_default="none: NumPy"),
    "output": _option("Folder for records and results.", *_TO, metavar="FOLDER", file_okay=False),
    "fit.output": _option("Model file to write (.safetensors).", *_TO),
    "coefficients": _option(
        "Table of the coefficients to write (.csv).", metavar="FILE", show_default=False
    ),
    "predict.model": typer.Argument(metavar="MODEL", help="A model that 'fit' saved."),
    "predict.output": _option("CSV file; by default standard output.", *_TO),
    "keep": _option("Columns of FILE to put before the predictions (not LIBSVM).", metavar="NAMES"),
    "figures.output": _option("Folder to write to.", *_TO, metavar="FOLDER", file_okay=False),
    "formats": _option("Format; may be repeated.", "--format", "-f"),
    "explore.output": _option("Page to write (.html).", *_TO, metavar="FILE"),
    "show": _option("Open it in the browser.", "--open/--no-open"),
    "details": _option("Show sources, licenses and notes, too.", "--details"),
}


@dataclass(frozen=True)
class Source:
    """A file to learn from, and how it is read: the options that ``compare`` and ``fit`` share."""

    file: Path
    targets: str = ""
    format: FileFormat | None = None
    ignore: str = ""
    missing: MissingValues = MissingValues.impute
    categories: CategoryChoice = CategoryChoice.encode
    kinds: str = ""
    tags: str = ""
    missing_values: str = ""
    decimal: DecimalMark | None = None
    normalize: bool = False
    no_header: bool = False
    sheet: str = ""

    def read(
        self, *, plain: bool = False, test: Path | None = None, like: Table | None = None
    ) -> Table:
        """Features and targets of the file, or of a test file whose columns are like a table's."""
        kinds, tags = _kinds(self.kinds), split_names(self.tags)
        for name in tags:
            if kinds.get(name, "tags") != "tags":
                fail(f"--tags names {name!r}, which is {kinds[name]} in --kinds")
        options = ReadOptions(
            missing=self.missing,
            categories=self.categories,
            kinds=kinds,
            tags=tags,
            missing_values=split_names(self.missing_values),
            decimal=self.decimal and self.decimal.value,
            normalize=self.normalize,
            header=not self.no_header,
            sheet=self.sheet,
        )
        given = test or self.file, split_names(self.targets) or None, self.format, like
        return read_table(*given, ignore=split_names(self.ignore), plain=plain, options=options)


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command whose arguments are options; ``source`` stands for those of Source."""
    parameters: list[inspect.Parameter] = []
    shared = inspect.signature(Source, eval_str=True).parameters
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        for one in shared.values() if parameter.name == "source" else [parameter]:
            annotation = one.annotation
            if annotation is not typer.Context:
                named = f"{function.__name__}.{one.name}"
                annotation = Annotated[annotation, _OPTIONS.get(named) or _OPTIONS[one.name]]
            parameters.append(one.replace(kind=one.KEYWORD_ONLY, annotation=annotation))

    @functools.wraps(function)
    def call(**given: Any) -> None:
        if shared.keys() <= given.keys():
            given["source"] = Source(**{name: given.pop(name) for name in shared})
        function(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return app.command()(call)


def _version(value: bool) -> None:
    if value:
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

    Without a command, print every loss and its link for one example.
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


@_command
def reproduce(
    names: list[str] | None = None,
    _: bool = False,
    intercept: bool = False,
    scaling: Scaling = Scaling.standardize,
    losses: str = "",
    refit: bool = False,
    split: int | None = None,
    seeds: int = 5,
    jobs: int = 0,
    precision: Precision = Precision.float64,
    tol: float = 1e-8,
    alphas: str = "",
    stop_early: bool = False,
    device: str | None = None,
    output: Path = Path("out"),
) -> None:
    """Reproduce Table 1 of the paper, our numbers next to its own.

    Runs on the embedded yeast data unless you name other sets. Every finished fit is kept: run the
    same command again to continue after an interruption.
    """
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
    options = RunOptions(at_tightnesses(wanted), protocol, seeds, n_jobs, output, _typed())
    if run(chosen, options, typer.echo, warn, split) == 0:
        raise typer.Exit(ERROR)


@_command
def compare(
    source: Source,
    context: typer.Context,
    test: Path | None = None,
    losses: str = "",
    tightness: str = "",
    models: str = "",
    alphas: str = "",
    whole_grid: bool = False,
    intercept: bool = True,
    scaling: Scaling = Scaling.standardize,
    refit: bool = True,
    seeds: int = 5,
    jobs: int = 0,
    output: Path = Path("out"),
) -> None:
    """Compare losses on your own file: linear models, boosted trees.

    Targets are 0/1 indicators, proportions that sum to one, or one column of class names or tags.
    """
    from .experiments.compare import LABEL_LOSSES, SIMPLEX_LOSSES, Recommendation, experiment_of
    from .experiments.compare import compare as run
    from .experiments.learners import MAX_TREE_CLASSES, NEEDS_LIBRARY, can_boost
    from .experiments.protocol import MODELS, Protocol, at_tightnesses
    from .experiments.runner import RunOptions

    wanted = _losses(losses, LABEL_LOSSES) if losses else SIMPLEX_LOSSES
    tightnesses: Sequence[float | None] = (None,)
    if tightness:
        tightnesses = _numbers("--tightness", tightness)
        for one in tightnesses:
            if not 0 <= one < float("inf"):
                fail(f"--tightness must be a finite number of at least 0, got {one:g}")
            _check_loss("fitzpatrick_logistic", one)
    grid = _alphas(alphas)
    asked = _models(models) if models else ()
    table, file = source.read(), source.file
    has_few_classes = table.Y.shape[1] <= MAX_TREE_CLASSES
    chosen = asked or (tuple(MODELS) if can_boost() and has_few_classes else ("linear",))
    held_out = source.read(test=test, like=table) if test else None
    if table.has_several_labels and not losses:
        wanted += LABEL_LOSSES
    for name in set(LABEL_LOSSES) & set(wanted):
        if not table.has_several_labels:
            fail(f"{name!r} is for labels that occur together, and each row of {file} has one")
    protocol = Protocol(intercept, scaling, grid, refit=refit, whole_grid=whole_grid, refine=True)
    wanted_at = at_tightnesses(wanted, tightnesses, chosen)
    n_jobs = jobs or os.cpu_count() or 1
    options = RunOptions(wanted_at, protocol, seeds, n_jobs, output, _typed())
    experiment, notes = experiment_of(table, file, held_out, test, options)
    if not asked and len(chosen) > 1:
        notes += ("boosted trees were tried, too; --model linear leaves them out and is faster",)
    elif not asked:
        many = (
            f"{table.Y.shape[1]} classes take as many trees in each round; --model linear,boosted"
        )
        notes += (f"boosted trees were not tried: {many if can_boost() else NEEDS_LIBRARY}",)

    def fit_command(advice: Recommendation) -> str:
        is_linear = advice.loss.model == "linear"
        words = [str(file), *_given(context, "fit", () if is_linear else _OF_LINEAR_MODELS)]
        words += ["--loss", advice.loss.name] + ([] if is_linear else ["--model", "boosted"])
        if advice.loss.tightness is not None:
            words += ["--tightness", repr(advice.loss.tightness)]
        if table.without_label and not advice.loss.has_classes:
            words += ["--labelled-only"]  # as compared
        words += ["--alpha" if is_linear else "--rounds", f"{advice.setting:g}"]
        words += ["-o", "model.safetensors"]
        return shlex.join(["fitzpatrick", "fit", *words])

    run(experiment, table.kind, notes, options, fit_command, typer.echo)


# options of fit that boosted trees do not have
_OF_LINEAR_MODELS = ("alpha", "alphas", "intercept", "scaling", "coefficients")


@_command
def fit(
    source: Source,
    context: typer.Context,
    output: Path,
    loss: str = "fitzpatrick_logistic",
    model: Model = Model.linear,
    rounds: int | None = None,
    alpha: float | None = None,
    alphas: str = "",
    whole_grid: bool = False,
    tightness: float | None = None,
    intercept: bool = True,
    scaling: Scaling = Scaling.standardize,
    labelled_only: bool = False,
    coefficients: Path | None = None,
) -> None:
    """Fit a model to a file and save it.

    The losses squared, poisson and sigmoid take the targets as they are: numbers, counts, or
    labels that may occur together.
    """
    from .experiments import model_files, models
    from .experiments.protocol import LossChoice, Protocol
    from .experiments.report import number, wrapped

    _check_loss(loss, tightness)
    _models(model)
    choice = LossChoice.of(loss, tightness, model)
    if source.normalize and not choice.has_classes:
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
    _check_not_input(source.file, output)
    if coefficients is not None:
        _check_not_input(source.file, coefficients, "--coefficients")
    table = models.read_for_fit(source.read, loss)
    protocol = Protocol(intercept, scaling, grid, whole_grid=whole_grid, refine=True)
    setting = alpha if model is Model.linear else rounds
    fitted = models.fit(table, source.file, choice, protocol, setting, labelled_only=labelled_only)
    saved = fitted.model
    model_files.save(saved, output)
    if coefficients:
        write_atomically(coefficients, models.coefficients_csv(saved))
    lines = [
        f"fitted {choice} to {counted(fitted.samples, 'sample')}, "
        f"{counted(saved.columns.n_features, 'feature')}, "
        f"{counted(len(saved.target_names), 'target')} ({saved.kind})"
    ]
    if saved.cv_score is not None:
        setting_found = choice.in_words(f"{fitted.setting:g}")
        lines.append(f"{setting_found}: cross-validated squared error {number(-saved.cv_score)}")
        lines.append(f"baseline, the mean target for every sample: {number(fitted.baseline or 0)}")
    lines += [f"note: {note}" for note in fitted.notes]
    lines += [f"wrote {written}" for written in (output, coefficients) if written]
    for line in lines:
        typer.echo(wrapped(line))


@_command
def predict(
    model: Path,
    file: Path,
    output: Path | None = None,
    format: FileFormat | None = None,  # noqa: A002  (the option's name)
    keep: str = "",
    decimal: DecimalMark | None = None,
    no_header: bool = False,
    sheet: str = "",
) -> None:
    """Predict the targets of a file, as CSV.

    One line per sample, in the order of the file. Columns that the model does not use are ignored.
    Notes on missing values, new words and the like go to standard error. For class names, a last
    column holds the class with the largest probability. Text that a spreadsheet would take for a
    formula begins with an apostrophe.
    """
    from .experiments import model_files, models

    if output is not None:
        _check_not_input(file, output)
        _check_not_input(model, output)
    loaded = model_files.load(model)
    how: Any = {"header": not no_header, "sheet": sheet}
    mark = decimal and decimal.value
    table = read_inputs(file, loaded.columns, format, decimal=mark, **how)
    kept = read_cells(file, split_names(keep), format, **how) if keep else {}
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


@_command
def figures(
    output: Path = Path("out"),
    formats: list[FigureFormat] = [FigureFormat.png],  # noqa: B006  (typer only reads the default)
) -> None:
    """Draw the losses: bounds, gaps, level sets and tightnesses."""
    from .experiments.figures import write_figures

    for path in write_figures(output, formats):
        typer.echo(f"wrote {path}")


@_command
def explore(output: Path = Path("out/explorer.html"), show: bool = True) -> None:
    """Explore the losses in the browser: drag scores and targets."""
    from .explorer import page, show_in_browser

    write_atomically(output, page())
    is_shown = show and show_in_browser(output)
    typer.echo(f"wrote {output}" + ("" if is_shown else ": open it in a browser"))


@_command
def datasets(details: bool = False) -> None:
    """List the data sets of the paper, and where to get them."""
    from .experiments.report import dataset_details, datasets_table

    typer.echo(datasets_table(where()))
    if details:
        typer.echo(f"\n{dataset_details()}")


def _kinds(text: str) -> dict[str, str]:
    """Column → kind, of ``zip=category,note=ignored``."""
    found: dict[str, str] = {}
    for pair in split_names(text):
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

    names = tuple(dict.fromkeys(split_names(text)))
    if not names or not set(names) <= set(MODELS):
        fail(f"--model needs one or more of {', '.join(MODELS)}, got {text!r}")
    if "boosted" in names and not can_boost():
        fail(f"--model boosted grows trees: {NEEDS_LIBRARY}")
    return names


def _losses(text: str, others: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of losses whose predictions are proportions, or that are among the others."""
    from .experiments.protocol import LossChoice

    names = split_names(text)
    known = [name for name in loss_names() if name in others or LossChoice(name).has_classes]
    for name in names:
        _check_loss(name)
        if name not in known:
            instead = f", or run fitzpatrick fit --loss {name}" if others else ""
            choices = f"choose among {', '.join(known)}{instead}"
            fail(f"{name!r} does not predict proportions; {choices}")
    if not names or len(set(names)) != len(names):
        fail(f"--losses needs one or more different names, got {text!r}")
    return tuple(names)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _given(context: typer.Context, command: str, without: Sequence[str]) -> list[str]:
    """The options that were typed and mean the same to another command."""
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


def _check_not_input(file: Path, output: Path, option: str = "--output") -> None:
    """Refuse to write over a file that is read."""
    if output.exists() and file.exists() and output.samefile(file):
        fail(f"{option} names {file}, which is read; name another file")


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


def _typed() -> str:
    return shlex.join(["fitzpatrick", *sys.argv[1:]])


def warn(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"error: {' '.join(message.split())}", err=True)


def fail(message: str) -> NoReturn:
    """End with one line and exit code 2."""
    warn(message)
    raise typer.Exit(ERROR)


def _commands() -> dict[str, typer.core.TyperCommand]:
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # of a group


def _has_options(advice: str) -> bool:
    """True if the options in an advice exist: of the command that it names, or that runs."""
    named = re.search(r"fitzpatrick (\w+)", advice)
    command = _commands()[named[1] if named else sys.argv[1]]
    known = {option for parameter in command.params for option in parameter.opts}
    return set(re.findall(r"--[a-z-]+", advice)) <= known


def main() -> None:
    """Run the command line; a problem with a file or a folder is one line on standard error."""
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
    warn(problem)
    sys.exit(ERROR)
