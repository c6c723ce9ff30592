"""The paper's protocol: splits, errors, settings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick.datasets import DATASETS, DataError, load_dataset
from fitzpatrick.experiments.protocol import (
    Experiment,
    LossChoice,
    Protocol,
    at_tightnesses,
    check,
    dev_split,
    paths,
    split,
)
from fitzpatrick.linear_model import DEFAULT_ALPHAS


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


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_features_constant_on_the_fitted_rows_are_left_out(experiment, make):
    """On these rows alone: on dev and test they vary."""
    X, X_test = experiment.X.copy(), experiment.X_test.copy()
    fitted = dev_split(60, seed=0)[0]
    X[fitted, 1] = 3.0
    X[fitted, 4] = 0.0
    changed = replace(experiment, X=make(X), X_test=make(X_test))
    parts = split(changed, Protocol(), seed=0)
    assert [part.X.shape for part in parts] == [(45, 3), (15, 3), (30, 3)]
    test = parts[2].X
    dense = test.toarray() if sparse.issparse(test) else test
    np.testing.assert_array_equal(dense, X_test[:, [0, 2, 3]])
    whole = split(changed, Protocol(), seed=None)
    assert [part.X.shape for part in whole] == [(60, 5), (0, 5), (30, 5)]


def test_the_precision_decides_what_is_constant_and_what_is_too_large(experiment):
    X = experiment.X.copy()
    X[:, 1] = 1 + 1e-9 * X[:, 1]
    single, almost = Protocol(dtype="float32"), replace(experiment, X=X)
    assert fitted_shape(almost, Protocol()) == (45, 5)
    assert fitted_shape(almost, single) == (45, 4)
    assert {part.X.dtype for part in split(almost, single, seed=0)} == {np.dtype("float32")}
    with pytest.raises(DataError, match="every feature is constant on the 45 of 60 samples"):
        check(replace(almost, X=X[:, [1]]), single, 1)
    large = changed(experiment, X=experiment.X * 1e30)
    check(large, Protocol(), 5)
    with pytest.raises(DataError, match="overflow float32"):
        check(large, single, 5)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_constant_features_stay_where_nothing_is_centered(experiment, make):
    """Without an intercept, a column of ones is one."""
    X = experiment.X.copy()
    X[:, 1] = 3.0
    X[:, 4] = 0.0
    changed = replace(experiment, X=make(X), X_test=make(experiment.X_test))
    assert fitted_shape(changed, Protocol(scaling="none")) == (45, 4)
    assert fitted_shape(changed, Protocol(scaling="none", intercept=True)) == (45, 3)


def fitted_shape(experiment, protocol):
    return split(experiment, protocol, seed=0)[0].X.shape


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


def test_settings_have_a_key_of_their_own():
    assert sorted(Protocol().alphas) == list(DEFAULT_ALPHAS) == [10.0**i for i in range(-4, 5)]
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
    for change in ({"refine": True}, {"whole_grid": False}):  # fits that only choose are less exact
        assert Protocol(**change).key("a") != Protocol(**change, refit=True).key("a")


@pytest.mark.parametrize(
    "wrong", [{"scaling": "minmax"}, {"dtype": "float16"}, {"alphas": (1.0, 2.0)}, {"alphas": ()}]
)
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Protocol(**wrong)


def test_paths_put_every_loss_before_the_next_seed():
    losses = at_tightnesses(("logistic", "fitzpatrick_logistic"), [0.5])
    names = ("logistic", "fitzpatrick_logistic-tightness0.5")
    assert [path.name for path in paths(losses, 2, refit=True)] == [
        f"{name}-{rows}" for rows in ("seed0", "seed1", "whole") for name in names
    ]
    assert len(paths(losses, 2, refit=False)) == 4


def test_both_ends_of_a_family_go_by_their_names():
    """So that records of them are found whatever tightnesses are asked for."""
    names = ("logistic", "fitzpatrick_logistic", "fitzpatrick_sparsemax", "perceptron")
    assert at_tightnesses(names) == tuple(map(LossChoice, names))
    assert at_tightnesses(names, [0, 0.5, 1]) == (
        LossChoice("logistic"),
        LossChoice("fitzpatrick_logistic", 0.5),
        LossChoice("fitzpatrick_logistic"),
        LossChoice("sparsemax"),
        LossChoice("fitzpatrick_sparsemax", 0.5),
        LossChoice("fitzpatrick_sparsemax"),
        LossChoice("perceptron"),
    )


def test_labels_by_themselves_become_shares():
    """Even ones where no label is predicted."""
    choice = LossChoice("sparse_sigmoid")
    shares = choice.proportions(
        np.asarray([[0.5, 0.25, -1.0], [-1.0, -2.0, -3.0], [2.0, 5.0, 1.0]])
    )
    third = 1 / 3
    np.testing.assert_allclose(shares, [[2 / 3, third, 0], [third] * 3, [third] * 3])


def test_samples_without_a_label_are_left_out_of_both_parts():
    data = load_dataset("yeast")
    train, test = (np.asarray(part.Y).copy() for part in (data.train, data.test))
    train[[1, 5]] = 0
    test[[0, 2, 7]] = 0
    changed = replace(data, train=replace(data.train, Y=train), test=replace(data.test, Y=test))
    experiment = Experiment.of_dataset(changed)
    assert len(experiment.Y) == len(experiment.X) == len(train) - 2
    assert len(experiment.Y_test) == experiment.X_test.shape[0] == len(test) - 3
    for Y in (experiment.Y, experiment.Y_test):
        np.testing.assert_allclose(Y.sum(axis=1), 1.0)
