"""Fits on record: whole paths or none, never fitted twice, the same in every process."""

import contextlib
import gc
import itertools
import math
import os
import random
import signal
import sqlite3
import sys
import warnings
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick import metrics
from fitzpatrick.datasets import DataError
from fitzpatrick.experiments import records, runner
from fitzpatrick.experiments.protocol import (
    FitPath,
    LossChoice,
    Protocol,
    at_tightnesses,
    dev_split,
    paths,
)
from fitzpatrick.experiments.records import (
    FILE_NAME,
    Record,
    Store,
    choose,
    final_models,
    from_json,
    to_json,
)
from fitzpatrick.experiments.runner import RunOptions, run, run_experiment
from fitzpatrick.experiments.summary import evaluate
from fitzpatrick.linear_model import ProportionRegressor

from .conftest import make_experiment

PROTOCOL = Protocol(alphas=(10.0, 1.0, 0.1, 0.01))
PATHS = paths(at_tightnesses(("logistic", "fitzpatrick_sparsemax")), 2, refit=True)


class Killed(BaseException):
    pass


def fit(folder, experiment, protocol=PROTOCOL, wanted=PATHS, n_jobs=1):
    return run(experiment, protocol, folder, wanted, n_jobs)


def contents(records):
    """Every record but for its time; as text, in which NaN equals NaN."""
    return {
        path: to_json([replace(record, seconds=0.0) for record in grid])
        for path, grid in records.items()
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return contents(fit(tmp_path_factory.mktemp("undisturbed"), make_experiment()))


def rows_of(store):
    """What is stored of each path, times included."""
    with contextlib.closing(sqlite3.connect(store.file)) as connection:
        return dict(connection.execute("SELECT path, records FROM paths"))


def a_record(**changes):
    record = Record(0.1, 0.5, np.float32([0.1, 0.7]), 0.75, 0.7, 0.0, 3, True, 0.5, "NumPy")
    return replace(record, **changes)


@pytest.mark.parametrize(
    "changes",
    [{}, {"dev_error": math.nan, "log_loss": math.inf}, {"converged": False, "seconds": 0.0}],
)
def test_records_survive_the_disk(tmp_path, experiment, changes):
    store, path = Store.of(tmp_path, experiment, PROTOCOL), PATHS[0]
    assert store.read() == {}
    store.add(path, [a_record(**changes), a_record(setting=0.01)])
    first, second = Store.of(tmp_path, experiment, PROTOCOL).read()[path.name]
    for name, value in vars(a_record(**changes)).items():
        np.testing.assert_array_equal(getattr(first, name), value, strict=True)
    assert (first.test_error, second.setting) == (pytest.approx(0.4), 0.01)


@pytest.mark.parametrize("tightness", [None, 0.5])
@pytest.mark.parametrize("scaling", ["standardize", "none"])
@pytest.mark.parametrize("intercept", [True, False])
def test_fits_are_those_of_the_estimator(tmp_path, experiment, scaling, intercept, tightness):
    experiment = replace(experiment, X=5 * experiment.X + 1, X_test=5 * experiment.X_test + 1)
    protocol = Protocol(alphas=(10.0,), intercept=intercept, scaling=scaling, tol=1e-8)
    path = FitPath(LossChoice("fitzpatrick_logistic", tightness), 0)
    [record] = fit(tmp_path, experiment, protocol, [path])[path]
    rows, dev = dev_split(60, 0)
    model = ProportionRegressor(
        "fitzpatrick_logistic",
        10.0,
        tightness=tightness,
        fit_intercept=intercept,
        standardize=scaling == "standardize",
        tol=1e-8,
    ).fit(experiment.X[rows], experiment.Y[rows])
    errors = np.square(model.predict(experiment.X[dev]) - experiment.Y[dev]).sum(axis=1)
    assert record.dev_error == pytest.approx(errors.mean(), rel=1e-7)
    errors = np.square(model.predict(experiment.X_test) - experiment.Y_test).sum(axis=1)
    np.testing.assert_allclose(record.test_errors, errors, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("choice", [("fitzpatrick_logistic", 2.0), ("sparsemax",), ("sigmoid",)])
@pytest.mark.parametrize("has_classes", [True, False])
def test_what_a_record_says_of_the_predictions(tmp_path, experiment, choice, has_classes):
    """The log loss is of probabilities where targets are classes, and else of the predictions."""
    experiment.Y_test[0] = 0, 1, 0  # a single row with one class is not yet a table of classes
    if has_classes:
        Y, Y_test = (np.eye(3)[one.argmax(axis=1)] for one in (experiment.Y, experiment.Y_test))
        experiment = replace(experiment, Y=Y, Y_test=Y_test)
    path, protocol = FitPath(LossChoice(*choice), None), Protocol(alphas=(0.3,))
    [record] = fit(tmp_path, experiment, protocol, [path])[path]
    X, X_test = experiment.X, experiment.X_test
    targets = (experiment.Y > 0).astype(float) if choice == ("sigmoid",) else experiment.Y
    how = {"tightness": path.loss.tightness, "fit_intercept": False, "standardize": True}
    model = ProportionRegressor(choice[0], 0.3, tol=1e-8, **how).fit(X, targets)
    shares = np.asarray(model.predict(X_test))
    shares = shares / shares.sum(axis=1, keepdims=True)
    judged = shares
    if has_classes and choice != ("sigmoid",):
        judged = path.loss.loss.probabilities(model.predict_scores(X_test))
    Y_test, rows = experiment.Y_test, np.arange(len(X_test))
    assert record.log_loss == pytest.approx(metrics.log_loss(Y_test, judged), rel=1e-5)
    best = Y_test[rows, shares.argmax(axis=1)] == Y_test.max(axis=1)
    assert record.accuracy == best.mean()
    assert record.zeros == pytest.approx((shares == 0).mean())
    assert (record.zeros > 0) == (choice == ("sparsemax",))


@pytest.mark.parametrize("moment", [0, 1, 5])
def test_interrupted_after_any_path(tmp_path, experiment, monkeypatch, moment):
    """While settings are chosen, and once the chosen ones are fitted to train and dev together."""
    protocol = Protocol(alphas=PROTOCOL.alphas, refit=True, refine=True, whole_grid=False)
    add, fitted = Store.add, []

    def fit_all(folder):
        losses = at_tightnesses(("logistic", "fitzpatrick_sparsemax"))
        return contents(run_experiment(experiment, RunOptions(losses, protocol, 2, 1, folder)))

    def kill(store, path, records):
        if len(fitted) == moment:
            raise Killed
        fitted.append(path.name)
        add(store, path, records)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "add", kill)
        with pytest.raises(Killed):
            fit_all(tmp_path)
    store = Store.of(tmp_path, experiment, protocol)
    before = rows_of(store)
    assert sorted(before) == sorted(fitted)
    found = fit_all(tmp_path)
    assert len(found) == 6
    assert found == fit_all(tmp_path / "undisturbed")
    assert before.items() <= rows_of(store).items()  # none was fitted again


def test_the_time_of_a_fit_begins_where_the_one_before_has_ended(tmp_path, experiment, monkeypatch):
    clock = SimpleNamespace(perf_counter=itertools.count().__next__)
    monkeypatch.setattr(runner, "time", clock)
    for grid in fit(tmp_path, experiment).values():
        assert [record.seconds for record in grid] == [1] * len(PROTOCOL.alphas)


def test_work_that_is_interrupted_ends_without_a_warning(tmp_path, experiment, monkeypatch):
    def kill(*_):
        raise Killed

    monkeypatch.setattr(Store, "add", kill)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with contextlib.suppress(Killed):
            fit(tmp_path, experiment, n_jobs=2)
        gc.collect()
    assert said == []


def test_workers_and_devices_give_the_same_records(tmp_path, experiment, undisturbed):
    assert contents(fit(tmp_path, experiment, n_jobs=2)) == undisturbed
    if os.name == "posix":  # only the workers are without Ctrl-C
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    pytest.importorskip("torch")
    protocol = replace(PROTOCOL, device="cpu")
    by_torch = fit(tmp_path / "torch", experiment, protocol, PATHS[:2])
    for path, grid in by_torch.items():
        for expected, found in zip(from_json(undisturbed[path]), grid, strict=True):
            assert (expected.device, found.device) == ("NumPy", "PyTorch cpu")
            # both end at 1e-8 of the gradient
            np.testing.assert_allclose(found.test_errors, expected.test_errors, atol=1e-6)


def test_settings_and_data_are_part_of_the_key(tmp_path, experiment):
    """A file with other targets, other features or other rows to test is another experiment."""
    rows = sparse.csr_array(experiment.X)
    others = [
        replace(experiment, X=sparse.csr_array((rows.data, 4 - rows.indices, rows.indptr))),
        replace(experiment, Y=experiment.Y[:, ::-1]),
        replace(experiment, X_test=2 * experiment.X_test),
        replace(experiment, Y_test=experiment.Y_test[:, ::-1]),
        replace(experiment, X=rows),
        replace(experiment, X=2 * rows),
        *(
            replace(experiment, X=np.zeros((60, d), t))
            for d, t in ((4, "f4"), (2, "f8"), (8, "f2"))
        ),
    ]
    runs = {Store.of(tmp_path, other, PROTOCOL).run for other in [experiment, *others]}
    runs |= {Store.of(tmp_path, experiment, Protocol(alphas=(10.0,))).run}
    assert len(runs) == 11
    assert Store.of(tmp_path, replace(experiment), PROTOCOL).run in runs


def test_final_model_is_fitted_to_train_and_dev(tmp_path, experiment):
    """A refit adds fits and repeats none; without one the chosen fit is final."""
    protocol = Protocol(alphas=(1.0, 0.1), tol=1e-8)
    losses = at_tightnesses(("sparsemax",))
    before = fit(tmp_path, experiment, protocol, paths(losses, 2, refit=False))
    for path, final in final_models(before).items():
        assert final is choose(before[path])
    wanted = paths(losses, 2, refit=True)
    after = fit(tmp_path, experiment, replace(protocol, refit=True), wanted)
    assert len(after) == len(before) + 1
    found = final_models(after)
    assert [path.seed for path in found] == [0, 1]
    for path, final in found.items():
        assert [one.seconds for one in after[path]] == [one.seconds for one in before[path]]
        chosen = choose(after[path])
        assert (final.setting, final.dev_error) == (chosen.setting, chosen.dev_error)
        model = ProportionRegressor(
            "sparsemax", chosen.setting, fit_intercept=False, standardize=True, tol=1e-8
        ).fit(experiment.X, experiment.Y)
        errors = np.square(model.predict(experiment.X_test) - experiment.Y_test).sum(axis=1)
        np.testing.assert_allclose(final.test_errors, errors, rtol=1e-5, atol=1e-6)
        assert final.test_error != chosen.test_error
    (summary,) = evaluate(after, protocol).summaries
    assert summary.errors.tolist() == [final.test_error for final in found.values()]
    assert summary.fits == 6  # those of both seeds, and what was fitted again


def test_records_of_another_version_are_not_called_damaged(tmp_path, experiment):
    store = Store.of(tmp_path, experiment, PROTOCOL)
    with contextlib.closing(sqlite3.connect(store.file)) as connection, connection:
        connection.execute("DROP TABLE paths")
    with pytest.raises(DataError, match="another version of fitzpatrick; move it"):
        store.read()


def test_records_that_another_process_holds_are_not_called_damaged(
    tmp_path, experiment, monkeypatch
):
    monkeypatch.setattr(records, "_WAIT_SECONDS", 0)
    store = Store.of(tmp_path, experiment, PROTOCOL)
    with contextlib.closing(sqlite3.connect(store.file)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match=r"the records cannot be kept here: database is locked"):
            store.add(PATHS[0], [a_record()])
    store.add(PATHS[0], [a_record()])


@pytest.mark.parametrize("column", ["path", "sha256", "records", "run"])
def test_changed_rows_are_refused(tmp_path, experiment, column):
    """Whether the content has changed or its place."""
    store = Store.of(tmp_path, experiment, PROTOCOL)
    for change in (f"{column} || ' '", "7", "NULL", "x'ff'")[: 1 if column == "run" else 4]:
        store.add(PATHS[0], [a_record(), a_record(setting=0.01)])
        with contextlib.closing(sqlite3.connect(store.file)) as connection, connection:
            connection.execute(f"UPDATE paths SET {column} = {change}")
        read = replace(store, run=f"{store.run} ") if column == "run" else store
        with pytest.raises(
            DataError, match=r"records\.sqlite: is damaged; delete it, and its fits"
        ):
            read.read()
        with contextlib.closing(sqlite3.connect(store.file)) as connection, connection:
            connection.execute("DELETE FROM paths")


def test_damaged_files_are_refused_or_give_the_same_records(tmp_path, experiment, undisturbed):
    """Bytes that were changed, cut off or added, wherever they are."""
    fit(tmp_path, experiment)
    file, draw = tmp_path / FILE_NAME, random.Random(4)
    content, said = file.read_bytes(), []
    cases = [b"", b"junk", b"\xff" * 5000, *(content[:at] for at in (100, len(content) // 2, -1))]
    for _ in range(60):
        changed = bytearray(content)
        at = draw.randrange(len(changed))
        changed[at : at + draw.choice((1, 1, 4, 100))] = draw.randbytes(draw.choice((1, 4, 100)))
        cases.append(bytes(changed))
    for case in cases:
        file.write_bytes(case)
        try:
            found = contents(fit(tmp_path, experiment))
        except DataError as error:
            said.append(str(error))
        else:
            assert found == undisturbed
    assert len(said) > 20
    assert set(said) == {f"{file}: is damaged; delete it, and its fits are run again"}


def test_killed_workers_are_noticed(tmp_path, experiment, monkeypatch):
    monkeypatch.setattr(runner, "fit_and_score", kill_this_process)
    with pytest.raises(BrokenExecutor):
        fit(tmp_path, experiment, n_jobs=2)


def kill_this_process(*_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def reproduce(run, monkeypatch, tmp_path):
    """Call the command on yeast."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    options = ("--seeds", 2, "--losses", "logistic", "--alphas", "1e3")
    return lambda *more: run("reproduce", *options, *more)


def test_the_table_of_a_device_is_that_of_numpy(reproduce, tmp_path):
    pytest.importorskip("torch")
    assert reproduce("-j", 1)[:2] == reproduce("--device", "cpu")[:2]
    assert "PyTorch cpu" in (tmp_path / "out" / "fits.csv").read_text()
    assert "PyTorch on cpu" in (tmp_path / "out" / "report.html").read_text()


def test_a_device_that_is_not_there(reproduce, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    code, _, errors = reproduce("--device", "abacus")
    said = "error: --device: PyTorch cannot use the device 'abacus' here: "
    assert (code, errors.count("\n"), errors[: len(said)]) == (2, 1, said)
    monkeypatch.setitem(sys.modules, "torch", None)
    said = "error: --device needs PyTorch: pip install 'fitzpatrick[torch]'\n"
    assert reproduce("--device", "cpu")[::2] == (2, said)
    assert not (tmp_path / "out").exists()
