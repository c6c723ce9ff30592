"""Small data for the protocol."""

import numpy as np
import pytest

from fitzpatrick.experiments.protocol import Experiment


def make_experiment(n=60, d=5, k=3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n + 30, d))
    scores = X @ generator.normal(size=(d, k)) + generator.normal(size=(n + 30, k))
    Y = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return Experiment("demo", X[:n], Y[:n], X[n:], Y[n:], {"file": "0"})


@pytest.fixture
def experiment():
    return make_experiment()
