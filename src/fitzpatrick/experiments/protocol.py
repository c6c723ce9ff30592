r"""The paper's protocol: what is fitted, on which rows, and how its error is measured.

For each α on a grid, from the strongest to the weakest, the linear model

.. math:: \min_W \sum_i L(y_i, W x_i) + \tfrac{\alpha}{2} \|W\|^2

is fitted to three quarters of the training part. The α with the least squared error on the other
quarter, dev, is chosen.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..datasets import DataError, Dataset, Split, Table
from ..datasets._table import Matrix
from ..linear_model import DEFAULT_ALPHAS
from ..linear_model._checks import check_features
from ..linear_model._cv import refined
from ..linear_model._design import constant_columns
from ..losses import Loss, get_loss, name_of
from ..preprocessing import label_proportions

SCALINGS = ("standardize", "none")
DEV_SHARE = 4  # dev is a quarter of the training part, rounded up

# a change of the protocol or of the records' fields makes older records unusable
_FORMAT = 5

SEARCH_TOL = 1e-4  # relative gradient norm of fits that only serve to choose α
MAX_STEP = 1.4  # from the best α to its neighbors; three halvings of a power of ten leave 1.33
# rounds of boosted trees to choose from
ROUNDS = (1, 2, 4, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 80, 100, 126, 160, 200, 250, 320)


@dataclass(frozen=True)
class Protocol:
    """Settings of a run; two runs share their records exactly if these are equal."""

    intercept: bool = False
    scaling: str = "standardize"  # to mean 0 and deviation 1 on the rows that are fitted, or "none"
    alphas: tuple[float, ...] = DEFAULT_ALPHAS[::-1]  # falling: each fit starts at the one before
    dtype: str = "float64"  # of the products, or "float32"
    refit: bool = False  # the model of the chosen α is fitted to train and dev before it is tested
    tol: float = 1e-8  # relative gradient norm at which a fit ends
    max_iter: int = 1000
    whole_grid: bool = True  # as in the paper; else paths end where the dev error has clearly risen
    refine: bool = False  # the search for α goes on halfway to the neighbors of the best one
    rounds: tuple[int, ...] = ROUNDS  # of boosted trees to choose from, rising
    device: str | None = None  # where PyTorch keeps the large arrays; None computes with NumPy

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise ValueError(f"scaling must be one of {SCALINGS}, got {self.scaling!r}")
        if self.dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r}")
        if not self.alphas or list(self.alphas) != sorted(set(self.alphas), reverse=True):
            raise ValueError(f"alphas must be different and falling, got {self.alphas}")

    @property
    def centered(self) -> bool:
        """True if features are shifted to mean 0, which makes constant ones zero."""
        return self.intercept or self.scaling == "standardize"

    @property
    def refits_grid(self) -> bool:
        """True if every α is fitted to train and dev, too, not the chosen ones alone."""
        return self.refit and self.whole_grid and not self.refine

    def key_fields(self) -> dict[str, Any]:
        """The settings that make a difference to a single fit."""
        fields = asdict(self)
        if self.whole_grid and not self.refine:
            del fields["refit"]  # asks for more fits, and leaves the others as they are
        return fields

    def tol_of(self, path: "FitPath") -> float:
        """Relative gradient norm at which the fits of a path end."""
        only_chooses = self.refit and not self.refits_grid and path.seed is not None
        return max(self.tol, SEARCH_TOL) if only_chooses else self.tol

    def key(self, fingerprint: str) -> str:
        """A short name for these settings on these data."""
        content = {**self.key_fields(), "data": fingerprint, "format": _FORMAT}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class Experiment:
    """Labelled training and test rows with targets as proportions."""

    name: str
    X: Matrix
    Y: np.ndarray
    X_test: Matrix
    Y_test: np.ndarray
    checksums: dict[str, str]  # of the files it came from, for reports
    file: Path | None = None  # what errors name; by default the name

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is fitted or tested."""
        digest = hashlib.sha256()
        arrays: list[Any] = [self.X, self.Y, self.X_test, self.Y_test]
        for one in arrays:
            digest.update(f"{type(one).__name__} {one.shape} {one.dtype};".encode())
            for part in (one.indptr, one.indices, one.data) if sparse.issparse(one) else (one,):
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the files, and of the arrays that were made from them."""
        return {**self.checksums, "fitted and tested": self.fingerprint}

    @classmethod
    def of(cls, name: str, train: Split | Table, test: Split | Table, *about: Any) -> "Experiment":
        """The labelled rows of two tables, with their checksums and perhaps the file."""
        Y, Y_test = label_proportions(train.Y), label_proportions(test.Y)
        return cls(name, train.X, Y, test.X, Y_test, *about)

    @classmethod
    def of_dataset(cls, data: Dataset) -> "Experiment":
        """The official split of a data set."""
        train, test = data.train.labelled(), data.test.labelled()
        return cls.of(data.info.name, train, test, data.checksums)


def prepared(protocol: Protocol, fitted: Split, *others: Split) -> list[Split]:
    """In the protocol's precision, without the features that are constant where fitted."""
    X = fitted.X.astype(protocol.dtype, copy=False)
    constant = constant_columns(X, zero_only=not protocol.centered)
    kept = np.delete(np.arange(X.shape[1]), constant)

    def prepare(X: Matrix) -> Matrix:
        X = X[:, kept].astype(protocol.dtype, copy=False)
        return X if sparse.issparse(X) else np.ascontiguousarray(X)

    return [Split(prepare(one.X), one.Y) for one in (fitted, *others)]


def dev_split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices to fit and dev indices, sorted."""
    order = np.random.default_rng(seed).permutation(n)
    size = -(-n // DEV_SHARE)
    return np.sort(order[size:]), np.sort(order[:size])


def check(experiment: Experiment, protocol: Protocol, seeds: int) -> None:
    """Raise what would stop a fit, before the first of them, as a DataError."""
    file = experiment.file or Path(experiment.name)
    n, n_test = experiment.X.shape[0], experiment.X_test.shape[0]
    if n < 2 or n_test < 1:
        raise DataError(
            f"{n} samples to learn from and {n_test} to test have a label; expected two and one, "
            "or more",
            file,
        )
    for X in (experiment.X, experiment.X_test):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                check_features(X, protocol.dtype)
        except ValueError as error:
            raise DataError(str(error), file) from None
    for seed in range(seeds):
        n_fitted, width = split(experiment, protocol, seed)[0].X.shape
        if width == 0:
            raise DataError(
                f"every feature is constant on the {n_fitted} of {n} samples that dev split "
                f"{seed} leaves to fit",
                file,
            )


def split(experiment: Experiment, protocol: Protocol, seed: int | None) -> list[Split]:
    """The rows to fit, dev and test; without a seed all are fitted, and there are no dev rows."""
    X, Y, n = experiment.X, experiment.Y, experiment.X.shape[0]
    fitted, dev = (np.arange(n), np.arange(0)) if seed is None else dev_split(n, seed)
    test = Split(experiment.X_test, experiment.Y_test)
    return prepared(protocol, Split(X[fitted], Y[fitted]), Split(X[dev], Y[dev]), test)


# of each kind of model, the setting that held-out errors choose
MODELS = {"linear": "α", "boosted": "rounds"}


@dataclass(frozen=True)
class LossChoice:
    """A loss of the registry, at the tightness of its name (None) or another, and what fits it.

    Example:
        >>> print(LossChoice.of("fitzpatrick_logistic", 0.5))
        fitzpatrick_logistic (tightness 0.5)
        >>> print(LossChoice.of("fitzpatrick_logistic", 0.0, "boosted"))
        boosted logistic
    """

    name: str
    tightness: float | None = None
    model: str = "linear"

    @classmethod
    def of(cls, name: str, tightness: float | None = None, model: str = "linear") -> "LossChoice":
        """The choice for that loss; both ends of a family go by their names."""
        loss = get_loss(name, tightness)
        known = name_of(loss)
        return cls(name, loss.tightness, model) if known is None else cls(known, None, model)

    @property
    def loss(self) -> Loss:
        return get_loss(self.name, self.tightness)

    def grid(self, protocol: Protocol) -> tuple[float, ...]:
        """The settings to choose from, from the simplest model."""
        return protocol.rounds if self.model == "boosted" else protocol.alphas

    def in_order(self, settings: Iterable[float]) -> tuple[float, ...]:
        """Different settings, from the simplest model to the most complex one."""
        return tuple(sorted(set(settings), reverse=self.model == "linear"))

    def in_words(self, settings: str) -> str:
        if self.model == "boosted":
            return "1 round" if settings == "1" else f"{settings} rounds"
        return f"α = {settings}"

    @property
    def family(self) -> tuple[str, Any]:
        """What losses at every tightness share: the model, and the regularizer."""
        return self.model, self.loss.regularizer

    @property
    def has_classes(self) -> bool:
        """True if its predictions are proportions; else they are one number for each target."""
        return self.loss.regularizer.domain.has_labels

    def targets(self, Y: np.ndarray) -> np.ndarray:
        """Targets of the fit: proportions, or the 0/1 indicators behind them."""
        return Y if self.has_classes else (Y > 0).astype(Y.dtype)

    def proportions(self, scores: np.ndarray) -> np.ndarray:
        """Its predictions, divided by their sum unless they sum to one anyway."""
        predictions = np.asarray(self.loss.link(scores))
        if self.has_classes:
            return predictions
        sums = predictions.sum(axis=1, keepdims=True)
        even = np.full_like(predictions, 1 / predictions.shape[1])
        return np.asarray(np.divide(predictions, sums, out=even, where=sums > 0))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The class probabilities that belong to scores; its proportions if it has none."""
        if self.has_classes and self.loss.regularizer.has_probabilities:
            return np.asarray(self.loss.probabilities(scores))
        return self.proportions(scores)

    def __str__(self) -> str:
        tightness = "" if self.tightness is None else f" (tightness {self.tightness:g})"
        return f"{'boosted ' * (self.model == 'boosted')}{self.name}{tightness}"


def at_tightnesses(
    names: Sequence[str],
    tightnesses: Sequence[float | None] = (None,),
    models: Sequence[str] = ("linear",),
) -> tuple[LossChoice, ...]:
    """Each Fitzpatrick loss at each tightness, and the other losses as they are, for each model.

    Example:
        >>> print(*at_tightnesses(["sparsemax", "fitzpatrick_sparsemax"], [0, 0.5, 1]), sep=", ")
        sparsemax, fitzpatrick_sparsemax (tightness 0.5), fitzpatrick_sparsemax
    """
    choices = [
        LossChoice.of(name, tightness, model)
        for model in models
        for name in names
        for tightness in (tightnesses if get_loss(name).tightness > 0 else [None])
    ]
    return tuple(dict.fromkeys(choices))


@dataclass(frozen=True)
class FitPath:
    """One path of fits: a loss on the rows of a seed, or on train and dev together (None).

    Without settings, penalties or rounds, it is over the grid.
    """

    loss: LossChoice
    seed: int | None
    settings: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """Its name among the records."""
        loss, rows = self.loss, "whole" if self.seed is None else f"seed{self.seed}"
        parts = ["boosted"] * (loss.model == "boosted") + [loss.name]
        parts += [] if loss.tightness is None else [f"tightness{loss.tightness!r}"]
        return "-".join([*parts, rows, *map(repr, self.settings)])


def paths(losses: Sequence[LossChoice], seeds: int, *, refit: bool) -> list[FitPath]:
    """All paths of a run, seeds first, so that early results cover every loss."""
    rows = [*range(seeds), *([None] if refit else [])]
    return [FitPath(loss, seed) for seed in rows for loss in losses]


def halfway(errors: Mapping[float, float]) -> list[float]:
    """The geometric means, to three digits, of the best penalty and its neighbors.

    Neighbors within a factor of MAX_STEP are near enough, and have none.

    Example:
        >>> halfway({100.0: 0.3, 10.0: 0.2, 1.0: 0.4}), halfway({1.0: 0.3, 0.75: 0.2, 0.56: 0.3})
        ([31.6, 3.16], [])
    """
    alphas = np.asarray(sorted(errors))
    scores = -np.asarray([errors[alpha] for alpha in alphas])
    middle = [float(f"{alpha:.3g}") for alpha in refined(alphas, scores[:, None], MAX_STEP)]
    return [alpha for alpha in middle if alpha not in errors]  # subnormal ones have few digits


def describe(protocol: Protocol) -> dict[str, Any]:
    """The settings of linear models in words, for reports."""
    return {
        "intercept": "unpenalized" if protocol.intercept else "none, as in the paper",
        "features": "standardized" if protocol.scaling == "standardize" else "as given",
        "final model": "fitted to train and dev" if protocol.refit else "fitted to train alone",
        "α grid": ", ".join(f"{alpha:g}" for alpha in protocol.alphas)
        + ("" if protocol.whole_grid else ", until the dev error has clearly risen")
        + (", then in smaller steps around the best" if protocol.refine else ""),
        "precision": protocol.dtype,
        "tolerance": f"{protocol.tol:g} of the gradient norm at zero",
        "iterations at most": protocol.max_iter,
        "computed by": f"PyTorch on {protocol.device}" if protocol.device else "NumPy",
    }
