"""Model files: what is loaded is what was saved; nothing else is, and nothing is executed."""

import hashlib
import json
import pickle
import re
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from fitzpatrick.datasets import Columns, DataError, Table
from fitzpatrick.datasets.columns import Category, Number
from fitzpatrick.experiments import model_files, models
from fitzpatrick.experiments.learners import can_boost
from fitzpatrick.experiments.protocol import LossChoice, Protocol
from fitzpatrick.losses import FenchelYoungLoss
from fitzpatrick.regularizers import Negentropy

LOSSES = {
    "indicators": "fitzpatrick_sparsemax",
    "proportions": "fitzpatrick_entmax15",
    "labels": "fitzpatrick_logistic",
    "numbers": "squared",
}
RECIPE = Columns(
    (Number('a "quoted"\tname', 0.1, marks_missing=True), Category("größe", ("klein", "groß"))),
    missing_values=("\u2028",),
)
COEF, INTERCEPT = np.asarray([[1.5, -2.0, 0.0], [0.25, 1e-300, -1e300]]), np.asarray([0.5, -0.5])
ARRAYS = {"coef": COEF, "intercept": INTERCEPT}
COLUMNS = Columns((Number("x", 2.5), Category("z", ("red", "blue")))).to_json()
DESCRIPTION = {
    "format": "fitzpatrick-model",
    "version": 1,
    "library": "0.1.0",
    "model": "linear",
    "kind": "labels",
    "columns": COLUMNS,
    "target_names": ["a", "b"],
    "cv_score": None,
    "loss": "fitzpatrick_logistic",
    "tightness": None,
    "alpha": 0.5,
    "fit_intercept": True,
    "standardize": False,
    "objective": 1.25,
    "gradient_norm": 1e-9,
    "n_iter": 7,
    "status": "CONVERGED",
}


def load_bytes(folder, content):
    (folder / "m.safetensors").write_bytes(content)
    return model_files.load(folder / "m.safetensors")


def table(kind, n=40):
    generator = np.random.default_rng(7)
    X = generator.normal(size=(n, 4))
    X[:, 2] = 3.0  # left out of the fit
    scores = X @ generator.normal(size=(4, 3))
    Y = {
        "indicators": (scores >= scores.max(axis=1, keepdims=True) - 0.3).astype(np.uint8),
        "proportions": np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True),
        "labels": np.eye(3)[scores.argmax(axis=1)],
        "numbers": scores,
    }[kind]
    if kind == "labels":
        return Table(X, Y, kind, RECIPE.feature_names, ("u", "v", "größe"), columns=RECIPE)
    names = ("größe", 'a "quoted"\tname', "constant", "\u2028")
    return Table(X, Y, kind, names, ("u", "v", "größe"))


def fitted(kind="labels", setting=0.5, model="linear"):
    data = table(kind)
    choice = LossChoice(LOSSES[kind], None, model)
    protocol = Protocol(True, "none" if kind == "numbers" else "standardize", refine=True)
    return models.fit(data, Path("data.csv"), choice, protocol, setting).model, data.X


BOOSTED = pytest.param(
    "boosted", 3, marks=pytest.mark.skipif(not can_boost(), reason="needs lightgbm")
)


@pytest.mark.parametrize(("model", "setting"), [("linear", 0.5), ("linear", None), BOOSTED])
@pytest.mark.parametrize("kind", LOSSES)
def test_a_loaded_model_is_the_one_that_was_saved(tmp_path, monkeypatch, kind, model, setting):
    monkeypatch.setattr(models, "FOLDS", 2)
    saved, X = fitted(kind, setting, model)
    model_files.save(saved, tmp_path / "m")
    loaded = model_files.load(tmp_path / "m")
    assert (loaded.model, loaded.cv_score is None) == (model, setting is not None)
    np.testing.assert_array_equal(loaded.predict(X), saved.predict(X))
    assert models.predictions_csv(loaded, X) == models.predictions_csv(saved, X)
    if kind == "proportions":  # and labels by probabilities, as test_messy_files tests
        np.testing.assert_array_equal(saved.predict(X), saved.estimator.predict(X))
    for name in ("columns", "target_names", "kind", "cv_score"):
        assert getattr(loaded, name) == getattr(saved, name)
    assert loaded.estimator.get_params() == saved.estimator.get_params()
    names = ["n_iter_", "loss_", "n_features_in_"]
    names += ["objective_", "gradient_norm_", "status_"] * (model == "linear")
    for name in names:
        assert getattr(loaded.estimator, name) == getattr(saved.estimator, name)
    model_files.save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_boosted_models_that_are_refused(tmp_path, monkeypatch):
    """With a checksum that fits: what does not go with the description, or is no tree."""
    pytest.importorskip("lightgbm")
    model_files.save(fitted("labels", 2, "boosted")[0], tmp_path / "m")
    trees = unpack((tmp_path / "m").read_bytes())["trees"]
    with safe_open(tmp_path / "m", "numpy") as file:
        text = file.metadata()["model"][64:]
    for old, new, reason in (
        ('"u", ', "", "for 3 targets and 4 features, expected 2 and 4"),
        ('"boosted"', '"linear"', "loss is missing"),
        ('"labels"', '"label"', "kind is"),
    ):
        assert old in text
        check_refused(tmp_path, packed(text.replace(old, new), trees=trees), reason)
    for old, new in (
        (b"fitzpatrick-boosted-model", b"fitzpatrick-boosted-other"),
        (b"BoostedProportionRegressor", b"os.system"),
        (b"version=v4", b"version=v9"),
        (b"split_feature=", b"split_feature=9"),
    ):
        other = trees.tobytes().replace(old, new)
        assert other != trees.tobytes()
        check_refused(tmp_path, packed(text, trees=np.frombuffer(other, dtype=np.uint8)), "")
    check_refused(tmp_path, packed(text, trees=trees[None]), "trees has the shape")
    monkeypatch.setattr(model_files, "can_boost", lambda: False)
    with pytest.raises(DataError, match=r"boosted trees: they need lightgbm: pip install 'fitz"):
        model_files.load(tmp_path / "m")


def test_the_same_model_is_the_same_bytes(tmp_path):
    """Whatever the order of its arrays in memory; others can read them."""
    model, _ = fitted()
    model.estimator.set_params(tightness=0.5)
    model_files.save(model, tmp_path / "a")
    assert model_files.load(tmp_path / "a").estimator.tightness == 0.5
    model.estimator.coef_ = np.asfortranarray(model.estimator.coef_)
    model_files.save(model, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    arrays = unpack((tmp_path / "a").read_bytes())
    np.testing.assert_array_equal(arrays["coef"], model.estimator.coef_)
    np.testing.assert_array_equal(arrays["intercept"], model.estimator.intercept_)


@pytest.mark.parametrize(
    ("reason", "attributes"),
    [
        ("not all of its coefficients are finite", {"coef_": np.full((3, 4), np.nan)}),
        ("its JSON holds NaN, which is not a number", {"objective_": float("nan")}),
        ("loss is .*expected the name of a loss", {"loss_": FenchelYoungLoss(Negentropy())}),
        ("two columns have the same name", {"columns": Columns.plain([*"abca"])}),
    ],
)
def test_save_refuses_what_load_would(tmp_path, reason, attributes):
    model, _ = fitted()
    model = replace(model, columns=attributes.pop("columns", model.columns))
    vars(model.estimator).update(attributes)
    with pytest.raises(DataError, match=rf"m: the model cannot be saved \({reason}"):
        model_files.save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_the_text_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(model_files, "MAX_TEXT_BYTES", 1 << 20)
    model, _ = fitted()
    with pytest.raises(DataError, match=r"cannot be saved \(its names take more than 1 MiB\)"):
        model_files.save(replace(model, target_names=("u", "v", "w" * 2**20)), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    check_refused(tmp_path, filled(text=" " * (2 << 20)), r"its header takes \d+ bytes")


# files made by hand: a valid one, and all that must be refused, each wrong in one way


def described(**changes):
    return json.dumps({**DESCRIPTION, **changes})


def packed(text, checksum=None, **arrays):
    """A model file of these arrays; the checksum is that of its content unless it is given."""
    content = b"".join(array.tobytes() for array in arrays.values())
    checksum = checksum or hashlib.sha256(text.encode() + content).hexdigest()
    return pack(arrays, {"model": checksum + text})


def filled(text=None, checksum=None, **changes):
    """A linear model, whose description or arrays are others."""
    return packed(described() if text is None else text, checksum, **{**ARRAYS, **changes})


class Mark:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def check_refused(folder, content, reason):
    """One line, of a length that can be read, without what a terminal would obey."""
    with pytest.raises(DataError) as caught:
        load_bytes(folder, content)
    message = str(caught.value).removeprefix(f"{folder}/")
    said = rf"m\.safetensors: not a model that fitzpatrick saved \(.*({reason}).*\)"
    assert re.fullmatch(said, message), message
    assert message.isprintable()
    assert len(message) < 300


def test_the_attacks_start_from_a_valid_file(tmp_path):
    model = load_bytes(tmp_path, filled())
    np.testing.assert_array_equal(model.estimator.coef_, COEF)
    np.testing.assert_array_equal(model.estimator.intercept_, INTERCEPT)
    assert (model.estimator.n_iter_, model.columns.to_json()) == (7, COLUMNS)
    numbered = load_bytes(tmp_path, filled(text=described(columns=Columns(n_numbered=3).to_json())))
    assert numbered.columns.feature_names == ("feature_1", "feature_2", "feature_3")
    model_files.save(model, tmp_path / "again")
    with safe_open(tmp_path / "again", "numpy") as file:
        saved = json.loads(file.metadata()["model"][64:])
    assert {**saved, "library": "0.1.0"} == DESCRIPTION


NO_FILE = "not a safetensors file, or cut short"
FILES = {
    "empty": (lambda: b"", NO_FILE),
    "huge header": (lambda: struct.pack("<Q", 2**63) + b"{}", NO_FILE),
    "cut short": (lambda: filled()[:-1], "not fully covered|MetadataIncompleteBuffer"),
    "extra array": (
        lambda: filled(extra=COEF),
        r'it holds \["coef", "extra", "intercept"\], expected coef, intercept',
    ),
    "no intercept": (lambda: packed(described(), coef=COEF), r'it holds \["coef"\], expected'),
    "no metadata": (lambda: pack(ARRAYS), r"its metadata are \[\], expected model"),
    "more metadata": (
        lambda: pack(ARRAYS, {"model": "", "x": ""}),
        r'its metadata are \["model", "x"\], expected model',
    ),
    "other checksum": (lambda: filled(checksum="0" * 64), "not the content that its checksum"),
    "transposed": (
        lambda: filled(coef=COEF.T.copy()),
        r"coef has the shape \(3, 2\) for 2 targets and",
    ),
    "intercepts": (lambda: filled(intercept=np.zeros(3)), r"intercept has the shape \(3,\) for 2"),
    "float32": (lambda: filled(coef=np.ones((2, 3), "f4")), "coef is of type F32, expected F64"),
    "nan": (lambda: filled(coef=np.where(COEF == 0, np.nan, COEF)), "not all of its coefficients"),
    "inf": (lambda: filled(intercept=np.asarray([0, -np.inf])), "not all of its coefficients"),
}


def text_with(old, new):
    assert described().count(old) == 1
    return described().replace(old, new)


TEXTS = {
    "empty": ("", "Expecting value"),
    "more": (described() + "{}", "Extra data"),
    "list": ("[]", "its JSON does not describe a model"),
    "key twice": (text_with('"alpha"', '"alpha": 1.0, "alpha"'), "a key of its JSON occurs twice"),
    "NaN": (text_with("1.25", "NaN"), "its JSON holds NaN, which is not a number"),
    "overflow": (text_with("1.25", "1e999"), "objective is Infinity, expected a number"),
    "digits": (text_with('"n_iter": 7', f'"n_iter": {"7" * 5000}'), "Exceeds the limit"),
    "deep list": ("[" * 10**6, "recursion"),
    "long": (described(target_names="a" * 10**5), r'target_names is "a{38}…, expected different'),
    "deep column": (text_with('["red", "blue"]', "[" * 300 + "]" * 300), "values is .*"),
}


REFUSED = [
    *FILES.values(),
    *((lambda text=text: filled(text=text), reason) for text, reason in TEXTS.values()),
]


@pytest.mark.parametrize(("make", "reason"), REFUSED, ids=[*FILES, *(f"text {t}" for t in TEXTS)])
def test_what_is_refused(tmp_path, make, reason):
    check_refused(tmp_path, make(), reason)


# values of every JSON type, and the keys that take some of them
VALUES = [None, True, 0, 2, -1, 1.0, -1.5, "", "other", "\x1b[2J" * 9, [], ["a"], ["a", "a"], {}]
TAKEN = {
    "library": ["", "other", "\x1b[2J" * 9],
    "cv_score": [None, 1.0, -1.5],
    "tightness": [None, 1.0],
    "alpha": [1.0],
    "fit_intercept": [True],
    "standardize": [True],
    "objective": [1.0, -1.5],
    "gradient_norm": [1.0],
    "n_iter": [0, 2],
}
OTHER_WORDS = {
    "columns": "not a recipe",
    "target_names": "coef has the shape .* for 1 target and 3",
}


@pytest.mark.parametrize("key", DESCRIPTION)
def test_every_key_is_there_once_with_a_value_that_fit_writes(tmp_path, key):
    others = {name: value for name, value in DESCRIPTION.items() if name != key}
    check_refused(tmp_path, filled(text=json.dumps(others)), f"{key} is missing")
    unknown = {**DESCRIPTION, f"\x1b[2J{key}" * 20: 1}
    check_refused(tmp_path, filled(text=json.dumps(unknown)), r'"\\u001b\[2J\S*… is not known')
    for value in VALUES:
        content = filled(text=described(**{key: value}))
        if any(type(one) is type(value) and one == value for one in TAKEN.get(key, ())):
            load_bytes(tmp_path, content)
        else:
            words = OTHER_WORDS.get(key, "nothing else")
            check_refused(tmp_path, content, f"{key} is .*, expected .+|{words}")


def test_pickles_are_never_loaded(tmp_path):
    mark = tmp_path / "mark"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        content = pickle.dumps(Mark(mark), protocol)
        pickle.loads(content)
        mark.unlink()  # it is a real attack
        check_refused(tmp_path, content, NO_FILE)
        assert not mark.exists()


@pytest.mark.parametrize("limit", ["MAX_COEFFICIENTS", "MAX_FEATURES"])
def test_bounds_are_checked_before_the_arrays_are_read(tmp_path, monkeypatch, limit):
    """A file of gigabytes that takes no room on the disk, whose names and shapes agree."""
    width, targets = 10**6, 2000
    names = [*map(str, range(targets))]
    text = described(columns=Columns(n_numbered=width).to_json(), target_names=names)
    size, path = 8 * targets * width, tmp_path / "m"
    ends = 0, size, size + 8 * targets
    header = {
        "__metadata__": {"model": "0" * 64 + text},
        "coef": {"dtype": "F64", "shape": [targets, width], "data_offsets": ends[:2]},
        "intercept": {"dtype": "F64", "shape": [targets], "data_offsets": ends[1:]},
    }
    content = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(content)) + content)
        file.truncate(8 + len(content) + ends[-1])
    if limit == "MAX_FEATURES":
        monkeypatch.setattr(model_files, limit, 10)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"are more than (100000000|10)"):
            model_files.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("model", "setting"), [("linear", 0.5), BOOSTED])
def test_every_changed_byte_is_noticed_or_does_not_matter(tmp_path, model, setting):
    """One checksum is of the description and of the arrays, coefficients or trees."""
    saved, X = fitted("labels", setting, model)
    model_files.save(saved, tmp_path / "m")
    content, loaded = (tmp_path / "m").read_bytes(), 0
    for position in range(0, len(content), len(content) // 200):
        changed = bytearray(content)
        changed[position] ^= 1 + position % 255
        for case in (bytes(changed), content[:position]):
            try:
                found = load_bytes(tmp_path, case)
            except DataError:
                continue
            loaded += 1
            np.testing.assert_array_equal(found.predict(X), saved.predict(X))
            assert found.estimator.get_params() == saved.estimator.get_params()
            assert found.columns == saved.columns
    assert loaded < 5  # blanks at the end of the header


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("junk", r"not a model that fitzpatrick saved \(not a safetensors file, .*\)"),
        ("none.npz", "no such file"),
        ("folder", "a folder; expected a model file"),
        ("/dev/null", "not a regular file; expected a model file"),
        ("x" * 300, "cannot be read: File name too long"),
    ],
)
def test_predict_ends_in_one_line(run, tmp_path, monkeypatch, name, line):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("junk").write_bytes(b"junk")
    code, out, err = run("predict", name, "x.csv")
    assert (code, out) == (2, "")
    assert re.fullmatch(f"error: {re.escape(name)}: {line}\n", err)
