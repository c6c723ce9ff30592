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

from .data import Task, load

# Steps of the grids of penalties, in eighths of a power of ten.
STEPS = {"decade": 8, "quarter": 2, "eighth": 1}
SCREENING_TOL, TOL = 1e-4, 1e-6
COPIES = "copies"  # rows copied once for each class, with the share as weight
METRICS = (
    "squared_error",
    "kullback_leibler",
    "jensen_shannon",
    "chebyshev",
    "clark",
    "canberra",
    "cosine",
    "intersection",
    "calibration_error",
)
FIELDS = (*METRICS, "accuracy", "zeros", "inner", "setting", "decade", "quarter", "seconds")


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


def predict(task: Task, model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.predict_proba(X) if task.has_labels else model.predict(X))


def chosen_penalties(alphas: np.ndarray, errors: np.ndarray) -> dict[str, float]:
    """The best penalty of each grid, the strongest among equals; the last grid has all."""
    places = np.rint(8 * np.log10(alphas)).astype(int)
    best = {}
    for name, step in STEPS.items():
        on_grid = np.flatnonzero(places % step == 0)[::-1]
        best[name] = float(alphas[on_grid[np.argmin(errors[on_grid])]])
    return best


def decades(low: float, high: float) -> np.ndarray:
    return 10.0 ** np.arange(round(np.log10(low)), round(np.log10(high)) + 1)


def fit_linear(
    task: Task,
    loss: Loss,
    train: np.ndarray,
    test: np.ndarray,
    seed: int,
    *,
    dev: np.ndarray | None = None,
    intercept: bool = True,
) -> Found:
    """A linear model; with dev rows its penalty is chosen on these, and they are not learned."""
    options = {
        "standardize": task.standardize,
        "fit_intercept": intercept,
        "n_threads": 1,
    }
    folds = (StratifiedKFold if task.has_labels else KFold)(3, shuffle=True, random_state=seed)
    cross_validated = FitzpatrickClassifierCV if task.has_labels else ProportionRegressorCV
    search = cross_validated(
        loss,
        decades(*task.alphas),
        cv=folds,
        scoring="brier_score" if task.has_labels else "squared_error",
        refine=3,
        tol=SCREENING_TOL,
        **options,
    )
    X, Y = task.X[train], task.Y[train]
    search.fit(X, Y, dev=None if dev is None else (task.X[dev], task.Y[dev]))
    errors = -np.asarray(search.scores_).mean(axis=0)
    best = chosen_penalties(search.alphas_, errors)
    model = (FitzpatrickClassifier if task.has_labels else ProportionRegressor)(
        loss, tol=TOL, warm_start=True, **options
    )
    predictions = {}
    for alpha in sorted(set(best.values()), reverse=True):
        model.set_params(alpha=alpha).fit(X, Y)
        predictions[alpha] = predict(task, model, task.X[test])
    coarse = {name: predictions[best[name]] for name in ("decade", "quarter")}
    return Found(predictions[best["eighth"]], float(errors.min()), best["eighth"], coarse)


def copied(X: Any, Y: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows once for each class with a positive share: features, labels and weights."""
    rows, labels = np.nonzero(Y)
    return X[rows], labels, Y[rows, labels]


def fit_copies(task: Task, train: np.ndarray, test: np.ndarray, seed: int) -> Found:
    """scikit-learn's LogisticRegression on copied rows, with the penalty of our logistic loss."""
    found = fit_linear(task, make_loss("logistic", 0), train, test, seed)
    X = task.X
    if task.standardize:
        X = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
        X[:, np.ptp(task.X[train], axis=0) == 0] = 0
    Y = task.targets
    rows, labels, weights = copied(X[train], Y[train])
    # two shares have two rows of coefficients with us, and one there
    alpha = found.setting / 2 if Y.shape[1] == 2 and not task.has_labels else found.setting
    model = LogisticRegression(C=1 / alpha, max_iter=10000, tol=TOL)
    model.fit(rows, labels, weights)
    P = np.zeros((len(test), Y.shape[1]))
    P[:, model.classes_] = model.predict_proba(X[test])
    return Found(P, found.inner, found.setting, {})


def inner_rows(task: Task, train: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and a fifth to choose rounds or epochs on."""
    labels = task.Y[train] if task.has_labels else None
    fit, dev = train_test_split(train, test_size=0.2, random_state=seed, stratify=labels)
    return fit, dev


def fit_boosted(
    task: Task, loss: Loss | None, train: np.ndarray, test: np.ndarray, seed: int
) -> Found:
    """Trees by LightGBM; without a loss, by its own multiclass objective on copied rows."""
    import lightgbm

    from fitzpatrick.boosting import BoostedClassifier, BoostedProportionRegressor

    leaf = max(1, min(20, len(train) // 20))
    if loss is not None:
        model = (BoostedClassifier if task.has_labels else BoostedProportionRegressor)(
            loss,
            n_estimators=300,
            num_leaves=15,
            min_child_samples=leaf,
            early_stopping_rounds=20,
            validation_fraction=0.2,
            metric="brier_score" if task.has_labels else "squared_error",
            random_state=seed,
            n_jobs=1,
            library_params={"feature_pre_filter": False, "min_data_in_bin": 1},
        ).fit(task.X[train], task.Y[train])
        error = model.booster_[0].best_score["valid_0"]["metric"]
        return Found(predict(task, model, task.X[test]), error, model.n_iter_, {})
    fit, dev = inner_rows(task, train, seed)
    Y = task.targets
    X, labels, weights = copied(task.X[fit], Y[fit])
    data = lightgbm.Dataset(X, labels, weight=weights)

    def judge(predicted: np.ndarray, _: Any) -> tuple[str, float, bool]:
        return "metric", metrics.squared_error(Y[dev], predicted), False

    booster = lightgbm.train(
        {
            "objective": "multiclass",
            "num_class": Y.shape[1],
            "metric": "None",
            "num_leaves": 15,
            "min_child_samples": leaf,
            "feature_pre_filter": False,
            "min_data_in_bin": 1,
            "verbosity": -1,
            "num_threads": 1,
            "seed": seed,
        },
        data,
        300,
        valid_sets=[lightgbm.Dataset(task.X[dev], np.zeros(len(dev)), reference=data)],
        feval=judge,
        callbacks=[lightgbm.early_stopping(20, verbose=False)],
    )
    error = booster.best_score["valid_0"]["metric"]
    return Found(np.asarray(booster.predict(task.X[test])), error, booster.best_iteration, {})


def fit_network(task: Task, loss: Loss, train: np.ndarray, test: np.ndarray, seed: int) -> Found:
    """One hidden layer of 64, Adam, batches of 64, at most 200 epochs."""
    import torch
    from torch import nn

    from fitzpatrick.torch import functional

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    fit, dev = inner_rows(task, train, seed)
    mean, deviation = task.X[fit].mean(axis=0), task.X[fit].std(axis=0)
    X = torch.tensor((task.X - mean) / np.where(deviation > 0, deviation, 1), dtype=torch.float32)
    Y = torch.tensor(task.Y) if task.has_labels else torch.tensor(task.Y, dtype=torch.float32)
    k = task.targets.shape[1]
    network = nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, k))
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    function = functional.loss_function(loss)
    link = loss.probabilities if task.has_labels else loss.link

    def outputs(rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(link(network(X[rows]).double().numpy()))

    best, error, at = outputs(test), np.inf, 0
    for epoch in range(1, 201):
        for batch in torch.tensor(fit)[torch.randperm(len(fit))].split(64):
            optimizer.zero_grad()
            function(network(X[batch]), Y[batch]).backward()
            optimizer.step()
        now = metrics.squared_error(task.targets[dev], outputs(dev))
        if now < error:
            best, error, at = outputs(test), now, epoch
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


def simulated(name: str, seed: int) -> tuple[Task, np.ndarray, np.ndarray, np.ndarray]:
    """A task, its rows to learn from and to test on, and the true shares."""
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
    rows = np.arange(n + 2000)
    return Task(name, "simulation", X, Y), rows[:n], rows[n:], shares


def simulate(cell: Cell) -> dict[str, float]:
    """Errors against the true shares of fresh samples."""
    task, train, test, shares = simulated(cell.data, cell.split)
    loss = make_loss(cell.loss, cell.tightness)
    return evaluate(task, shares[test], fit_linear(task, loss, train, test, cell.split))


def by_the_paper(cell: Cell) -> dict[str, float]:
    """The paper's protocol: official parts, dev a quarter of train, no intercept, no refit."""
    task = replace(load(cell.data), alphas=(1e-4, 1e4))
    rows = np.random.default_rng(cell.split).permutation(task.n_official)
    n_dev = -(-len(rows) // 4)
    test = np.arange(task.n_official, task.X.shape[0])
    loss = make_loss(cell.loss, cell.tightness)
    found = fit_linear(
        task, loss, rows[n_dev:], test, cell.split, dev=rows[:n_dev], intercept=False
    )
    return evaluate(task, task.targets[test], found)


def ten_folds(cell: Cell) -> dict[str, float]:
    """One of ten shuffled folds, as the literature of label distributions has them."""
    task = load(cell.data)
    folds = list(KFold(10, shuffle=True, random_state=0).split(task.X))
    train, test = folds[cell.split]
    found = fit_linear(task, make_loss(cell.loss, cell.tightness), train, test, cell.split)
    return evaluate(task, task.targets[test], found)


def split_once(part: str, cell: Cell) -> dict[str, float]:
    task = load(cell.data)
    train, test = task.split(cell.split)
    own = None if cell.loss == COPIES else make_loss(cell.loss, cell.tightness)
    if part == "boosted":
        found = fit_boosted(task, own, train, test, cell.split)
    elif own is None:
        found = fit_copies(task, train, test, cell.split)
    else:
        found = (fit_linear if part == "linear" else fit_network)(
            task, own, train, test, cell.split
        )
    return evaluate(task, task.targets[test], found)


def measure(part: str, cell: Cell) -> dict[str, float]:
    """The numbers of one cell; seconds are those of the processor."""
    begin = time.process_time()
    special = {"simulation": simulate, "paper": by_the_paper, "folds": ten_folds}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end before their tolerance
        values = special[part](cell) if part in special else split_once(part, cell)
    return values | {"seconds": time.process_time() - begin}
