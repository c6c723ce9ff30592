"""Boosted trees as estimators, and their files."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
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
    model = BoostedProportionRegressor(loss, library=library, n_jobs=1, n_estimators=60).fit(X, P)
    error = np.square(model.predict(X) - P).sum(axis=1).mean()
    assert error < 0.3 * np.square(P - P.mean(axis=0)).sum(axis=1).mean()
    assert model.feature_importances_[:4].min() > model.feature_importances_[4]
    assert model.predict_scores(X).shape == P.shape


def test_the_start_has_the_mean_as_its_link() -> None:
    X, P, y = noisy()
    weights = np.arange(1.0, len(X) + 1)
    for loss in ("logistic", "sparsemax", "fitzpatrick_entmax15", "sigmoid", "poisson"):
        model = BoostedProportionRegressor(loss, **ONE).fit(X, P, weights)
        mean = np.average(P, axis=0, weights=weights)
        np.testing.assert_allclose(fp.get_loss(loss).link(model.start_), mean, rtol=1e-9)
    model = BoostedClassifier("logistic", **ONE).fit(X, y)
    np.testing.assert_allclose(
        fp.get_loss("logistic").link(model.start_), np.bincount(y) / len(y), rtol=1e-9
    )


def test_classes(library: str) -> None:
    X, _, y = noisy()
    names = np.asarray(["a", "b", "c", "d"])[y]
    model = BoostedClassifier("fitzpatrick_logistic", library=library, **ONE).fit(X, names)
    proba, link, scores = model.predict_proba(X), model.predict_link(X), model.predict_scores(X)
    loss = fp.get_loss("fitzpatrick_logistic")
    np.testing.assert_allclose(proba, loss.probabilities(scores))
    np.testing.assert_allclose(link, loss.link(scores))
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    assert (model.predict(X) == names).mean() > 0.6


def test_early_stopping_keeps_the_best_round(library: str) -> None:
    X, P, _ = noisy()
    rng = seeded(5)
    noise = rng.dirichlet(np.ones(4), size=len(X))
    for metric in (None, "squared_error", "cosine"):
        model = BoostedProportionRegressor(
            "logistic", library=library, n_jobs=1, n_estimators=200, metric=metric,
            early_stopping_rounds=5, validation_fraction=0.3, random_state=0,
        ).fit(X[:, 4:], noise)  # fmt: skip
        assert model.n_iter_ < 50
    with pytest.raises(ValueError, match="'metric' parameter"):
        BoostedProportionRegressor(metric="rmse", early_stopping_rounds=5, **ONE).fit(X, P)


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


@pytest.mark.parametrize(
    "model",
    [
        BoostedClassifier("fitzpatrick_logistic", **ONE, min_child_samples=1),
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"library": "sklearn"}, "'library' parameter"),
        ({"n_estimators": 0}, "'n_estimators' parameter"),
        ({"loss": "sigmoid"}, "needs a loss on the simplex"),
        ({"hessian": "exact"}, "hessian must be"),
    ],
)
def test_bad_parameters(change, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        BoostedClassifier(**{**ONE, **change}).fit(X, y)


def test_bad_data() -> None:
    X, P, _ = noisy(50)
    with pytest.raises(ValueError, match="sum"):
        BoostedProportionRegressor("logistic", **ONE).fit(X, P * 2)
    with pytest.raises(ValueError, match="BoostedClassifier"):
        BoostedProportionRegressor("logistic", **ONE).fit(X, P[:, 0])
    with pytest.raises(ValueError, match="infinity"):
        BoostedProportionRegressor("logistic", **ONE).fit(np.where(X > 2, np.inf, X), P)
    with pytest.raises(ValueError, match="cannot grow trees"):
        BoostedProportionRegressor("logistic", **ONE).fit(np.ones((50, 2)), P)
    with pytest.raises(ValueError, match="one class only: 'a'"):
        BoostedClassifier(**ONE).fit(X, ["a"] * 50)


def test_files_keep_predictions(tmp_path, library: str) -> None:
    X, P, y = noisy()
    file = tmp_path / "model.json"
    fits = [
        (BoostedProportionRegressor("fitzpatrick_sparsemax", tightness=0.5), P),
        (BoostedClassifier("fitzpatrick_logistic"), np.asarray(["a", "b", "c", "d"])[y]),
    ]
    for model, target in fits:
        model.set_params(library=library, **ONE).fit(X, target)
        save_model(model, file)
        again = load_model(file)
        np.testing.assert_allclose(again.predict_scores(X), model.predict_scores(X), atol=1e-6)
        np.testing.assert_array_equal(again.predict(X) == model.predict(X), True)
        assert again.n_iter_ == model.n_iter_


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "bool", "<U3", "object"])
def test_files_keep_the_dtype_of_classes(tmp_path, dtype: str) -> None:
    X, _, y = noisy(100)
    labels = np.asarray(["no", "yes"])[y % 2] if dtype in ("<U3", "object") else y % 2
    model = BoostedClassifier(**ONE).fit(X, labels.astype(dtype))
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.classes_.dtype == model.classes_.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_classes_that_json_cannot_hold(tmp_path) -> None:
    X, _, y = noisy(100)
    days = np.asarray(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")[y % 2]
    with pytest.raises(ValueError, match="its dtype cannot be 'datetime64"):
        save_model(BoostedClassifier(**ONE).fit(X, days), tmp_path / "model.json")


TAMPERED = {
    "fields": lambda d: d.pop("start"),
    "format": lambda d: d.update(format="other"),
    "estimator": lambda d: d.update(estimator="os.system"),
    "list of estimators": lambda d: d.update(estimator=["BoostedClassifier"]),
    "list of libraries": lambda d: d.update(library=["lightgbm"]),
    "list of losses": lambda d: d.update(loss=["logistic"]),
    "list of dtypes": lambda d: d.update(dtype=["str"]),
    "library": lambda d: d.update(library="os"),
    "loss": lambda d: d.update(loss="nothing"),
    "tightness": lambda d: d.update(tightness=-1.0),
    "high tightness": lambda d: d.update(tightness=1e7),
    "tightness that is none": lambda d: d.update(tightness=float("nan")),
    "tightness beyond a float": lambda d: d.update(tightness=10**400),
    "parts": lambda d: d.update(trees=["tree\n"] * 10_001),
    "start": lambda d: d.update(start=[0.0, 1e999, 0.0, 0.0]),
    "fewer targets": lambda d: d.update(start=d["start"][:3], classes=d["classes"][:3]),
    "features": lambda d: d.update(n_features=4),
    "names": lambda d: d.update(feature_names=["a"]),
    "classes": lambda d: d.update(classes=["a", "b", "c", 3]),
    "dtype": lambda d: d.update(dtype="V8"),
    "overflow": lambda d: d.update(dtype="uint8", classes=[1, 2, 3, 300]),
    "trees": lambda d: d.update(trees=["tree\nnonsense"]),
    "other trees": lambda d: d.update(trees=[__import__("json").dumps({})]),
    "no trees": lambda d: d.update(trees=[]),
}


def test_names_are_bounded_before_they_are_parsed(tmp_path, monkeypatch) -> None:
    X, P, _ = noisy(50)
    file = tmp_path / "model.json"
    save_model(BoostedProportionRegressor("logistic", **ONE).fit(X, P), file)
    monkeypatch.setattr(_files, "MAX_TEXT_BYTES", 2000)
    assert file.stat().st_size > 4000  # trees do not count
    load_model(file)
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("parsed"))
    file.write_text(json.dumps({"start": ['\\"' * 100] * 20}))
    with pytest.raises(ValueError, match="bytes besides the trees"):
        load_model(file)


def test_the_number_of_trees_is_bounded(tmp_path, monkeypatch) -> None:
    X, P, _ = noisy(50)
    file = tmp_path / "model.json"
    save_model(BoostedProportionRegressor("logistic", **ONE).fit(X, P), file)
    trees = 4 * ONE["n_estimators"]
    for module in (_files, _trees):
        monkeypatch.setattr(module, "MAX_TREES", trees)
        load_model(file)
        monkeypatch.setattr(module, "MAX_TREES", trees - 1)
        with pytest.raises(ValueError, match=f"more than {trees - 1}"):
            load_model(file)
        monkeypatch.undo()


def test_files_are_written_beside_nothing_else(tmp_path) -> None:
    X, P, _ = noisy(50)
    other = tmp_path / "model.json.part"
    other.write_text("of somebody else")
    save_model(BoostedProportionRegressor("logistic", **ONE).fit(X, P), tmp_path / "model.json")
    assert other.read_text() == "of somebody else"


@pytest.mark.parametrize("attack", TAMPERED)
def test_tampered_files_are_refused(tmp_path, attack: str) -> None:
    X, _, y = noisy(100)
    file = tmp_path / "model.json"
    save_model(BoostedClassifier(**ONE).fit(X, np.asarray(list("abcd"))[y]), file)
    given = json.loads(file.read_text())
    TAMPERED[attack](given)
    file.write_text(json.dumps(given))
    with pytest.raises(ValueError, match="not a boosted model"):
        load_model(file)


def test_other_files_are_refused(tmp_path) -> None:
    file = tmp_path / "model.json"
    file.write_bytes(b"\x00\xff\x00")
    with pytest.raises(ValueError, match="not a boosted model"):
        load_model(file)
    X, P, _ = noisy(50)
    loss = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))
    model = BoostedProportionRegressor(loss, **ONE).fit(X, P)
    with pytest.raises(ValueError, match="registry"):
        save_model(model, file)


def test_a_fit_that_fails_changes_nothing() -> None:
    X, _, y = noisy(100)
    names = np.asarray(list("abcd"))[y]
    model = BoostedClassifier(**ONE).fit(X, names)
    before = model.predict(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, np.asarray(list("efgh"))[y], sample_weight=np.ones(3))
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_warm_start_needs_the_same_classes_and_features() -> None:
    X, _, y = noisy(100)
    model = BoostedClassifier(warm_start=True, **ONE).fit(X, np.asarray(list("abcd"))[y])
    for features, labels in (
        (X, np.asarray(list("abce"))[y]),
        (X[:, :3], np.asarray(list("abcd"))[y]),
    ):
        with pytest.raises(ValueError, match="warm_start=False"):
            model.fit(features, labels)


@pytest.mark.parametrize("change", [{"loss": "fitzpatrick_sparsemax"}, {"tightness": 0.5}])
def test_a_warm_start_needs_the_same_loss(change) -> None:
    X, _, y = noisy(100)
    model = BoostedClassifier("fitzpatrick_logistic", warm_start=True, **ONE).fit(X, y)
    model.set_params(tightness=1.0).fit(X, y)  # its own
    with pytest.raises(ValueError, match="another loss"):
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


def test_seeds_masks_and_decisions() -> None:
    X, _, y = noisy(100)
    X[:, 4] = np.round(X[:, 4])
    options = {**ONE, "random_state": np.random.RandomState(0)}  # users have them
    model = BoostedClassifier(categorical_features=[False] * 4 + [True], **options).fit(X, y)
    assert model.decision_function(X).shape == (100, 4)
    binary = BoostedClassifier(**ONE).fit(X, y > 1)
    np.testing.assert_array_equal(binary.predict(X), binary.decision_function(X) > 0)
