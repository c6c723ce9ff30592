"""Bad input: what the messages say, that their advice works, and what a failed fit changes."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit

from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    fit_path,
)
from fitzpatrick.preprocessing import label_proportions

from .data import LABELS, WORDS, X, Y

INDICATORS = (Y > 0.2).astype(int)
INDICATORS[np.arange(len(Y)), LABELS] = 1
HALF = np.arange(60) < 30
WEIGHTS = np.linspace(1.0, 2.0, len(X))


def with_entry(array, value, row=3):
    changed = array.copy()
    changed[row, 1] = value
    return changed


TEXT = r"y holds text such as '.*'.* use FitzpatrickClassifier, .* y\.astype\(float\)"
TARGETS = [
    ({}, with_entry(Y, np.nan), "Input y contains NaN in row 3, column 1"),
    ({}, with_entry(Y, np.inf), "Input y contains infinity in row 3, column 1"),
    ({}, sparse.csr_array(with_entry(Y, np.nan)), "Input y contains NaN in row 3, column 1"),
    ({}, sparse.csr_array(100 * Y), "in row 0 it sums to 100, not 1; label_proportions"),
    ({}, Y * (np.arange(60) != 3)[:, None], "row 3 it sums to 0, .* drop it"),
    ({}, INDICATORS, "it holds 0/1 indicators, .*label_proportions.*loss='sigmoid'"),
    ({"loss": "sigmoid"}, with_entry(Y, 1.5), r"row 3 entry 1 is 1.5, outside \[0, 1\]"),
    ({"loss": "poisson"}, with_entry(Y, -1.0), r"row 3 entry 1 is -1, outside \[0, inf\]"),
    (
        {},
        LABELS,
        "for class labels use FitzpatrickClassifier or .*, for one share .* loss='sigmoid'",
    ),
    ({}, Y + 1j, "Complex data not supported"),
    ({}, Y.astype(str), TEXT),
    ({}, WORDS, TEXT),
    ({}, Y[None], "Found array with dim 3"),
    ({}, None, "requires y to be passed"),
    ({}, Y[:10], r"inconsistent numbers of samples: \[60, 10\]"),
]
LABEL_ERRORS = [
    ({}, ["a"] * 60, r"at least two classes, and y holds one class only: .*'a'"),
    ({}, LABELS[:10], r"inconsistent numbers of samples: \[60, 10\]"),
    ({}, Y, "for proportions use ProportionRegressor, .*np.asarray.y..argmax"),
    ({}, Y[:, 0], "For proportions and other numbers use ProportionRegressor"),
    ({"loss": "sigmoid"}, LABELS, "needs a loss on the simplex, and loss='sigmoid'"),
    ({"class_weight": {0: -1.0, 1: 1.0, 2: 1.0, 3: 1.0}}, LABELS, "finite numbers of at least 0"),
    ({"class_weight": dict.fromkeys(range(4), 0.0)}, LABELS, "is zero for the classes of all"),
    ({"class_weight": {0: 0.0, 7: 1.0}}, LABELS, r"\[1, 2, 3\], are not in class_weight"),
    ({"class_weight": "even"}, LABELS, "'class_weight' parameter .* among {'balanced'}"),
    ({"class_weight": dict.fromkeys(range(4), 1e300)}, LABELS, "a sample has the weight"),
]
ALPHA = r"'alpha' parameter .* in the range \[0.0, inf\)"
TIGHTNESS = r"'tightness' parameter .* in the range \[0.0, inf\) or None"
COUNT = r"parameter .* must be an int in the range \[1, inf\)"
PARAMETERS = [
    ({"alpha": -1.0}, ALPHA),
    ({"alpha": np.nan}, ALPHA),
    ({"alpha": [0.1, 1.0]}, r"'alpha' parameter .* must be a float .* Got \[0.1, 1.0\]"),
    ({"loss": "logistik"}, "unknown loss 'logistik'; did you mean 'logistic'"),
    ({"loss": "logistic", "tightness": 0.5}, "for tightness=0.5 use 'fitzpatrick_logistic'"),
    ({"tightness": -1.0}, TIGHTNESS),
    ({"tightness": "tight"}, "'tightness' parameter .* must be a float"),
    ({"solver": "sag"}, "'solver' parameter .* must be a str among .* Got 'sag' instead"),
    ({"loss": "perceptron", "solver": "newton-cg"}, "needs curvature.*use solver='lbfgs'"),
    ({"tol": 0.0}, r"'tol' parameter .* must be a float in the range \(0.0, inf\)"),
    ({"max_iter": 10.0}, f"'max_iter' {COUNT}"),
    ({"n_threads": 0}, f"'n_threads' {COUNT} or None"),
    ({"verbose": -1}, r"'verbose' parameter .* must be an int in the range \[0, inf\)"),
    ({"fit_intercept": "no"}, "'fit_intercept' parameter .* must be an instance of 'bool'"),
    ({"callback": "print"}, "'callback' parameter .* must be a callable or None"),
]
SEARCHES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"alphas": np.linspace(0.1, 1, 1001)}, {}, "1001 values and at most 1000 are allowed"),
    ({"alphas": []}, {}, "alphas must be a sequence of numbers"),
    ({"alphas": [1.0, 1.0]}, {}, "alphas must differ from each other"),
    ({"alphas": [1.0, -2.0]}, {}, r"alphas\[1\] must be a finite number of at least 0"),
    ({"tightnesses": [0.5, -1.0]}, {}, r"tightnesses\[1\] must be a finite number of at least 0"),
    ({"loss": "logistic", "tightnesses": [0, 1]}, {}, "use 'fitzpatrick_logistic'"),
    ({"cv": PredefinedSplit(np.full(60, -1))}, {}, "makes no folds"),
    ({"cv": 2}, {"sample_weight": 1.0 * HALF}, "training part of fold 0 has a positive weight"),
    ({"cv": 2}, {"sample_weight": 1.0 * ~HALF}, "held-out part of fold 0 has a positive weight"),
    (
        {"scoring": "jensen"},
        {},
        "'jensen'; did you mean 'jensen_shannon'.* are jensen_shannon, .*a",
    ),
    ({"scoring": "acuracy"}, {}, "did you mean 'accuracy'.* squared_error.*get_scorer_names"),
    ({"cv": 2, "scoring": lambda *_: np.nan}, {}, "gave no finite score for alphas"),
    ({"cv": 2, "scoring": lambda *_: -np.inf}, {}, "gave no finite score for alphas"),
    ({}, {"dev": (X, 10 * Y)}, "dev: y is not in the domain.*it sums to 10, not 1"),
    ({}, {"dev": (X, np.eye(3)[LABELS % 3])}, "dev: .*same shape"),
    ({}, {"dev": (X, Y[:3])}, r"dev: .*inconsistent numbers of samples: \[60, 3\]"),
    ({}, {"dev": (X, Y * np.nan)}, "dev: Input y contains NaN in row 0, column 0"),
    ({}, {"dev": (X[:, :2], Y)}, "dev: X has 2 features, but .* is expecting 5"),
    ({}, {"dev": (X, Y, -np.ones(60))}, "dev: Negative values"),
    ({}, {"dev": (X, Y, X, Y)}, r"dev must be a pair \(X_dev, y_dev\) or a triple"),
]
PATHS: list[tuple[dict[str, Any], str]] = [
    ({"solver": "sag"}, "'solver' parameter of fit_path must be a str among .*Got 'sag'"),
    ({"tightness": -1.0}, "tightness"),
    ({"Y": np.full((60, 4), 0.5)}, "it sums to 2, not 1"),
    ({"X": with_entry(X, np.nan)}, "Input X contains NaN in row 3, column 1"),
    ({"sample_weight": 1e300 * WEIGHTS}, "a sample has the weight"),
    ({"Y": LABELS[:-1]}, r"inconsistent numbers of samples: \[60, 59\]"),
    ({"Y": np.append(LABELS, 0)}, r"inconsistent numbers of samples: \[60, 61\]"),
    ({"Y": np.where(LABELS == 1, np.nan, LABELS)}, "Input y contains NaN"),
    ({"Y": LABELS / 2}, r"y of shape \(60,\) must hold classes, integers from 0 on, got float64"),
    ({"Y": LABELS - 1}, "label -1 in row"),
    ({"Y": -1 - LABELS}, "label -.* in row 0"),  # no class at all
    ({"alphas": iter([1.0, -1.0])}, "must be a finite number of at least 0, got -1"),
    ({"dtype": "float16"}, "dtype must be float32 or float64"),
    (
        {"start": (np.zeros((3, 5)), np.zeros(3))},
        r"start must .* shape \(4, 5\) and .* \(4,\), got",
    ),
    ({"start": (np.zeros((4, 5)), np.zeros(3))}, r"got \(4, 5\) and \(3,\)"),
]


FEATURES = [
    (np.nan, "Input X contains NaN in row 3, column 1"),
    (np.inf, "Input X contains infinity in row 3, column 1"),
    (1e200, r"an entry of size 1e\+200, and sums of squares overflow"),
]
BOTH = [(ProportionRegressor, Y), (FitzpatrickClassifier, LABELS)]
PATH = {"X": X, "Y": Y, "loss": "fitzpatrick_logistic", "alphas": [1]}
CASES: list[tuple[Any, str]] = [
    *((partial(ProportionRegressor(**given).fit, X, y), said) for given, y, said in TARGETS),
    *((partial(FitzpatrickClassifier(**given).fit, X, y), said) for given, y, said in LABEL_ERRORS),
    *((partial(cls(**given).fit, X, y), said) for given, said in PARAMETERS for cls, y in BOTH),
    *(
        (partial(ProportionRegressorCV(**given).fit, X, Y, **options), said)
        for given, options, said in SEARCHES
    ),
    *((partial(fit_path, **PATH | change), said) for change, said in PATHS),
    *(
        (partial(ProportionRegressor().fit, form(with_entry(X, value)), Y), said)
        for value, said in FEATURES
        for form in (np.asarray, sparse.csr_array)
    ),
    (partial(ProportionRegressor().fit, X, Y, np.zeros(60)), "zero"),
    (partial(ProportionRegressor().fit, X, Y, -WEIGHTS), "[Nn]egative"),
    (partial(ProportionRegressor().fit, X, Y, 1e300 * WEIGHTS), r"weight 2e\+300.* divide the wei"),
    (partial(ProportionRegressor().predict, X), "not fitted yet"),  # a NotFittedError
    (
        partial(ProportionRegressor().set_output, transform="excel"),
        "None or one of .*, got 'excel'",
    ),
    (
        partial(FitzpatrickClassifierCV().fit, X[LABELS < 2], LABELS[LABELS < 2], dev=(X, LABELS)),
        r"dev: y holds classes .* not in .* the fit: \[2, 3\]",
    ),
]


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_bad_input(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_are_refused() -> None:
    for arguments in ((np.matrix(X), Y), (X, np.matrix(Y)), (X, Y, np.matrix(WEIGHTS))):
        with pytest.raises(TypeError, match=r"np\.matrix is not supported.*np\.asarray"):
            ProportionRegressor().fit(*arguments)


def test_what_the_messages_advise() -> None:
    pandas = pytest.importorskip("pandas")
    for off in (100 * Y, INDICATORS):
        expected = ProportionRegressor().fit(X, off / off.sum(axis=1, keepdims=True)).coef_
        for form in (np.asarray, sparse.csr_array, pandas.DataFrame):
            coef = ProportionRegressor().fit(X, label_proportions(form(off))).coef_
            np.testing.assert_allclose(coef, expected, rtol=1e-9)
    ProportionRegressor("sigmoid").fit(X, INDICATORS)
    assert ProportionRegressor("sigmoid").fit(X, Y[:, 0]).predict(X).shape == (60,)
    expected = ProportionRegressor().fit(X, Y).coef_
    for y in (Y.astype(str).astype(float), Y.astype(object)):
        np.testing.assert_allclose(ProportionRegressor().fit(X, y).coef_, expected, rtol=1e-9)
    for words in (WORDS, list(WORDS), pandas.Series(WORDS)):
        assert list(FitzpatrickClassifier().fit(X, words).classes_) == sorted(set(WORDS))


def test_warm_start_continues_or_says_why_not() -> None:
    model = ProportionRegressor(warm_start=True).fit(X, Y)
    assert model.fit(X, Y).n_iter_ == 0
    with pytest.raises(ValueError, match=r"coefficients of shape \(4, 5\), and these data need"):
        model.fit(X[:, :3], Y)
    assert model.n_features_in_ == 5


@pytest.mark.parametrize("cls", [ProportionRegressor, ProportionRegressorCV])
@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_a_fit_that_is_interrupted_changes_nothing(cls, error) -> None:
    def interrupt(now) -> None:
        if now.iteration == 2:
            raise error

    model = cls(callback=interrupt)
    with pytest.raises(error):
        model.fit(X, Y)
    assert not [name for name in vars(model) if re.search("[^_]_$", name)]
    model.set_params(callback=None).fit(X, Y).set_params(callback=interrupt)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(X[:, :4] * 2, Y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)


def test_a_loss_too_flat_to_be_fitted_is_warned_about():
    X, y = np.eye(6, 3), np.array([0, 1, 0, 1, 0, 1])
    with pytest.warns(ConvergenceWarning, match="at tightness 40 the loss of a class label"):
        FitzpatrickClassifier(tightness=40).fit(X, y)
