"""Check that an installed wheel works with its base dependencies only.

    python tools/smoke.py

Run this in an environment with only the wheel; docs/releasing.md says how to create it.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sklearn.datasets

import fitzpatrick as fp
from fitzpatrick import metrics
from fitzpatrick.datasets import load_dataset
from fitzpatrick.linear_model import FitzpatrickClassifier, ProportionRegressor
from fitzpatrick.preprocessing import label_proportions

SOURCE = Path(__file__).resolve().parent.parent / "src"
EXTRAS = ("jax", "matplotlib", "numba", "pooch", "rich", "torch", "typer")


def expect(is_true: bool, what: str) -> None:
    """Print the result of a check, and exit if it failed."""
    print("ok  " if is_true else "FAIL", what)
    if not is_true:
        raise SystemExit(1)


def main() -> None:
    """Check the environment, and then every part that needs no extra."""
    expect(not Path(fp.__file__).is_relative_to(SOURCE), f"installed in {Path(fp.__file__).parent}")
    found = [name for name in EXTRAS if find_spec(name) is not None]
    expect(not found, f"no extra is installed{': ' + ', '.join(found) if found else ''}")

    rng = np.random.default_rng(0)
    theta = rng.normal(size=(5, 4))
    for name in fp.loss_names():
        loss = fp.get_loss(name)
        at_link = loss.value(loss.link(theta), theta)
        # rounding errors of scores of size 1
        expect(bool((at_link < 1e-12).all()), f"{name} is 0 at its link")

    X, y = sklearn.datasets.load_iris(return_X_y=True)
    score = FitzpatrickClassifier(standardize=True).fit(X, y).score(X, y)
    expect(score > 0.9, f"a classifier has accuracy {score:.3f} on iris")

    yeast = load_dataset("yeast")
    Y = label_proportions(yeast.train.Y)
    model = ProportionRegressor("fitzpatrick_sparsemax", alpha=1000, standardize=True, tol=1e-3)
    prediction = model.fit(yeast.train.X, Y).predict(yeast.test.X)
    error = metrics.squared_error(label_proportions(yeast.test.Y), prediction)
    expect(error < 0.16, f"a regressor has error {error:.3f} on the embedded data")

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "fitzpatrick", "--help"]
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    expect(
        answer.returncode == 2 and "fitzpatrick[cli]" in answer.stderr,
        "the command line names the extra that it needs",
    )


if __name__ == "__main__":
    main()
