"""Model files: what is loaded is what was saved; nothing else is, and nothing is executed."""

import json
import pickle
import re
import subprocess
import sys
import textwrap
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.model_selection import KFold

from fitzpatrick.datasets import Columns, DataError, Table
from fitzpatrick.datasets.columns import Category, Number
from fitzpatrick.experiments import model_archive, model_files, models
from fitzpatrick.experiments.model_archive import Archive
from fitzpatrick.linear_model import ProportionRegressor, ProportionRegressorCV
from fitzpatrick.losses import FenchelYoungLoss
from fitzpatrick.regularizers import Negentropy

from .crafted_models import (
    ARCHIVES,
    ARRAYS,
    COEF,
    COLUMNS,
    DESCRIPTION,
    ENTRIES,
    FIELDS,
    INTERCEPT,
    OLD_ATTACKS,
    TEXTS,
    Mark,
    archive,
    archive_with,
    npy,
    partial_node,
    parts,
    skops_archive,
)

LOSSES = {
    "indicators": "fitzpatrick_sparsemax",
    "proportions": "entmax15",
    "labels": "fitzpatrick_logistic",
    "numbers": "squared",
}
RECIPE = Columns(
    (Number('a "quoted"\tname', 0.1, marks_missing=True), Category("größe", ("klein", "groß"))),
    missing_values=("\u2028",),
)


def load_bytes(folder, content, name="m.npz"):
    (folder / name).write_bytes(content)
    return model_files.load(folder / name)


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


def fitted(kind="labels", alpha=0.5):
    data = table(kind)
    options = {"intercept": True, "standardize": kind != "numbers"}
    model = models.fit(data, Path("data.csv"), LOSSES[kind], alpha, **options).model
    return model, data.X


@pytest.fixture(autouse=True)
def _few_folds(monkeypatch):
    monkeypatch.setattr(models, "FOLDS", 2)


@pytest.mark.parametrize("alpha", [0.5, None], ids=["alpha", "cv"])
@pytest.mark.parametrize("kind", LOSSES)
def test_a_loaded_model_is_the_one_that_was_saved(tmp_path, kind, alpha):
    model, X = fitted(kind, alpha)
    model_files.save(model, tmp_path / "m.npz")
    loaded = model_files.load(tmp_path / "m.npz")
    assert type(loaded.estimator) is ProportionRegressor
    np.testing.assert_array_equal(loaded.estimator.predict(X), model.estimator.predict(X))
    assert models.predictions_csv(loaded, X) == models.predictions_csv(model, X)
    assert loaded.estimator.get_params() == model.estimator.get_params()
    assert vars(loaded).keys() == vars(model).keys()
    for name, value in vars(model).items():
        assert name == "estimator" or getattr(loaded, name) == value
    expected = vars(model.estimator)
    assert vars(loaded.estimator).keys() == expected.keys()
    for name in expected.keys() - {"coef_", "intercept_"}:
        assert getattr(loaded.estimator, name) == expected[name]
    assert loaded.estimator.status_.converged
    assert (loaded.cv_score is None) == (alpha is not None)
    assert loaded.estimator.alpha == alpha or alpha is None


@pytest.mark.parametrize("kind", LOSSES)
def test_of_a_cross_validation_alpha_and_its_score_are_kept(tmp_path, kind):
    model, X = fitted(kind, alpha=None)
    model_files.save(model, tmp_path / "m.npz")
    loaded = model_files.load(tmp_path / "m.npz")
    Y = np.asarray(table(kind).Y, dtype=float)
    Y = Y if kind == "numbers" else Y / Y.sum(axis=1, keepdims=True)
    folds = KFold(models.FOLDS, shuffle=True, random_state=0)
    cv = ProportionRegressorCV(LOSSES[kind], cv=folds, standardize=kind != "numbers")
    varying = X[:, [0, 1, 3]]
    cv.fit(varying, Y)
    assert loaded.estimator.alpha == cv.alpha_
    # the fits end at a larger gradient, 1e-4 of that at zero: enough for three digits
    assert loaded.cv_score == pytest.approx(cv.best_score_, rel=1e-3)
    # one feature more, of coefficient 0, may be another order of summation
    np.testing.assert_allclose(
        loaded.estimator.predict(X), cv.predict(varying), rtol=1e-13, atol=1e-13
    )


def test_the_same_model_is_the_same_bytes(tmp_path):
    model, _ = fitted()
    model_files.save(model, tmp_path / "a.npz")
    model_files.save(replace(model), tmp_path / "b.pkl")
    model_files.save(model_files.load(tmp_path / "a.npz"), tmp_path / "c")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.pkl").read_bytes()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "c").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz") as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_numpy_reads_the_file(tmp_path):
    model, _ = fitted()
    model_files.save(model, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert file.files == ["model.json", "coef", "intercept"]
        np.testing.assert_array_equal(file["coef"], model.estimator.coef_)
        np.testing.assert_array_equal(file["intercept"], model.estimator.intercept_)
        description = json.loads(file["model.json"])
    assert description.keys() == DESCRIPTION.keys()
    assert description["target_names"] == ["u", "v", "größe"]
    assert description["columns"] == RECIPE.to_json()


def test_coefficients_in_fortran_order_are_saved_in_c_order(tmp_path):
    model, X = fitted()
    expected = model.estimator.predict(X)
    model.estimator.coef_ = np.asfortranarray(model.estimator.coef_)
    model_files.save(model, tmp_path / "m.npz")
    loaded = model_files.load(tmp_path / "m.npz").estimator
    np.testing.assert_array_equal(loaded.coef_, model.estimator.coef_)
    np.testing.assert_array_equal(loaded.predict(X), expected)


def test_an_optional_tightness_is_kept(tmp_path):
    model, _ = fitted()
    model.estimator.set_params(tightness=0.5)
    model_files.save(model, tmp_path / "m.npz")
    assert model_files.load(tmp_path / "m.npz").estimator.tightness == 0.5
    assert load_bytes(tmp_path, archive(parts())).estimator.tightness is None
    for value in (-1.0, True, None, "0.5", [0.5]):
        with pytest.raises(DataError, match=r"\(tightness is \S+, expected a number of at least 0"):
            load_bytes(tmp_path, archive(parts(tightness=value)))


def test_save_refuses_what_load_would(tmp_path):
    def refuse(reason, **attributes):
        model, _ = fitted()
        vars(model.estimator).update(attributes)
        with pytest.raises(DataError, match=rf"m\.npz: the model cannot be saved \({reason}"):
            model_files.save(model, tmp_path / "m.npz")
        assert list(tmp_path.iterdir()) == []

    refuse("not all of its coefficients are finite", coef_=np.full((3, 4), np.nan))
    refuse("not all of its coefficients are finite", intercept_=np.full(3, np.inf))
    refuse(r"coefficients \(3, 5\) for 3 targets and 4 features", coef_=np.zeros((3, 5)))
    refuse(r"intercepts \(1,\) for 3 targets", intercept_=np.zeros(1))
    refuse("alpha is 0.0, expected a positive number", alpha=0.0)
    refuse("objective is NaN, expected a number", objective_=float("nan"))
    refuse("loss is .*expected the name of a loss", loss_=FenchelYoungLoss(Negentropy()))


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (Columns(n_numbered=3), r"coefficients \(3, 4\) for 3 targets and 3 features"),
        (Columns.plain([*"abc", "d" * 1001]), "name is 'd+.*, expected text of at most 1000"),
        (Columns.plain([*"abca"]), "two columns have the same name"),
        (Columns((*map(Number, "abc"), Number("d", np.inf))), "fill is inf, expected a finite"),
    ],
    ids=["width", "long", "twice", "inf"],
)
def test_save_refuses_recipes_that_load_would(tmp_path, recipe, reason):
    model, _ = fitted()
    with pytest.raises(DataError, match=rf"m\.npz: the model cannot be saved \({reason}"):
        model_files.save(replace(model, columns=recipe), tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


def test_save_refuses_names_that_are_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(model_archive, "MAX_TEXT_BYTES", 1 << 20)
    model, _ = fitted()
    with pytest.raises(DataError, match=r"cannot be saved \(its names take more than 1 MiB\)"):
        model_files.save(replace(model, target_names=("u", "v", "w" * 2**20)), tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("m.npz", "wrote m.npz"),
        ("M.NPZ", "wrote M.NPZ"),
        ("m.pkl", "wrote m.pkl (a NumPy archive; nothing in it is executed)"),
        ("m", "wrote m (a NumPy archive; nothing in it is executed)"),
    ],
)
def test_any_name_of_a_model_file_will_do(run, tmp_path, monkeypatch, name, line):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,y\n" + "1,a\n2,b\n3,b\n" * 5)
    code, out, _ = run("fit", "a.csv", "--targets", "y", "--alpha", 1, "-o", name)
    assert code == 0
    assert out.splitlines()[-1] == line
    code, out, _ = run("predict", name, "a.csv")
    assert code == 0
    assert out.splitlines()[0] == "a,b,class"


@pytest.mark.parametrize("attack", OLD_ATTACKS)
def test_attacks_by_skops_files_do_nothing(run, tmp_path, monkeypatch, attack):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    content = skops_archive(attack(tmp_path))
    trusted = skops.io.get_untrusted_types(data=content)
    assert all(name.startswith("fitzpatrick.") for name in trusted)
    skops.io.loads(content, trusted=trusted)
    assert (tmp_path / "mark").exists()  # it is a real attack: a loader that trusts us falls for it
    remove(tmp_path / "mark")
    sys.modules.pop("attacked_package", None)
    for name in ("evil.skops", "evil.npz"):
        Path(name).write_bytes(content)
        before = set(tmp_path.rglob("*"))
        code, out, err = run("predict", name, "x.csv")
        assert (code, out) == (2, "")
        assert err == (
            f"error: {name}: a skops archive, which is no longer read: models of earlier versions "
            "must be fitted again with 'fitzpatrick fit'\n"
        )
        assert set(tmp_path.rglob("*")) == before
        assert "attacked_package" not in sys.modules


def remove(path):
    for file in path.iterdir() if path.is_dir() else ():
        file.unlink()
    path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    "make",
    [
        lambda: skops.io.dumps(
            {
                "estimator": ProportionRegressor().fit([[1.0], [2.0]], [[1.0, 0.0], [0.0, 1.0]]),
                "feature_names": ["x"],
                "target_names": ["a", "b"],
                "kind": "indicators",
                "codes": {},
            }
        ),
        lambda: skops.io.dumps({"estimator": Path, "feature_names": [], "target_names": []}),
        lambda: skops_archive(partial_node("fitzpatrick.datasets._files", "sha256")),
        lambda: archive({"schema.json": "{}"}),
        lambda: archive({**parts(), "schema.json": "{}"}),
    ],
    ids=["model", "type", "partial", "empty", "both"],
)
def test_models_of_earlier_versions_are_to_be_fitted_again(tmp_path, make):
    with pytest.raises(
        DataError, match=r"m\.npz: a skops archive, .* again with 'fitzpatrick fit'"
    ):
        load_bytes(tmp_path, make())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_never_loaded(tmp_path, protocol):
    content = pickle.dumps(Mark(tmp_path / "mark"), protocol)
    pickle.loads(content)
    assert (tmp_path / "mark").exists()
    (tmp_path / "mark").unlink()
    reason = "a pickle, which could run code and is never loaded" if protocol > 1 else "not a NumPy"
    with pytest.raises(DataError, match=rf"not a model that fitzpatrick saved \({reason}"):
        load_bytes(tmp_path, content, "m.pkl")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("name", ENTRIES[1:])
def test_arrays_of_objects_are_never_loaded(tmp_path, name):
    objects = np.asarray([[Mark(tmp_path / "mark")] * 3] * 2, dtype=object)
    content = archive_with(name, npy(objects, allow_pickle=True))
    with pytest.raises(DataError, match=rf"\({name[:-4]} is of type object, expected float64\)"):
        load_bytes(tmp_path, content)
    with zipfile.ZipFile(tmp_path / "m.npz") as file:
        np.lib.format.read_array(file.open(name), allow_pickle=True)  # it is a real attack
    assert (tmp_path / "mark").exists()


def check_refused(folder, content, reason):
    """One line, of a length that can be read, without what a terminal would obey."""
    with pytest.raises(DataError) as caught:
        load_bytes(folder, content)
    message = str(caught.value).removeprefix(f"{folder}/")
    assert re.fullmatch(rf"m\.npz: not a model that fitzpatrick saved \(.*({reason}).*\)", message)
    assert message.isprintable()
    assert len(message) < 300


def test_the_attacks_start_from_a_valid_file(tmp_path):
    content = archive(parts())
    model = load_bytes(tmp_path, content)
    np.testing.assert_array_equal(model.estimator.coef_, COEF)
    np.testing.assert_array_equal(model.estimator.intercept_, INTERCEPT)
    assert (model.estimator.n_iter_, model.columns.to_json()) == (7, COLUMNS)
    numbered = load_bytes(tmp_path, archive(parts(columns=Columns(n_numbered=3).to_json())))
    assert numbered.columns.feature_names == ("feature_1", "feature_2", "feature_3")
    model_files.save(model, tmp_path / "again.npz")
    with zipfile.ZipFile(tmp_path / "again.npz") as file:
        assert json.loads(file.read("model.json")) == DESCRIPTION
        assert [file.read(name) for name in ENTRIES[1:]] == list(parts().values())[1:]


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_that_are_refused(tmp_path, case):
    make, reason = ARCHIVES[case]
    check_refused(tmp_path, make(), reason)


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_are_refused(tmp_path, case):
    content, reason = ARRAYS[case]
    check_refused(tmp_path, archive_with("coef.npy", content), reason)


@pytest.mark.parametrize("case", TEXTS)
def test_texts_that_are_refused(tmp_path, case):
    content, reason = TEXTS[case]
    check_refused(tmp_path, archive_with("model.json", content), reason)


@pytest.mark.parametrize(("key", "value", "reason"), FIELDS)
def test_fields_that_are_refused(tmp_path, key, value, reason):
    check_refused(tmp_path, archive(parts(**{key: value})), reason)


@pytest.mark.parametrize("key", DESCRIPTION)
def test_no_field_may_be_missing(tmp_path, key):
    content = parts()
    content["model.json"] = json.dumps({k: v for k, v in DESCRIPTION.items() if k != key}).encode()
    reasons = {"format": "does not describe a model", "version": "its format has the version null"}
    check_refused(tmp_path, archive(content), reasons.get(key, f"{key} is missing"))


@pytest.mark.parametrize("intercept", [np.zeros(3), np.zeros((2, 1)), np.asarray(0.0)])
def test_intercepts_of_another_shape(tmp_path, intercept):
    content = archive_with("intercept.npy", npy(intercept))
    check_refused(tmp_path, content, r"intercepts \(.*\) for 2 targets")


def peak_of_loading(path):
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            model_files.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "case",
    ["huge", *(name for name in ARCHIVES if re.match("bomb|many|.* too (long|large)", name))],
)
def test_small_files_take_little_memory(tmp_path, case):
    is_array = case in ARRAYS
    content = archive_with("coef.npy", ARRAYS[case][0]) if is_array else ARCHIVES[case][0]()
    assert len(content) < 1 << 18
    (tmp_path / "m.npz").write_bytes(content)
    assert peak_of_loading(tmp_path / "m.npz") < 1 << 20


def test_files_with_holes_are_not_read(tmp_path):
    """A file of gigabytes that takes no room on the disk."""
    with (tmp_path / "m.npz").open("wb") as file:
        file.write(archive(parts()))
        file.truncate(8 << 30)
    assert peak_of_loading(tmp_path / "m.npz") < 1 << 20


def test_bounds_are_checked_before_the_arrays_are_read(tmp_path, monkeypatch):
    def read(*_):
        raise AssertionError("read")

    monkeypatch.setattr(Archive, "array", read)
    wide = parts(columns=Columns(n_numbered=50).to_json())
    wide["coef.npy"] = npy(np.zeros((2, 50)))
    for limit, value in (("MAX_COEFFICIENTS", 99), ("MAX_FEATURES", 49)):
        with monkeypatch.context() as patch:
            patch.setattr(model_files, limit, value)
            check_refused(tmp_path, archive(wide), r"coefficients \(2, 50\) are more than")
    check_refused(tmp_path, archive(wide), "read")  # within the bounds
    check_refused(tmp_path, archive(parts(target_names=["a"])), "for 1 target")


def test_the_text_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(model_archive, "MAX_TEXT_BYTES", 100)
    check_refused(tmp_path, archive(parts()), r"model\.json takes \d+ bytes, more than 100")


def test_files_cut_short(tmp_path):
    content = archive(parts())
    for length in {*range(0, len(content), 5), *range(len(content) - 50, len(content))}:
        with pytest.raises(DataError, match="not a model that fitzpatrick saved"):
            load_bytes(tmp_path, content[:length])


def test_changed_bytes_are_noticed_or_do_not_matter(tmp_path):
    """The numbers and the text are protected by checksums, so a model that loads is the same."""
    content = archive(parts())
    expected = load_bytes(tmp_path, content)
    generator = np.random.default_rng(3)
    refused = 0
    for position, bits in zip(
        generator.choice(len(content), 300, replace=False),
        generator.integers(1, 256, 300),
        strict=True,
    ):
        changed = bytearray(content)
        changed[position] ^= int(bits)
        try:
            model = load_bytes(tmp_path, bytes(changed))
        except DataError:
            refused += 1
            continue
        np.testing.assert_array_equal(model.estimator.coef_, expected.estimator.coef_)
        np.testing.assert_array_equal(model.estimator.intercept_, expected.estimator.intercept_)
        assert model.estimator.get_params() == expected.estimator.get_params()
        assert model.columns == expected.columns
    assert refused > 200


def test_changed_bytes_of_the_content_are_always_noticed(tmp_path):
    content = archive(parts())
    for value in parts().values():
        start = content.index(value)
        for position in range(start, start + len(value), 5):
            changed = bytearray(content)
            changed[position] ^= 1
            with pytest.raises(DataError, match="not a model that fitzpatrick saved"):
                load_bytes(tmp_path, bytes(changed))


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("junk", b"junk", "junk: not a model that fitzpatrick saved (not a NumPy archive)"),
        ("none.npz", None, "none.npz: no such file"),
        ("folder", "folder", "folder: a folder; expected a model file"),
        ("/dev/null", None, "/dev/null: not a regular file; expected a model file"),
        ("x" * 300, None, f"{'x' * 300}: cannot be read: File name too long"),
        (
            "nan.npz",
            archive_with("coef.npy", ARRAYS["nan"][0]),
            "nan.npz: not a model that fitzpatrick saved (not all of its coefficients are finite)",
        ),
    ],
    ids=["junk", "missing", "folder", "device", "name", "nan"],
)
def test_predict_ends_in_one_line(run, tmp_path, monkeypatch, name, content, line):
    monkeypatch.chdir(tmp_path)
    if content == "folder":
        Path(name).mkdir()
    elif content is not None:
        Path(name).write_bytes(content)
    assert run("predict", name, "x.csv") == (2, "", f"error: {line}\n")


def test_loading_imports_nothing(tmp_path):
    """Neither a model nor a file that is refused makes a module be imported."""
    model, _ = fitted()
    model_files.save(model, tmp_path / "model.npz")
    (tmp_path / "changed.npz").write_bytes(archive_with("coef.npy", ARRAYS["long shape"][0]))
    for attack in OLD_ATTACKS:
        content = skops_archive(attack(tmp_path))
        (tmp_path / f"{attack.__name__}.npz").write_bytes(content)
    code = """
        import sys
        from pathlib import Path
        from fitzpatrick.datasets import DataError
        from fitzpatrick.experiments import model_files

        sys.path.insert(0, ".")
        before = set(sys.modules)
        loaded = refused = 0
        for path in sorted(Path().glob("*.npz")):
            try:
                model_files.load(path)
                loaded += 1
            except DataError:
                refused += 1
        # zipfile decodes the names of entries with it
        print(loaded, refused, sys.modules.keys() - before - {"encodings.cp437"})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.stdout, done.stderr) == ("1 4 set()\n", "")
    assert not (tmp_path / "mark").exists()
