"""The paper's protocol: splits, errors, settings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick import metrics
from fitzpatrick.datasets import DATASETS, DataError, load_dataset
from fitzpatrick.experiments.protocol import (
    ALPHAS,
    Experiment,
    Protocol,
    check,
    dev_split,
    paths,
    split,
    squared_errors,
)


@pytest.mark.parametrize("name", [n for n in DATASETS if n not in ("ecthr_a",)])
def test_dev_sizes_are_the_papers(name):
    said = DATASETS[name].published
    fit, dev = dev_split(said.train + said.dev, seed=3)
    assert (len(fit), len(dev)) == (said.train, said.dev)


def test_dev_split_is_a_partition_that_depends_on_the_seed():
    fit, dev = dev_split(50, seed=1)
    assert sorted([*fit, *dev]) == list(range(50))
    assert dev.tolist() != dev_split(50, seed=2)[1].tolist()
    assert dev.tolist() == dev_split(50, seed=1)[1].tolist()


def test_grid_is_the_papers():
    np.testing.assert_allclose(np.log10(ALPHAS), np.arange(4, -5, -1))


def test_errors_of_samples_average_to_the_metric():
    generator = np.random.default_rng(0)
    Y, P = generator.dirichlet(np.ones(4), size=(2, 30))
    errors = squared_errors(Y, P)
    assert errors.shape == (30,)
    assert errors.mean() == pytest.approx(metrics.squared_error(Y, P), rel=1e-12)


def test_yeast_as_an_experiment():
    experiment = Experiment.of_dataset(load_dataset("yeast"))
    np.testing.assert_allclose(experiment.Y.sum(axis=1), 1.0)
    assert experiment.Y_test.shape == (917, 14)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_features_constant_on_the_fitted_rows_are_left_out(experiment, make):
    X, X_test = experiment.X.copy(), experiment.X_test.copy()
    X[:, 1] = 3.0
    X[:, 4] = 0.0
    changed = replace(experiment, X=make(X), X_test=make(X_test))
    rows = split(changed, Protocol(), seed=0)
    assert rows.X.shape == (45, 3)
    assert rows.X_dev.shape == (15, 3)
    assert rows.X_test.shape == (30, 3)
    dense = rows.X_test.toarray() if sparse.issparse(rows.X_test) else rows.X_test
    np.testing.assert_array_equal(dense, X_test[:, [0, 2, 3]])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_constant_features_stay_where_nothing_is_centred(experiment, make):
    """Without an intercept, a column of ones is one."""
    X = experiment.X.copy()
    X[:, 1] = 3.0
    X[:, 4] = 0.0
    changed = replace(experiment, X=make(X), X_test=make(experiment.X_test))
    assert split(changed, Protocol(scaling="none"), seed=0).X.shape == (45, 4)
    assert split(changed, Protocol(scaling="none", intercept=True), seed=0).X.shape == (45, 3)


def changed(experiment, **arrays):
    return replace(experiment, file=Path("mine.csv"), **arrays)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda e: {"X": e.X * 1e200}, r"X holds an entry of size \S+, and sums of squares over"),
        (lambda e: {"X": 1e308 * np.sign(e.X)}, r"X holds an entry of size 1e\+308"),
        (lambda e: {"X_test": e.X_test * 1e200}, "X holds an entry of size"),
        (lambda e: {"X": e.X[:1], "Y": e.Y[:1]}, "1 samples to learn from and 30 to test have"),
        (lambda e: {"X_test": e.X_test[:0], "Y_test": e.Y_test[:0]}, "60 samples .* and 0 to test"),
        (lambda e: {"X": np.ones_like(e.X)}, "every feature is constant on the 45 of 60 samples"),
        (lambda e: {"X": np.eye(60)[:, [17]]}, "that dev split 3 leaves to fit"),
    ],
)
def test_what_cannot_be_fitted_is_said_before(experiment, change, problem):
    check(experiment, Protocol(), 5)
    with pytest.raises(DataError, match=rf"^mine\.csv: .*{problem}"):
        check(changed(experiment, **change(experiment)), Protocol(), 5)


def test_size_of_features_depends_on_the_precision(experiment):
    large = changed(experiment, X=experiment.X * 1e30)
    check(large, Protocol(), 5)
    with pytest.raises(DataError, match="overflow float32"):
        check(large, Protocol(dtype="float32"), 5)


def test_precision_of_the_rows(experiment):
    assert split(experiment, Protocol(dtype="float32"), seed=0).X.dtype == np.float32


def test_settings_have_a_key_of_their_own():
    base = Protocol()
    others = [
        Protocol(intercept=True),
        Protocol(scaling="none"),
        Protocol(alphas=(1.0,)),
        Protocol(dtype="float32"),
        Protocol(device="cpu"),
        Protocol(tol=1e-3),
        Protocol(max_iter=5),
    ]
    keys = {base.key("a"), base.key("b"), *(other.key("a") for other in others)}
    assert len(keys) == 9
    assert base.key("a") == Protocol().key("a")
    assert base.key("a") == Protocol(refit=True).key("a")  # the same fits, and some more


@pytest.mark.parametrize(
    "wrong", [{"scaling": "minmax"}, {"dtype": "float16"}, {"alphas": (1.0, 2.0)}, {"alphas": ()}]
)
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Protocol(**wrong)


def test_paths_put_every_loss_before_the_next_seed():
    assert [path.name for path in paths(("a", "b"), 2, refit=True)] == [
        "a-seed0",
        "b-seed0",
        "a-seed1",
        "b-seed1",
        "a-whole",
        "b-whole",
    ]
    assert len(paths(("a", "b"), 2, refit=False)) == 4


def test_whole_rows_have_no_dev_part(experiment):
    rows = split(experiment, Protocol(), seed=None)
    assert rows.X.shape == (60, 5)
    assert rows.X_dev.shape == (0, 5)
    np.testing.assert_array_equal(rows.Y, experiment.Y)
