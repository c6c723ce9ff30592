"""Bad input: what the messages say; and that a fit which fails or is stopped changes nothing."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
    _objective,
)

from .data import features, targets

X = features()
Y = targets("fitzpatrick_logistic", X)
LABELS = Y.argmax(axis=1)


def with_entry(array, value, at=(3, 1)):
    changed = array.copy()
    changed[at] = value
    return changed


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nan_in_features(form) -> None:
    with pytest.raises(ValueError, match="Input X contains NaN"):
        ProportionRegressor().fit(form(with_entry(X, np.nan)), Y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_nan_in_targets(form, value: float, name: str) -> None:
    with pytest.raises(ValueError, match=f"Input y contains {name} in row 3, column 1"):
        ProportionRegressor().fit(X, form(with_entry(Y, value)))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_off_the_simplex(form) -> None:
    off = Y.copy()
    off[7] *= 2
    with pytest.raises(ValueError, match=r"in row 7 it sums to 2, not 1; label_proportions\(y\)"):
        ProportionRegressor().fit(X, form(off))


@pytest.mark.parametrize(
    ("loss", "value", "message"),
    [
        ("sigmoid", 1.5, r"entry 1 is 1.5, outside \[0, 1\]"),
        ("poisson", -1.0, r"entry 1 is -1, outside \[0, inf\]"),
    ],
)
def test_targets_outside_other_domains(loss: str, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=f"row 3 {message}"):
        ProportionRegressor(loss).fit(X, with_entry(targets(loss, X), value))


def test_labels_for_the_regressor() -> None:
    with pytest.raises(ValueError, match="for class labels use FitzpatrickClassifier"):
        ProportionRegressor().fit(X, LABELS)


@pytest.mark.parametrize("cls", [ProportionRegressor, ProportionRegressorCV])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y + 1j, "Complex data not supported"),
        (Y.astype(str), "y holds text such as .* for class names use FitzpatrickClassifier"),
        (Y[None], "Found array with dim 3"),
        (None, "requires y to be passed"),
    ],
)
def test_targets_that_are_no_numbers(cls, y, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cls().fit(X, y)


def test_targets_of_objects_are_numbers() -> None:
    expected = ProportionRegressor().fit(X, Y).coef_
    np.testing.assert_array_equal(ProportionRegressor().fit(X, Y.astype(object)).coef_, expected)


def test_one_class_only() -> None:
    with pytest.raises(
        ValueError, match=r"at least two classes, and y holds one class only: .*'a'"
    ):
        FitzpatrickClassifier().fit(X, ["a"] * len(X))


def test_targets_of_another_length() -> None:
    for model, y in ((ProportionRegressor(), Y), (FitzpatrickClassifier(), LABELS)):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 10\]"):
            model.fit(X, y[:10])


@pytest.mark.parametrize("alpha", [-1.0, np.inf, np.nan])
def test_alpha_out_of_range(alpha: float) -> None:
    with pytest.raises(ValueError, match=r"'alpha' parameter .* in the range \[0.0, inf\)"):
        ProportionRegressor(alpha=alpha).fit(X, Y)


def test_several_alphas_for_one_model() -> None:
    with pytest.raises(
        ValueError, match=r"'alpha' parameter .* must be a float .* Got \[0.1, 1.0\]"
    ):
        ProportionRegressor(alpha=[0.1, 1.0]).fit(X, Y)


@pytest.mark.parametrize("cls", [ProportionRegressorCV, FitzpatrickClassifierCV])
@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        (np.linspace(0.1, 1, 1001), "alphas holds 1001 values and at most 1000 are allowed"),
        ([], "alphas must be a sequence of numbers"),
        (3, "alphas must be a sequence of numbers"),
        ([1.0, 1.0], "alphas must differ from each other"),
        ([1.0, -2.0], r"alphas\[1\] must be a finite number of at least 0"),
    ],
)
def test_grids_of_alphas_without_sense(cls, alphas, message: str) -> None:
    y = LABELS if cls is FitzpatrickClassifierCV else Y
    with pytest.raises(ValueError, match=message):
        cls(alphas=alphas).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "logistik"}, "unknown loss 'logistik'; did you mean 'logistic'"),
        ({"solver": "sag"}, "'solver' parameter .* must be a str among .* Got 'sag' instead"),
        ({"loss": "perceptron", "solver": "newton-cg"}, "needs curvature.*use solver='lbfgs'"),
        ({"tol": 0.0}, r"'tol' parameter .* must be a float in the range \(0.0, inf\)"),
        ({"max_iter": 0}, r"'max_iter' parameter .* must be an int in the range \[1, inf\)"),
        ({"verbose": -1}, r"'verbose' parameter .* must be an int in the range \[0, inf\)"),
        (
            {"n_threads": 0},
            r"'n_threads' parameter .* an int in the range \[1, inf\) or None",
        ),
        ({"max_iter": 10.0}, r"'max_iter' parameter .* must be an int in the range \[1, inf\)"),
        ({"fit_intercept": "no"}, "'fit_intercept' parameter .* must be an instance of 'bool'"),
        ({"standardize": "no"}, "'standardize' parameter .* must be an instance of 'bool'"),
        ({"warm_start": "no"}, "'warm_start' parameter .* must be an instance of 'bool'"),
    ],
)
def test_parameters(parameters, message: str) -> None:
    for model, y in ((ProportionRegressor, Y), (FitzpatrickClassifier, LABELS)):
        with pytest.raises(ValueError, match=message):
            model(**parameters).fit(X, y)


def test_losses_off_the_simplex_for_the_classifier() -> None:
    with pytest.raises(ValueError, match=r"needs a loss on the simplex, and loss='sigmoid'"):
        FitzpatrickClassifier("sigmoid").fit(X, LABELS)


def test_weights() -> None:
    with pytest.raises(ValueError, match="zero"):
        ProportionRegressor().fit(X, Y, np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        ProportionRegressor().fit(X, Y, -np.ones(len(X)))


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: -1.0, 1: 1.0, 2: 1.0, 3: 1.0}, "class_weight must hold finite numbers of at least 0"),
        ({0: np.nan, 1: 1.0, 2: 1.0, 3: 1.0}, "class_weight must hold finite numbers of at least"),
        ({0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}, "class_weight is zero for the classes of all samples"),
        ({0: 0.0, 7: 1.0}, r"The classes, \[1, 2, 3\], are not in class_weight"),
        ("even", "'class_weight' parameter .* must be .* among {'balanced'}"),
    ],
)
@pytest.mark.parametrize("cls", [FitzpatrickClassifier, FitzpatrickClassifierCV])
def test_class_weights(cls, class_weight, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cls(class_weight=class_weight).fit(X, LABELS)


def test_predictions_before_a_fit() -> None:
    with pytest.raises(NotFittedError):
        ProportionRegressor().predict(X)


def test_warm_start_continues_or_says_why_not() -> None:
    model = ProportionRegressor(warm_start=True).fit(X, Y)
    assert model.fit(X, Y).n_iter_ == 0
    with pytest.raises(ValueError, match=r"coefficients of shape \(4, 5\), and these data need"):
        model.fit(X[:, :3], Y)
    assert model.n_features_in_ == 5


@pytest.mark.parametrize("cls", [ProportionRegressor, ProportionRegressorCV])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(cls, monkeypatch) -> None:
    model = cls().fit(X, Y)
    before = dict(vars(model))
    calls = 0
    evaluate = _objective.Objective.evaluate

    def interrupted(self, parameters):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return evaluate(self, parameters)

    monkeypatch.setattr(_objective.Objective, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :4] * 2, Y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is before[key] for key in before)


def test_an_interrupted_first_fit_leaves_nothing(monkeypatch) -> None:
    def interrupted(self, parameters):
        raise KeyboardInterrupt

    monkeypatch.setattr(_objective.Objective, "evaluate", interrupted)
    model = FitzpatrickClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, LABELS)
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_features_whose_squares_overflow_are_named() -> None:
    X = features()
    Y = targets("logistic", X)
    X[3, 1] = 1e200
    with pytest.raises(ValueError, match="an entry of size 1e\\+200, and sums of squares overflow"):
        ProportionRegressor().fit(X, Y)
