"""Which loss predicts best, and how sparse its predictions are.

For each data set, train and test samples are pooled and split again at random, in parts of the
official sizes. On each training part a ``ProportionRegressorCV`` with standardized features and an
intercept chooses alpha from 1e-2 … 1e4, and between them, by three shuffled folds (seed = number of
the split) and the squared error; everything else is the default. All losses see the same splits and
folds.

Run: FITZPATRICK_DATA=folder-of-the-svm-files python benchmarks/which_loss.py run [data set …]
     python benchmarks/which_loss.py table
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

from fitzpatrick import metrics
from fitzpatrick.datasets import load_dataset
from fitzpatrick.linear_model import ProportionRegressorCV
from fitzpatrick.losses import ends
from fitzpatrick.preprocessing import label_proportions

RESULTS = Path(__file__).parent / "results" / "which_loss.csv"
DATA = ("flags", "emotions", "scene", "yeast")
PAIRS = tuple(ends(name) for name in ("logistic", "entmax15", "sparsemax"))
LOSSES = ("squared", *(loss for pair in PAIRS for loss in pair))
ALPHAS = 10.0 ** np.arange(-2, 5)


def load(name: str) -> tuple[Any, Any, int]:
    """All labelled samples with their proportions, and how many of them are for training."""
    data = load_dataset(name)
    parts = [data.train.labelled(), data.test.labelled()]
    X = np.vstack([np.asarray(part.X) for part in parts])
    Y = np.vstack([np.asarray(part.Y) for part in parts])
    return X, label_proportions(Y), parts[0].X.shape[0]


def measure(loss: str, split: int, X: Any, Y: Any, n_train: int) -> dict[str, float]:
    order = np.random.default_rng(split).permutation(len(X))
    train, test = order[:n_train], order[n_train:]
    model = ProportionRegressorCV(
        loss, ALPHAS, standardize=True, cv=KFold(3, shuffle=True, random_state=split)
    )
    model.fit(X[train], Y[train])
    prediction = np.clip(model.predict(X[test]), 0, None)
    return {
        "squared_error": metrics.squared_error(Y[test], model.predict(X[test])),
        "jensen_shannon": metrics.jensen_shannon(Y[test], label_proportions(prediction)),
        "zeros": float((prediction == 0).mean()) if loss != "squared" else 0.0,
    }


def run(names: list[str], splits: int) -> None:
    """Measure, and replace what is on record for these data sets."""
    rows = []
    for name in names:
        X, Y, n_train = load(name)
        for split in range(splits):
            for loss in LOSSES:
                values = measure(loss, split, X, Y, n_train)
                rows.append({"data": name, "split": split, "loss": loss, **values})
                print(*rows[-1].values(), flush=True)
    found = pd.DataFrame(rows)
    if RESULTS.exists():
        known = pd.read_csv(RESULTS)
        found = pd.concat([known[~known["data"].isin(names)], found])
    found.to_csv(RESULTS, index=False, float_format="%.6g", lineterminator="\n")


def spread(values: Any, digits: int) -> str:
    """Mean ± standard deviation."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def table() -> None:
    """The tables of docs/which_loss.md."""
    found = pd.read_csv(RESULTS).set_index(["data", "loss"]).sort_index()
    header = f"{' | '.join(DATA)} |\n|---|{'---|' * len(DATA)}"
    titles = {
        "squared_error": ("Squared error, summed over classes", 3, 1),
        "jensen_shannon": ("Jensen-Shannon divergence", 3, 1),
        "zeros": ("Exact zeros among the predictions, %", 1, 100),
    }
    for key, (title, digits, unit) in titles.items():
        print(f"\n{title}:\n\n| loss | {header}")
        for loss in LOSSES:
            cells = [spread(unit * found.loc[(name, loss), key], digits) for name in DATA]
            print(f"| {loss} | {' | '.join(cells)} |")
    print("\nFitzpatrick minus Fenchel-Young, squared error, paired by split:\n")
    print(f"| pair | {header}")
    errors = found.reset_index().pivot_table("squared_error", ["data", "split"], "loss")
    for plain, fitzpatrick in PAIRS:
        difference = errors[fitzpatrick] - errors[plain]
        print(f"| {plain} | {' | '.join(spread(difference[name], 4) for name in DATA)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("data", nargs="*", help=f"by default {', '.join(DATA)}")
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.data or list(DATA), arguments.splits)
    else:
        table()


if __name__ == "__main__":
    main()
