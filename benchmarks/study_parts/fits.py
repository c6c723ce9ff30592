"""One cell of the study: a model with one loss, fitted to one split and tested.

What a model may choose, it chooses inside of the training part by the squared error: linear models
their penalty by three folds, trees their rounds and networks their epochs on a fifth of the rows.
"""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import kl_div, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

from fitzpatrick import metrics
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
)
from fitzpatrick.losses import Loss, get_loss
from fitzpatrick.regularizers import Tsallis

from .data import ONCE, Task, load

# Steps of the grids of penalties, in sixteenths of a power of ten; the last has all penalties.
STEPS = {"decade": 16, "quarter": 4, "finest": 1}
GRIDS = tuple(STEPS)[:-1]  # whose errors stand beside
FINER = "finer"  # linear models again, on sixteenths of a power of ten
SCREENING_TOL, TOL = 1e-4, 1e-6
ANY_SPLIT = {"feature_pre_filter": False, "min_data_in_bin": 1}
COPIES = "copies"  # rows copied once for each class, with the share as weight
METRICS = ("squared_error", "kullback_leibler", "jensen_shannon", "chebyshev", "clark", "canberra",
           "cosine", "intersection", "calibration_error")  # fmt: skip
FIELDS = (*METRICS, "accuracy", "zeros", "inner", "setting", *GRIDS, "seconds")


@dataclass(frozen=True, order=True)
class Cell:
    """What one row of the results is about."""

    data: str
    split: int
    loss: str
    tightness: float


@dataclass(frozen=True)
class Found:
    """A fitted model's predictions on the test rows, and how it was found."""

    prediction: np.ndarray
    inner: float  # error inside of the training part
    setting: float  # penalty, rounds or epochs
    coarse: dict[str, np.ndarray]  # predictions with penalties of coarser grids


def make_loss(name: str, tightness: float) -> Loss:
    omega = Tsallis(1.3) if name == "tsallis13" else get_loss(name).regularizer
    return Loss(omega, tightness)


def evaluate(task: Task, Y: np.ndarray, found: Found) -> dict[str, float]:
    """The numbers of a cell. For class labels the Kullback-Leibler divergence is the log loss."""
    P = found.prediction
    values = {"squared_error": metrics.squared_error(Y, P)}
    if task.kind == "counts":
        values["kullback_leibler"] = float(kl_div(Y, P).sum(axis=1).mean())
    else:
        values |= {name: getattr(metrics, name)(Y, P) for name in METRICS[1:]}
        values["accuracy"] = float((Y[np.arange(len(Y)), P.argmax(axis=1)] == Y.max(axis=1)).mean())
    values |= {"zeros": metrics.sparsity(P), "inner": found.inner, "setting": found.setting}
    return values | {name: metrics.squared_error(Y, other) for name, other in found.coarse.items()}


def metric_of(task: Task) -> str:
    return "brier_score" if task.has_labels else "squared_error"


def predict(task: Task, model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.predict_proba(X) if task.has_labels else model.predict(X))


def chosen_penalties(alphas: np.ndarray, errors: np.ndarray) -> dict[str, float]:
    """The best penalty of each grid, the strongest among equals; the last grid has all."""
    places = np.rint(16 * np.log10(alphas)).astype(int)
    best = {}
    for name, step in STEPS.items():
        on_grid = np.flatnonzero(places % step == 0)[::-1]
        best[name] = float(alphas[on_grid[np.argmin(errors[on_grid])]])
    return best


def decades(low: float, high: float) -> np.ndarray:
    return 10.0 ** np.arange(round(np.log10(low)), round(np.log10(high)) + 1)


def fit_linear(task: Task, loss: Loss, rows: "Rows", seed: int) -> Found:
    """A linear model; with dev rows its penalty is chosen on these, and they are not learned."""
    options: dict[str, Any] = {"standardize": task.standardize, "n_threads": 1}
    options["fit_intercept"] = rows.dev is None  # the paper has none
    folds = (StratifiedKFold if task.has_labels else KFold)(3, shuffle=True, random_state=seed)
    options_of_search = {"cv": folds, "scoring": metric_of(task), "tol": SCREENING_TOL}
    search = (FitzpatrickClassifierCV if task.has_labels else ProportionRegressorCV)(
        loss, decades(*task.alphas), refine=task.refine, **options_of_search, **options
    )
    X, Y = task.X[rows.train], task.Y[rows.train]
    search.fit(X, Y, dev=None if rows.dev is None else (task.X[rows.dev], task.Y[rows.dev]))
    errors = -np.asarray(search.scores_).mean(axis=0)
    best = chosen_penalties(search.alphas_, errors)
    model = (FitzpatrickClassifier if task.has_labels else ProportionRegressor)(
        loss, tol=TOL, warm_start=True, **options
    )
    predictions = {}
    for alpha in sorted(set(best.values()), reverse=True):
        model.set_params(alpha=alpha).fit(X, Y)
        predictions[alpha] = predict(task, model, task.X[rows.test])
    coarse = {name: predictions[best[name]] for name in GRIDS}
    return Found(predictions[best["finest"]], float(errors.min()), best["finest"], coarse)


def copied(X: Any, Y: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows once for each class with a positive share: features, labels and weights."""
    rows, labels = np.nonzero(Y)
    return X[rows], labels, Y[rows, labels]


def fit_copies(task: Task, _: Loss, rows: "Rows", seed: int) -> Found:
    """scikit-learn's LogisticRegression on copied rows, with the penalty of our logistic loss."""
    found = fit_linear(task, make_loss("logistic", 0), rows, seed)
    X, Y = task.X, task.targets
    if task.standardize:
        deviation = X[rows.train].std(axis=0)
        X = (X - X[rows.train].mean(axis=0)) / np.where(deviation > 1e-12, deviation, np.inf)
    # two shares have two rows of coefficients with us, and one there
    alpha = found.setting / 2 if Y.shape[1] == 2 and not task.has_labels else found.setting
    model = LogisticRegression(C=1 / alpha, max_iter=10000, tol=TOL)
    model.fit(*copied(X[rows.train], Y[rows.train]))
    P = np.zeros((len(rows.test), Y.shape[1]))
    P[:, model.classes_] = model.predict_proba(X[rows.test])
    return Found(P, found.inner, found.setting, {})


def inner_rows(task: Task, train: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and a fifth to choose rounds or epochs on."""
    labels = task.Y[train] if task.has_labels else None
    fit, dev = train_test_split(train, test_size=0.2, random_state=seed, stratify=labels)
    return fit, dev


def fit_boosted(task: Task, loss: Loss, rows: "Rows", seed: int) -> Found:
    """Trees by LightGBM, their rounds chosen on a fifth of the rows."""
    from fitzpatrick.boosting import BoostedClassifier, BoostedProportionRegressor

    model = (BoostedClassifier if task.has_labels else BoostedProportionRegressor)(
        loss,
        n_estimators=300,
        num_leaves=15,
        min_child_samples=min_leaf(rows),
        early_stopping_rounds=20,
        validation_fraction=0.2,
        metric=metric_of(task),
        random_state=seed,
        n_jobs=1,
        library_params=ANY_SPLIT,
    ).fit(task.X[rows.train], task.Y[rows.train])
    error = model.booster_[0].best_score["valid_0"]["metric"]
    return Found(predict(task, model, task.X[rows.test]), error, model.n_iter_, {})


def min_leaf(rows: "Rows") -> int:
    return max(1, min(20, len(rows.train) // 20))


def fit_boosted_copies(task: Task, _: Loss, rows: "Rows", seed: int) -> Found:
    """Trees by LightGBM's own multiclass objective, on copied rows."""
    import lightgbm

    fit, dev = inner_rows(task, rows.train, seed)
    Y = task.targets
    X, labels, weights = copied(task.X[fit], Y[fit])
    data = lightgbm.Dataset(X, labels, weight=weights)
    settings = {"objective": "multiclass", "num_class": Y.shape[1], "metric": "None", "seed": seed,
                "num_leaves": 15, "min_child_samples": min_leaf(rows), "verbosity": -1,
                "num_threads": 1, **ANY_SPLIT}  # fmt: skip
    booster = lightgbm.train(
        settings,
        data,
        300,
        valid_sets=[lightgbm.Dataset(task.X[dev], np.zeros(len(dev)), reference=data)],
        feval=lambda P, _: ("metric", metrics.squared_error(Y[dev], P), False),
        callbacks=[lightgbm.early_stopping(20, verbose=False)],
    )
    error, P = booster.best_score["valid_0"]["metric"], booster.predict(task.X[rows.test])
    return Found(np.asarray(P), error, booster.best_iteration, {})


def fit_network(task: Task, loss: Loss, rows: "Rows", seed: int) -> Found:
    """One hidden layer of 64, Adam, batches of 64, at most 200 epochs."""
    import torch
    from torch import nn

    from fitzpatrick.torch import functional

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    fit, dev = inner_rows(task, rows.train, seed)
    mean, deviation = task.X[fit].mean(axis=0), task.X[fit].std(axis=0)
    X = torch.tensor((task.X - mean) / np.where(deviation > 0, deviation, 1), dtype=torch.float32)
    Y = torch.tensor(task.Y) if task.has_labels else torch.tensor(task.Y, dtype=torch.float32)
    k = task.targets.shape[1]
    network = nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, k))
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    function = functional.loss_function(loss)
    link = loss.probabilities if task.has_labels else loss.link

    def outputs(at: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(link(network(X[at]).double().numpy()))

    best, error, at = outputs(rows.test), np.inf, 0
    for epoch in range(1, 201):
        for batch in torch.split(torch.tensor(fit)[torch.randperm(len(fit))], 64):
            optimizer.zero_grad()
            torch.autograd.backward(function(network(X[batch]), Y[batch]))
            optimizer.step()
        now = metrics.squared_error(task.targets[dev], outputs(dev))
        if now < error:
            best, error, at = outputs(rows.test), now, epoch
        elif epoch - at >= 10:
            break
    return Found(best, float(error), at, {})


FACTORS: dict[str, tuple[float, ...]] = {
    "noise": (0.0, 0.1, 0.2, 0.4),  # share of rows with the target of another row
    "draws": (1, 3, 10, 100),  # labels drawn for a row; few make sparse targets
    "classes": (3, 5, 10, 30),
    "samples": (50, 100, 200, 800),
    "scale": (0.5, 1.0, 2.0, 4.0),  # of the scores: how decided the true shares are
}
BASE = {"noise": 0.0, "draws": 10, "classes": 5, "samples": 200, "scale": 1.0}
SIMULATIONS = list(
    dict.fromkeys(
        "base" if value == BASE[factor] else f"{factor}={value:g}"
        for factor, values in FACTORS.items()
        for value in values
    )
)


@dataclass(frozen=True, eq=False)
class Rows:
    """What a model of a task learns from and is tested on: targets (n, k), or true shares."""

    train: np.ndarray
    test: np.ndarray
    targets: np.ndarray
    dev: np.ndarray | None = None


def simulated(name: str, seed: int) -> tuple[Task, Rows]:
    """Few rows to learn from, and fresh ones whose true shares are known."""
    factor, _, value = name.partition("=")
    setting = BASE | ({factor: float(value)} if value else {})
    n, k = int(setting["samples"]), int(setting["classes"])
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 2000, 10))
    shares = softmax(setting["scale"] * X @ rng.normal(size=(10, k)) / 2, axis=1)
    draws = int(setting["draws"])
    Y = np.stack([rng.multinomial(draws, row) for row in shares]) / draws
    wrong = np.flatnonzero(rng.uniform(size=n) < setting["noise"])
    Y[wrong] = Y[rng.integers(0, n, size=len(wrong))]
    rows = Rows(np.arange(n), np.arange(n, n + 2000), shares)
    return Task(name, "simulation", X, Y), rows


def prepare(part: str, cell: Cell) -> tuple[Task, Rows]:
    """The task of a cell and its rows.

    The paper's protocol has the official parts, and a quarter of train as dev; the literature of
    label distributions has ten shuffled folds.
    """
    if part == "simulation":
        return simulated(cell.data, cell.split)
    task = load(cell.data)
    if part == "paper":
        official = np.random.default_rng(cell.split).permutation(task.n_official)
        dev, train = np.split(official, [-(-len(official) // 4)])
        test = np.arange(task.n_official, task.X.shape[0])
        weakest = 10.0 if cell.data in ONCE else 1e-4  # beyond, its dev error only rises
        return replace(task, alphas=(weakest, 1e4)), Rows(train, test, task.targets, dev)
    if part == "folds":
        folds = KFold(10, shuffle=True, random_state=0).split(task.X)
        train, test = list(folds)[cell.split]
    else:
        train, test = task.split(cell.split)
    if part == FINER:
        task = replace(task, refine=4)
    return task, Rows(train, test, task.targets)


def measure(part: str, cell: Cell) -> dict[str, float]:
    """The numbers of one cell; seconds are those of the processor."""
    fits = {
        "boosted": fit_boosted,
        "network": fit_network,
        f"boosted {COPIES}": fit_boosted_copies,
        f"linear {COPIES}": fit_copies,
    }
    is_copy = cell.loss == COPIES
    fit = fits.get(f"{part} {COPIES}" if is_copy else part, fit_linear)
    loss = make_loss("logistic" if is_copy else cell.loss, cell.tightness)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end before their tolerance
        task, rows = prepare(part, cell)
        found = fit(task, loss, rows, cell.split)
    values = evaluate(task, rows.targets[rows.test], found)
    return values | {"seconds": time.process_time() - begin}
