"""Boosted trees as estimators, and their files."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.utils.estimator_checks import check_estimator

import fitzpatrick as fp
from fitzpatrick.boosting import (
    BoostedClassifier,
    BoostedProportionRegressor,
    _files,
    _objectives,
    _trees,
    load_model,
    save_model,
)
from tests.boosting.test_objectives import noisy
from tests.helpers import seeded

pytest.importorskip("lightgbm")
ONE = {"n_jobs": 1, "n_estimators": 15, "num_leaves": 7}


@pytest.fixture(params=["lightgbm", "xgboost"])
def library(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.mark.parametrize(
    "loss", ["fitzpatrick_logistic", "sparsemax", "entmax15", "sigmoid", "poisson"]
)
def test_better_than_the_mean(loss: str, library: str) -> None:
    X, P, _ = noisy()
    weights = np.arange(1.0, len(X) + 1)
    model = BoostedProportionRegressor(loss, library=library, n_jobs=1, n_estimators=60)
    error = np.square(model.fit(X, P, weights).predict(X) - P).sum(axis=1).mean()
    assert error < 0.3 * np.square(P - P.mean(axis=0)).sum(axis=1).mean()
    assert model.feature_importances_[:4].min() > model.feature_importances_[4]
    mean = np.average(P, axis=0, weights=weights)  # is where trees start
    np.testing.assert_allclose(fp.get_loss(loss).link(model.start_), mean, rtol=1e-9)


def test_classes(library: str) -> None:
    X, _, y = noisy()
    X[:, 4] = np.round(X[:, 4]) + 9
    names = np.asarray(["a", "b", "c", "d"])[y]
    options = {**ONE, "library": library, "categorical_features": [False] * 4 + [True]}
    model = BoostedClassifier("fitzpatrick_logistic", **options).fit(X, names)
    proba, link, scores = model.predict_proba(X), model.predict_link(X), model.predict_scores(X)
    loss = fp.get_loss("fitzpatrick_logistic")
    np.testing.assert_allclose(proba, loss.probabilities(scores))
    np.testing.assert_allclose(link, loss.link(scores))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(proba))
    np.testing.assert_array_equal(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert (model.predict(X) == names).mean() > 0.6
    share = loss.link(model.start_)
    np.testing.assert_allclose(share, np.bincount(y) / len(y), rtol=1e-9)
    weighted = BoostedClassifier(class_weight="balanced", **options).fit(X, names)
    np.testing.assert_allclose(loss.link(weighted.start_), 0.25, rtol=1e-9)
    binary = BoostedClassifier(**ONE).fit(X, y > 1)
    np.testing.assert_array_equal(binary.predict(X), binary.decision_function(X) > 0)


def test_early_stopping_keeps_the_best_round(library: str) -> None:
    X, _, _ = noisy()
    noise = seeded(5).dirichlet(np.ones(4), size=len(X))
    for metric in (None, "squared_error", "cosine"):
        model = BoostedProportionRegressor(
            "logistic", library=library, n_jobs=1, n_estimators=200, metric=metric,
            early_stopping_rounds=5, validation_fraction=0.3, random_state=0,
        ).fit(X[:, 4:], noise)  # fmt: skip
        assert model.n_iter_ == model.booster_[0].best_iteration + (library == "xgboost") < 50


@pytest.mark.parametrize(
    "change",
    [{"learning_rate": 0.3}, {"num_leaves": 3}, {"max_depth": 1}, {"min_child_samples": 80},
     {"reg_lambda": 10.0}, {"subsample": 0.5}, {"colsample": 0.5}, {"hessian": "double"},
     {"floor": 3.0}, {"library_params": {"max_bin": 4}}],
)  # fmt: skip
def test_parameters_reach_the_library(change, library: str) -> None:
    X, P, _ = noisy(200)
    model = BoostedProportionRegressor("logistic", library=library, **ONE).fit(X, P)
    other = BoostedProportionRegressor("logistic", library=library, **(ONE | change)).fit(X, P)
    is_known = library == "lightgbm" or "min_child_samples" not in change
    assert (np.abs(model.predict(X) - other.predict(X)).max() > 1e-4) == is_known


@pytest.mark.parametrize("metric", [None, "squared_error"])
def test_targets_without_weight_change_nothing(metric: str | None, library: str) -> None:
    X, P, _ = noisy(200)
    weights = seeded(7).integers(0, 2, len(X))
    given = P, np.where(weights[:, None] > 0, P, P[:, ::-1])
    model = BoostedProportionRegressor("logistic", library=library, metric=metric, **ONE)
    model.set_params(early_stopping_rounds=3, learning_rate=0.5, random_state=0)
    found = [(model.fit(X, y, weights).predict(X), model.n_iter_) for y in given]
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_weights_are_copies() -> None:
    X, P, _ = noisy(120)
    counts = seeded(6).integers(1, 3, len(X))
    # trees see sums alone where no rule counts samples
    rules = {"min_data_in_bin": 1, "max_bin": 400, "min_sum_hessian_in_leaf": 1.0}
    options = {**ONE, "n_estimators": 5, "min_child_samples": 0, "library_params": rules}
    weighted = BoostedProportionRegressor("logistic", **options).fit(X, P, counts)
    copied = BoostedProportionRegressor("logistic", **options)
    copied.fit(np.repeat(X, counts, axis=0), np.repeat(P, counts, axis=0))
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), atol=1e-5)


def test_a_warm_start_goes_on(library: str) -> None:
    X, _, y = noisy()
    options = {"library": library, "n_jobs": 1, "num_leaves": 7}
    whole = BoostedClassifier("logistic", n_estimators=10, **options).fit(X, y)
    parts = BoostedClassifier("logistic", n_estimators=5, warm_start=True, **options).fit(X, y)
    parts.fit(X, y)
    assert parts.n_iter_ == 10
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-5)


def test_frames_categories_missing_values_and_sparse_features(library: str) -> None:
    pd = pytest.importorskip("pandas")
    X, P, _ = noisy()
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["kind"] = pd.Categorical(np.where(X[:, 0] > 0, "left", "right"))
    frame.iloc[::7, 1] = np.nan
    model = BoostedProportionRegressor("logistic", library=library, **ONE).fit(frame, P)
    assert list(model.feature_names_in_) == [*"abcde", "kind"]
    assert model.predict(frame).shape == P.shape
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    dense = np.where(np.abs(X) < 0.5, 0.0, X)
    of_sparse = BoostedProportionRegressor("logistic", library=library, **ONE)
    of_sparse.fit(sparse.csr_array(dense), sparse.csr_array(P))
    assert of_sparse.predict(sparse.csr_array(dense)).shape == P.shape


def test_features_without_a_split_leave_the_mean(library: str) -> None:
    _, P, _ = noisy(50)
    model = BoostedProportionRegressor("logistic", library=library, **ONE)
    prediction = model.fit(np.ones((50, 2)), P).predict([[0.0, 2.0]])
    np.testing.assert_allclose(prediction[0], P.mean(axis=0))


@pytest.mark.parametrize(
    "model",
    [
        BoostedClassifier(n_jobs=1, n_estimators=5),  # whose leaves need 20 samples
        BoostedProportionRegressor("squared", **ONE, min_child_samples=1),
    ],
    ids=["classifier", "regressor"],
)
def test_scikit_learn_conventions(model) -> None:
    # LightGBM bins and counts samples whatever they weigh; test_weights_are_copies turns that off
    counted = {
        f"check_sample_weight_equivalence_on_{kind}_data": "rules of LightGBM count samples"
        for kind in ("dense", "sparse")
    }
    results = check_estimator(model, on_skip=None, on_fail=None, expected_failed_checks=counted)
    failed = {check["check_name"]: str(check["exception"])[:200] for check in results
              if check["status"] == "failed"}  # fmt: skip
    assert failed == {}


def test_bad_parameters_and_data() -> None:
    X, P, y = noisy(50)
    for change, message in (
        ({"library": "sklearn"}, "'library' parameter"),
        ({"n_estimators": 0}, "'n_estimators' parameter"),
        ({"loss": "sigmoid"}, "needs a loss on the simplex"),
        ({"hessian": "exact"}, "hessian must be"),
        ({"metric": "rmse"}, "'metric' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            BoostedClassifier(**{**ONE, **change}).fit(X, y)
    for features, targets, message in (
        (X, P * 2, "sum"),
        (X, P[:, 0], "BoostedClassifier"),
        (np.where(X > 2, np.inf, X), P, "infinity"),
        (np.ones((1000, 2)), np.full((1000, 4), 0.25), r"leaves 20 samples \(min_child_samples\)"),
    ):
        with pytest.raises(ValueError, match=message):
            BoostedProportionRegressor("logistic", **ONE).fit(features, targets)
    with pytest.raises(ValueError, match="one class only: 'a'"):
        BoostedClassifier(**ONE).fit(X, ["a"] * 50)
    with pytest.warns(UserWarning, match="sum of one") as caught:
        BoostedProportionRegressor("logistic", **ONE).fit(X, P.round(2))
    assert caught[0].filename == __file__


def test_files_keep_the_model(tmp_path, library: str) -> None:
    pd = pytest.importorskip("pandas")
    X, P, y = noisy()
    X, file = pd.DataFrame(X, columns=list("abcde")), tmp_path / "model.json"
    shares = pd.DataFrame(P, columns=list("wxyz"))
    rates = {"tightness": 0.5, "learning_rate": 0.2, "library_params": {"max_bin": np.int64(63)}}
    fits = [
        (BoostedProportionRegressor("fitzpatrick_sparsemax", **rates), shares),
        (BoostedProportionRegressor("sigmoid", warm_start=True), P[:, 0]),
        (BoostedClassifier(categorical_features=np.asarray([4])), np.asarray(list("abcd"))[y]),
    ]
    X["e"], X["kind"] = X["e"].round() + 9, pd.Categorical(np.where(y > 1, "high", "low"))
    for model, target in fits:
        model.set_params(library=library, **ONE).fit(X, target)
        model.fit(X, target)
        save_model(model, file)
        again = load_model(file)
        for method in ("predict_scores", "predict"):
            ours, theirs = getattr(again, method)(X), getattr(model, method)(X)
            np.testing.assert_array_equal(ours, theirs)
        given = model.get_params()
        if model.categorical_features is not None:
            given["categorical_features"] = [4]
        assert again.get_params() == given
        assert again.n_iter_ == model.n_iter_
        fitted = [
            {name for name in vars(each) if name.strip("_") != name} for each in (model, again)
        ]
        assert fitted[0] - {"_target_names"} == fitted[1] - {"_target_names"}
    assert load_model(file).fit(X, target).n_iter_ == ONE["n_estimators"]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bool", "<U3", "object"])
def test_files_keep_the_dtype_of_classes(tmp_path, dtype: str) -> None:
    X, _, y = noisy(100)
    labels = np.asarray(["no", "yes"])[y % 2] if dtype in ("<U3", "object") else y % 2
    model = BoostedClassifier(**ONE).fit(X, labels.astype(dtype))
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.classes_.dtype == model.classes_.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_files_cannot_hold(tmp_path) -> None:
    X, P, y = noisy(100)
    days = np.asarray(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")[y % 2]
    loss = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))
    seed = np.random.RandomState(0)
    other = tmp_path / "model.json.part"
    other.write_text("of somebody else")
    for model, problem in (
        (BoostedClassifier(**ONE).fit(X, days), "cannot hold datetime"),
        (BoostedProportionRegressor(loss, **ONE).fit(X, P), "registry"),
        (BoostedClassifier(random_state=seed, **ONE).fit(X, y), "cannot hold RandomState"),
    ):
        with pytest.raises(ValueError, match=problem):
            save_model(model, tmp_path / "model.json")
    save_model(model.set_params(random_state=None), tmp_path / "model.json")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "model.json", other]
    assert other.read_text() == "of somebody else"


TAMPERED = {
    "fields": {"start_": ...},  # left out
    "format": {"format": "other"},
    "version": {"version": 2},
    "estimator": {"estimator": "os.system"},
    "list of estimators": {"estimator": ["BoostedClassifier"]},
    "library": {"library_": "os"},
    "list of libraries": {"library_": ["lightgbm"]},
    "loss": {"loss_": "nothing"},
    "list of losses": {"loss_": ["logistic"]},
    "unknown parameter": {"params": {"command": "ls"}},
    "no parameters": {"params": []},
    "tightness": {"tightness_": -1.0},
    "high tightness": {"tightness_": 1e7},
    "tightness that is none": {"tightness_": float("nan")},
    "tightness beyond a float": {"tightness_": 10**400},
    "start": {"start_": [0.0, 1e999, 0.0, 0.0]},
    "fewer targets": {"start_": [0.0] * 3, "classes_": list("abc")},
    "features": {"n_features_in_": 4},
    "names": {"feature_names_in_": ["a"]},
    "names of targets": {"_target_names": ["a"]},
    "lost rounds": {"n_iter_": ONE["n_estimators"] + 1},
    "classes": {"classes_": ["a", "b", "c", 3]},
    "equal classes": {"classes_": list("abcc")},
    "no classes": {"classes_": None},
    "dtype": {"dtype": "V8"},
    "list of dtypes": {"dtype": ["str"]},
    "overflow": {"dtype": "uint8", "classes_": [1, 2, 3, 300]},
}


def test_tampered_files_are_refused(tmp_path, monkeypatch) -> None:
    X, _, y = noisy(100)
    file = tmp_path / "model.json"
    save_model(BoostedClassifier(**ONE).fit(X, np.asarray(list("abcd"))[y]), file)
    description, trees = map(json.loads, file.read_text().splitlines())

    def refuse(*lines, match: str = "not a boosted model") -> None:
        file.write_text("\n".join(map(json.dumps, lines)))
        with pytest.raises(ValueError, match=match):
            load_model(file)

    for change in TAMPERED.values():
        changed = {**description, **change}
        refuse({name: value for name, value in changed.items() if value is not ...}, trees)
    for parts in ([], ["tree\nnonsense"], ["{}"], [{}], [trees, {}], ["tree\n"] * 10_001):
        refuse(description, *parts)
    file.write_bytes(b"\x00\xff\x00")
    with pytest.raises(ValueError, match="not a boosted model"):
        load_model(file)
    n_trees = 4 * ONE["n_estimators"]
    for module in (_files, _trees):
        monkeypatch.setattr(module, "MAX_TREES", n_trees - 1)
        refuse(description, trees, match=f"more than {n_trees - 1}")
        monkeypatch.undo()
    monkeypatch.setattr(_files, "MAX_TEXT_BYTES", 2000)  # trees do not count
    refuse({**description, "params": ["x" * 2000]}, trees)
    file.write_text(f"{json.dumps(description)}\n{json.dumps(trees)}")
    assert file.stat().st_size > 4000
    load_model(file)


def test_a_fit_that_fails_changes_nothing() -> None:
    X, _, y = noisy(100)
    names = np.asarray(list("abcd"))[y]
    model = BoostedClassifier(**ONE).fit(X, names)
    before = model.predict(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, np.asarray(list("efgh"))[y], sample_weight=np.ones(3))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "change", [{"loss": "fitzpatrick_sparsemax"}, {"tightness": 0.5}, {"y": 1}, {"X": slice(3)}]
)
def test_a_warm_start_needs_the_same_problem(change) -> None:
    X, _, y = noisy(100)
    model = BoostedClassifier("fitzpatrick_logistic", warm_start=True, **ONE).fit(X, y)
    model.set_params(tightness=1.0).fit(X, y)  # its own
    X, y = X[:, change.pop("X", slice(None))], y + change.pop("y", 0)
    with pytest.raises(ValueError, match=r"another loss.*warm_start=False"):
        model.set_params(**change).fit(X, y)


@pytest.mark.parametrize("seed", [None, 0, 7, np.int64(7), np.random.RandomState(0)])
def test_a_warm_start_draws_other_samples(seed) -> None:
    X, _, y = noisy(100)
    model = BoostedClassifier(warm_start=True, subsample=0.5, random_state=seed, **ONE)
    seeds = [part.params.get("random_state") for part in model.fit(X, y).fit(X, y).booster_]
    if isinstance(seed, np.random.RandomState):
        assert seeds[0] != seeds[1]
    else:
        assert seeds == [seed, (seed or 0) + ONE["n_estimators"]]


def test_fits_are_quiet_and_keep_to_their_threads(monkeypatch) -> None:
    X, P, _ = noisy(100)
    loss = fp.FenchelYoungLoss(fp.regularizers.FDivergence("hellinger"))
    seen = set()
    original = _objectives.resolve_threads
    monkeypatch.setattr(_objectives, "resolve_threads", lambda n: (seen.add(n), original(n))[1])
    for n_jobs in (1, 2, -1):
        options = {**ONE, "n_jobs": n_jobs, "early_stopping_rounds": 5}
        BoostedProportionRegressor(loss, **options).fit(X, P)
    assert seen == {1, 2, None}


def test_only_boosted_models_are_saved(tmp_path):
    with pytest.raises(TypeError, match="save_model is for boosted models, got DummyClassifier"):
        save_model(DummyClassifier(), tmp_path / "model.json")
