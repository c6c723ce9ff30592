"""One cell of the study: a model with one loss, fitted to one split and tested.

Settings are chosen within the training part by the squared error: the penalty of linear models by
three folds, the rounds of trees and the epochs of networks on a fifth of the rows.
"""

import itertools
import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import kl_div, log_softmax, softmax
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

# Steps of the grids of penalties, in 32nds of a power of ten; the last has all penalties.
STEPS = {"decade": 32, "quarter": 8, "all": 1}
GRIDS = tuple(STEPS)[:-1]  # whose errors are also recorded
GPU = "gpu"  # networks, with all splits of a candidate at once
FINER = {"finer": 4, "finest": 5}  # linear models on 16ths and 32nds: halvings of powers of ten
SCREENING_TOL, TOL = 1e-4, 1e-6
HIDDEN, BATCH = 64, 64  # of networks
ANY_SPLIT = {"feature_pre_filter": False, "min_data_in_bin": 1}
COPIES = "copies"  # rows copied once for each class, with the share as weight
ENTROPY = "maximum_entropy"  # from the literature on label distributions
PEERS = (COPIES, ENTROPY)
METRICS = ("squared_error", "kullback_leibler", "jensen_shannon", "chebyshev", "clark", "canberra",
           "cosine", "intersection", "calibration_error")  # fmt: skip
FIELDS = (*METRICS, "accuracy", "zeros", "inner", "setting", *GRIDS, "seconds")


@dataclass(frozen=True, order=True)
class Cell:
    """The key of one row of the results."""

    data: str
    split: int
    loss: str
    tightness: float


@dataclass(frozen=True)
class Found:
    """Predictions of a fitted model for the test rows, and its settings."""

    prediction: np.ndarray
    inner: float  # error within the training part
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
    places = np.rint(32 * np.log10(alphas)).astype(int)
    best = {}
    for name, step in STEPS.items():
        on_grid = np.flatnonzero(places % step == 0)[::-1]
        best[name] = float(alphas[on_grid[np.argmin(errors[on_grid])]])
    return best


def decades(low: float, high: float) -> np.ndarray:
    return 10.0 ** np.arange(round(np.log10(low)), round(np.log10(high)) + 1)


def fit_linear(task: Task, loss: Loss, rows: "Rows", seed: int) -> Found:
    """A linear model; if there are dev rows, they only choose the penalty."""
    options: dict[str, Any] = {"standardize": task.standardize, "n_threads": 1}
    options["fit_intercept"] = rows.dev is None  # the paper has no intercept
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
    return Found(predictions[best["all"]], float(errors.min()), best["all"], coarse)


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
    # with two shares, our models have two rows of coefficients, and scikit-learn's has one
    alpha = found.setting / 2 if Y.shape[1] == 2 and not task.has_labels else found.setting
    model = LogisticRegression(C=1 / alpha, max_iter=10000, tol=TOL)
    model.fit(*copied(X[rows.train], Y[rows.train]))
    P = np.zeros((len(rows.test), Y.shape[1]))
    P[:, model.classes_] = model.predict_proba(X[rows.test])
    return Found(P, found.inner, found.setting, {})


def fit_maximum_entropy(task: Task, _loss: Loss, rows: "Rows", _seed: int) -> Found:
    """SA-BFGS of Geng: a softmax of X W by maximum likelihood, without penalty or intercept."""
    X, Y = task.X[rows.train], task.targets[rows.train]

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        theta = X @ w.reshape(X.shape[1], -1)
        slope = X.T @ (softmax(theta, axis=1) - Y)
        return -float((Y * log_softmax(theta, axis=1)).sum()), slope.ravel()

    start = np.zeros(X.shape[1] * Y.shape[1])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 600})
    theta = task.X[rows.test] @ found.x.reshape(X.shape[1], -1)
    return Found(softmax(theta, axis=1), np.nan, np.nan, {})


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


def fit_networks(task: Task, loss: Loss, several: list["Rows"], seeds: list[int],
                 device: str) -> list[Found]:  # fmt: skip
    """A network for each split, all trained at once: ReLU, Adam, at most 200 epochs.

    Weights and orders of rows are drawn on the CPU, so they are the same on every device.
    """
    import torch
    from torch import nn

    from fitzpatrick.torch import functional

    torch.set_num_threads(1)
    inner = [inner_rows(task, rows.train, seed) for rows, seed in zip(several, seeds, strict=True)]
    fit, dev = (torch.tensor(np.stack(rows)) for rows in zip(*inner, strict=True))
    mean, deviation = (
        torch.tensor(np.stack([one(task.X[rows], axis=0) for rows in fit]), device=device)[:, None]
        for one in (np.mean, np.std)
    )
    deviation = torch.where(deviation > 0, deviation, 1)
    X = torch.tensor(task.X, device=device)
    Y = torch.tensor(task.Y, device=device)
    Y = Y if task.has_labels else Y.float()
    sizes = (X.shape[1], HIDDEN, task.targets.shape[1])
    drawn, generators = [], [torch.Generator() for _ in seeds]
    for seed, generator in zip(seeds, generators, strict=True):
        torch.manual_seed(seed)
        layers = [nn.Linear(*ends) for ends in itertools.pairwise(sizes)]
        drawn.append([one for layer in layers for one in (layer.weight, layer.bias)])
        generator.set_state(torch.get_rng_state())
    parameters = [
        torch.stack(ones).detach().to(device).requires_grad_() for ones in zip(*drawn, strict=True)
    ]
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    function = functional.loss_function(loss)
    link = loss.probabilities if task.has_labels else loss.link

    def scores(at: torch.Tensor, parameters: list[torch.Tensor]) -> torch.Tensor:
        at = at.to(device)
        Z = ((X[at] - mean) / deviation).float()
        for i in range(0, len(parameters), 2):
            W, b, inputs = *parameters[i : i + 2], Z.relu() if i else Z
            if len(seeds) == 1:  # sums in the order of the records from a CPU
                Z = nn.functional.linear(inputs[0], W[0], b[0])[None]
            else:
                Z = torch.baddbmm(b[:, None], inputs, W.mT)
        return Z

    def outputs(at: torch.Tensor, parameters: list[torch.Tensor]) -> np.ndarray:
        with torch.no_grad():
            theta = scores(at, parameters).double()
        P = link(theta.flatten(0, 1).numpy() if device == "cpu" else theta.flatten(0, 1))
        return np.asarray(P if device == "cpu" else P.cpu()).reshape(theta.shape)

    best = [one.detach().clone() for one in parameters]
    error, at = np.full(len(seeds), np.inf), np.zeros(len(seeds), int)
    going = np.isinf(error)
    for epoch in range(1, 201):
        orders = [rows[torch.randperm(len(rows), generator=generator)]
                  for rows, generator in zip(fit, generators, strict=True)]  # fmt: skip
        for batch in torch.split(torch.stack(orders).to(device), BATCH, dim=1):
            optimizer.zero_grad()
            theta = scores(batch, parameters).flatten(0, 1)
            torch.autograd.backward(len(seeds) * function(theta, Y[batch].flatten(0, 1)))
            optimizer.step()
        P = outputs(dev, parameters)
        now = [metrics.squared_error(task.targets[rows], one)
               for rows, one in zip(dev, P, strict=True)]  # fmt: skip
        better = going & (now < error)
        error[better], at[better] = np.asarray(now)[better], epoch
        for kept, one in zip(best, parameters, strict=True):
            kept[torch.tensor(better)] = one.detach()[torch.tensor(better)]
        going = epoch - at < 10
        if not going.any():
            break
    P = outputs(torch.tensor(np.stack([rows.test for rows in several])), best)
    return [Found(*of_split, {}) for of_split in zip(P, error, at.astype(float), strict=True)]


def fit_network(task: Task, loss: Loss, rows: "Rows", seed: int) -> Found:
    return fit_networks(task, loss, [rows], [seed], "cpu")[0]


FACTORS: dict[str, tuple[float, ...]] = {
    "noise": (0.0, 0.1, 0.2, 0.4),  # share of rows with the target of another row
    "draws": (1, 3, 10, 100),  # labels drawn for a row; few make sparse targets
    "classes": (3, 5, 10, 30),
    "samples": (50, 100, 200, 800),
    "scale": (0.5, 1.0, 2.0, 4.0),  # of the scores: larger scores make more extreme shares
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
    """Training and test data of a task: targets (n, k), or true shares."""

    train: np.ndarray
    test: np.ndarray
    targets: np.ndarray
    dev: np.ndarray | None = None


def simulated(name: str, seed: int) -> tuple[Task, Rows]:
    """Few training rows, and new test rows with known true shares."""
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
    return replace(task, refine=FINER.get(part, task.refine)), Rows(train, test, task.targets)


def measure(part: str, cell: Cell) -> dict[str, float]:
    """The numbers of one cell; seconds are those of the processor."""
    fits = {
        "boosted": fit_boosted,
        "network": fit_network,
        f"boosted {COPIES}": fit_boosted_copies,
        f"linear {COPIES}": fit_copies,
        f"folds {ENTROPY}": fit_maximum_entropy,
    }
    is_peer = cell.loss in PEERS
    fit = fits.get(f"{part} {cell.loss}" if is_peer else part, fit_linear)
    loss = make_loss("logistic" if is_peer else cell.loss, cell.tightness)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end before their tolerance
        task, rows = prepare(part, cell)
        found = fit(task, loss, rows, cell.split)
    values = evaluate(task, rows.targets[rows.test], found)
    return values | {"seconds": time.process_time() - begin}


def measure_at_once(part: str, cells: Sequence[Cell]) -> list[dict[str, float]]:
    """The numbers of cells that differ only in their split; on a GPU they are one computation."""
    if part != GPU:
        return [measure(part, cell) for cell in cells]
    import torch

    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # otherwise cuBLAS can add in any order
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("highest")
    begin = time.process_time()
    tasks, several = zip(*(prepare(part, cell) for cell in cells), strict=True)
    loss = make_loss(cells[0].loss, cells[0].tightness)
    found = fit_networks(tasks[0], loss, list(several), [cell.split for cell in cells], "cuda")
    seconds = (time.process_time() - begin) / len(cells)
    return [
        evaluate(tasks[0], rows.targets[rows.test], one) | {"seconds": seconds}
        for rows, one in zip(several, found, strict=True)
    ]
