"""Models of files: fit one to a table, and predict with it."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from ..datasets import Columns, DataError, Split, Table
from ..datasets._table import Matrix
from ..linear_model._design import constant_columns
from ..losses import get_loss
from ..metrics import squared_error
from ..preprocessing import label_proportions
from .learners import has_converged, learner, search
from .model_files import MAX_COEFFICIENTS, SavedModel
from .protocol import MODELS, SEARCH_TOL, LossChoice, Protocol, prepared
from .report import csv_text, edge_of_grid
from .runner import progress

TOL = 1e-8
FOLDS = 5

_FORMULA = tuple("=+-@\t\r")  # what spreadsheets take for the beginning of one
_NUMBER = re.compile(r"[+-]?[\d.,'\s]*\d[\d.,'\s]*([eE][+-]?\d+)?\s*%?")


@dataclass(frozen=True, eq=False)
class FileFit:
    """A model, and how it was fitted."""

    model: SavedModel  # to be saved
    setting: float  # its alpha or its rounds
    samples: int  # how many it was fitted to
    notes: tuple[str, ...]  # what was left out, and the like
    baseline: float | None = None  # cross-validated squared error of the mean target


def read_for_fit(read: Callable[..., Table], loss: str) -> Table:
    """The table that a loss is fitted to, by a reader: labels, or numbers as they are."""
    domain = get_loss(loss).regularizer.domain
    if domain.has_labels:
        return read()
    if domain.contains(np.ones(1)) and not domain.contains(np.full(1, 2.0)):
        try:
            table = read()  # a column may hold tags
        except DataError:  # probabilities of several labels, which need not sum to one
            return read(plain=True)
        if table.kind == "indicators":
            return table
    return read(plain=True)


def fit(
    table: Table,
    file: Path,
    choice: LossChoice,
    protocol: Protocol,
    setting: float | None = None,
    *,
    labelled_only: bool = False,
) -> FileFit:
    """Fit to all samples; without a setting, cross-validation on five shuffled folds chooses it.

    Samples without a label are left out if the loss needs one, or if ``labelled_only``. Features
    that are constant are left out of linear models: their coefficients are zero.
    """
    if choice.has_classes or labelled_only:
        table = table.labelled(file)
    if choice.has_classes:
        Y = label_proportions(table.Y)
    else:
        Y = np.asarray(table.Y, dtype=np.float64)
        _check_targets(Y, table, choice, file)
    notes = list(table.notes)
    if table.kind == "indicators" and table.without_label:
        notes.append(f"{table.without_label} and are kept: each of their targets is 0")
    X, width = table.X, table.X.shape[1]
    is_linear, n_coefficients = choice.model == "linear", width * Y.shape[1]
    if is_linear and n_coefficients > MAX_COEFFICIENTS:
        product = f"{width} features × {Y.shape[1]} targets"
        raise DataError(f"{product} are more than {MAX_COEFFICIENTS} coefficients", file)
    constant = constant_columns(X, zero_only=is_linear and not protocol.centered)
    kept = np.delete(np.arange(width), constant)
    if constant.size == width:
        raise DataError("every feature is constant", file)
    if is_linear and constant.size:
        X = X[:, kept]
        notes.append(
            f"{constant.size} of {width} features are constant and left out (coefficient 0; "
            "predict expects them)"
        )
    cv_score = baseline = None
    try:
        if setting is None:
            errors, baseline, unconverged = _cross_validate(X, Y, choice, protocol, file.name)
            setting = min(choice.in_order(errors), key=errors.__getitem__)
            cv_score = -errors[setting]
            notes += _notes_on_search(choice, protocol, errors, setting, unconverged)
        with progress(f"{file.name}: fitting", None, "iterations") as bar:
            learn = learner(
                choice, X, Y, protocol, tol=TOL, callback=lambda _: bar.update() and None
            )
            estimator = learn(setting)
    except ValueError as error:
        raise DataError(str(error), file) from None
    if is_linear:
        coef = np.zeros((Y.shape[1], width))
        coef[:, kept] = estimator.coef_
        estimator.coef_, estimator.n_features_in_ = coef, width
        estimator.intercept_ = estimator.intercept_.astype(np.float64)
        if not estimator.status_.converged:
            notes.append(
                f"stopped after {estimator.n_iter_} iterations at gradient norm "
                f"{estimator.gradient_norm_:.3g}: {estimator.status_.value}"
            )
    columns = table.columns or Columns.plain(table.feature_names)
    saved = SavedModel(estimator, columns, table.target_names, table.kind, cv_score)
    return FileFit(saved, setting, len(Y), tuple(notes), baseline)


def _cross_validate(
    X: Matrix, Y: np.ndarray, choice: LossChoice, protocol: Protocol, title: str
) -> tuple[dict[float, float], float, int]:
    """Mean squared errors over the folds, of each setting that is searched and of the mean target.

    The last number counts the fits that did not converge.
    """
    if len(Y) < 2:
        raise ValueError("a single sample cannot be divided into folds")
    splits = KFold(min(FOLDS, len(Y)), shuffle=True, random_state=0).split(X)
    tol = TOL if protocol.whole_grid else SEARCH_TOL
    folds, baselines = [], []
    for fitted, rest in splits:
        train, dev = prepared(protocol, Split(X[fitted], Y[fitted]), Split(X[rest], Y[rest]))
        if train.X.shape[1] == 0:
            raise ValueError(f"every feature is constant on the {len(fitted)} samples of a fold")
        folds.append((learner(choice, train.X, train.Y, protocol, tol=tol), dev))
        baselines.append(squared_error(dev.Y, np.broadcast_to(train.Y.mean(axis=0), dev.Y.shape)))
    errors: dict[float, float] = {}
    unconverged = 0
    with progress(f"{title}: choosing {MODELS[choice.model]}", None) as bar:
        for setting in search(choice, protocol, errors):
            found = []
            for fit, dev in folds:
                model = fit(setting)
                scores = model.predict_scores(dev.X)
                found.append(squared_error(dev.Y, choice.loss.link(scores)))
                unconverged += not has_converged(model)
                bar.update()
            errors[setting] = float(np.mean(found))
    return errors, float(np.mean(baselines)), unconverged


def _notes_on_search(
    choice: LossChoice,
    protocol: Protocol,
    errors: Mapping[float, float],
    chosen: float,
    unconverged: int,
) -> Iterator[str]:
    """What the cross-validation left open, in sentences."""
    if unconverged:
        yield f"{unconverged} fits of the cross-validation did not converge"
    strongest, weakest = protocol.alphas[0], protocol.alphas[-1]
    if choice.model == "linear":
        if chosen in (strongest, weakest):
            yield edge_of_grid(chosen, is_weakest=chosen == weakest)
        if min(errors) > weakest:
            yield (
                f"the search stopped at α = {min(errors):g}, where the error had clearly risen; "
                "--whole-grid goes on to the weakest penalty"
            )
    elif chosen == protocol.rounds[-1]:
        yield f"{chosen} rounds are the most that were tried: --rounds {2 * chosen} goes further"


def _check_targets(Y: np.ndarray, table: Table, choice: LossChoice, file: Path) -> None:
    """Raise for the first target that the loss does not take, with its line."""
    domain = choice.loss.regularizer.domain
    inside = np.asarray(domain.contains(Y))
    if inside.all():
        return
    row = int((~inside).argmax())
    names = table.target_names
    what = re.sub(
        r"\bentry (\d+)", lambda at: f"target {names[int(at[1])]!r}", domain.violation(Y[row])
    )
    line = int(table.lines[row]) if table.lines.size else None
    raise DataError(f"{what}, the range of the loss {choice.name!r}", file, line)


def predictions_csv(model: SavedModel, X: Any, kept: Mapping[str, Sequence[str]] = {}) -> str:
    """A header with the targets' names and one line per sample, in the order of X.

    The columns in ``kept`` come first. Models of class labels have a last column, the class of the
    largest proportion.
    """
    predictions = model.predict_features(X)
    taken = {*kept, *model.target_names}
    header: list[str] = []
    for name in model.target_names:
        header.append(_unused_name(name, taken) if name in kept else name)
        taken.add(header[-1])
    rows = [[f"{p:.9g}" for p in row] for row in predictions]
    if model.kind == "labels":
        header.append(_unused_name("class", taken))
        for row, best in zip(rows, predictions.argmax(axis=1), strict=True):
            row.append(safe_cell(model.target_names[best]))
    columns = list(zip(*kept.values(), strict=True)) if kept else [()] * len(rows)
    lines = [[*map(safe_cell, first), *row] for first, row in zip(columns, rows, strict=True)]
    return csv_text([[safe_cell(name) for name in (*kept, *header)], *lines])


def coefficients_csv(model: SavedModel) -> str:
    """One line for the intercepts and one per feature, one column per target."""
    estimator = model.estimator
    names = ["(intercept)", *model.columns.feature_names]
    rows = np.vstack([estimator.intercept_, estimator.coef_.T])
    lines = [
        [safe_cell(name), *(f"{value:.9g}" for value in row)]
        for name, row in zip(names, rows, strict=True)
    ]
    return csv_text([["feature", *map(safe_cell, model.target_names)], *lines])


def safe_cell(text: str) -> str:
    """A cell of text as a spreadsheet will show it: with an apostrophe if it would be a formula.

    Numbers stay as they are, and so does a single sign.

    Example:
        >>> [safe_cell(text) for text in ("=1+1", "@a", "-x", "-1.5", "+3 %", "-", "a=b")]
        ["'=1+1", "'@a", "'-x", '-1.5', '+3 %', '-', 'a=b']
    """
    is_formula = text[:1] in _FORMULA and len(text) > 1 and not _NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def _unused_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name
