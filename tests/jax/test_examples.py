"""The examples run, in their fast mode, and find what they look for."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("optax")

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    return runpy.run_path(str(EXAMPLES / name))["main"](["--fast"])


def test_training():
    accuracies = run("jax_train.py")
    assert set(accuracies) == {("neural", "fitzpatrick_logistic")}
    assert min(accuracies.values()) > 0.7


def test_lbfgs():
    fits = run("jax_lbfgs.py")
    assert set(fits) == {"fitzpatrick_sparsemax"}
    for fit in fits.values():
        assert float(fit.gradient) <= 1e-6
        assert np.all(np.isfinite(np.asarray(fit.weights)))
