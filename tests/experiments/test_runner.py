"""Durable fits: nothing is lost, nothing repeated, whatever the moment of the interruption."""

import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick.datasets import DataError
from fitzpatrick.experiments import runner
from fitzpatrick.experiments.errors import WorkerError
from fitzpatrick.experiments.protocol import (
    Experiment,
    FitPath,
    LossChoice,
    Protocol,
    at_tightnesses,
    dev_split,
    paths,
)
from fitzpatrick.experiments.records import Record, Store, all_records, choose, final_models
from fitzpatrick.experiments.runner import run, run_path
from fitzpatrick.linear_model import ProportionRegressor

from .conftest import make_experiment

PROTOCOL = Protocol(alphas=(10.0, 1.0, 0.1, 0.01))
PATHS = paths(at_tightnesses(("logistic", "fitzpatrick_sparsemax")), 2, refit=True)


class Killed(BaseException):
    pass


def ignore(_):
    """A run that reports to nobody."""


def make_store(folder, experiment, protocol=PROTOCOL):
    return Store.of(folder, experiment, protocol)


def contents(store, paths=PATHS):
    """Every record but for its time, and the checksum that includes it."""
    found = {path.name: [] for path in paths}
    for path, records in all_records(store, paths).items():
        for record in records:
            fields = json.loads(record.to_json())
            del fields["seconds"], fields["sha256"]
            found[path.name].append(fields)
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    experiment = make_experiment()
    store = make_store(tmp_path_factory.mktemp("undisturbed"), experiment)
    run(experiment, store, PATHS, 1, ignore)
    return contents(store)


def test_record_survives_the_disk():
    record = Record(
        0.1,
        math.nan,
        np.float32([0.5, 0.25]),
        0.75,
        math.inf,
        0.0,
        1.0,
        1e-9,
        3,
        "fine",
        True,
        0.5,
        "NumPy",
    )
    again = Record.from_json(record.to_json())
    assert again.test_error == 0.375
    np.testing.assert_array_equal(again.test_errors, record.test_errors)
    assert again.to_json() == record.to_json()


@pytest.mark.parametrize("tightness", [None, 0.5])
@pytest.mark.parametrize("scaling", ["standardize", "none"])
@pytest.mark.parametrize("intercept", [True, False])
def test_fits_are_those_of_the_estimator(tmp_path, experiment, scaling, intercept, tightness):
    experiment = replace(experiment, X=5 * experiment.X + 1, X_test=5 * experiment.X_test + 1)
    protocol = Protocol(alphas=(10.0,), intercept=intercept, scaling=scaling, tol=1e-8)
    store = make_store(tmp_path, experiment, protocol)
    path = FitPath(LossChoice("fitzpatrick_logistic", tightness), 0)
    run(experiment, store, [path], 1, ignore)
    (record,) = store.finished(path)
    fit, dev = dev_split(60, 0)
    model = ProportionRegressor(
        "fitzpatrick_logistic",
        10.0,
        tightness=tightness,
        fit_intercept=intercept,
        standardize=scaling == "standardize",
        tol=1e-8,
    ).fit(experiment.X[fit], experiment.Y[fit])
    errors = np.square(model.predict(experiment.X[dev]) - experiment.Y[dev]).sum(axis=1)
    assert record.dev_error == pytest.approx(errors.mean(), rel=1e-7)
    errors = np.square(model.predict(experiment.X_test) - experiment.Y_test).sum(axis=1)
    np.testing.assert_allclose(record.test_errors, errors, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("moment", [1, 4, 5, 16, 23])
def test_interrupted_after_any_fit(tmp_path, experiment, undisturbed, moment):
    store = make_store(tmp_path / "run", experiment)
    done = []

    def kill_at(count):
        done.append(count)
        if count == moment:
            raise Killed

    with pytest.raises(Killed):
        run(experiment, store, PATHS, 1, kill_at)
    assert store.count(PATHS) == moment
    before = {file: file.stat().st_mtime_ns for file in store.folder.rglob("*.json")}
    run(experiment, store, PATHS, 1, ignore)
    assert contents(store) == undisturbed
    assert {file: file.stat().st_mtime_ns for file in before} == before  # none was fitted again
    assert not list(store.folder.rglob("*.npz"))  # states go once a path is complete
    assert not list(store.folder.rglob("*.part"))


@pytest.mark.parametrize("written", ["state", "record"])
def test_killed_between_state_and_record(tmp_path, experiment, undisturbed, monkeypatch, written):
    store = make_store(tmp_path / "run", experiment)
    path, original = PATHS[0], Store.discard_states

    def kill(self, *args):
        if self.count([path]) == 2:
            raise Killed
        original(self, *args)

    monkeypatch.setattr(Store, "discard_states", kill)
    with pytest.raises(Killed):
        run_path(experiment, store, path, lambda: None)
    monkeypatch.undo()
    assert store.state(path, 1) is not None
    if written == "state":  # the kill came before the record of the second fit
        (store.folder / path.name / "01.json").unlink()
    run(experiment, store, PATHS, 1, ignore)
    assert contents(store) == undisturbed


def test_lost_state_means_the_path_is_walked_again(tmp_path, experiment, undisturbed):
    store = make_store(tmp_path / "run", experiment)

    def stop():
        raise Killed

    with pytest.raises(Killed):
        run_path(experiment, store, PATHS[0], stop)
    next(store.folder.rglob("*.npz")).unlink()
    run(experiment, store, PATHS, 1, ignore)
    assert contents(store) == undisturbed


def test_several_processes_give_the_same_records(tmp_path, experiment, undisturbed):
    store = make_store(tmp_path / "run", experiment)
    counts = []
    run(experiment, store, PATHS, 2, counts.append)
    assert counts[0] == 0
    assert counts[-1] == 24
    assert contents(store) == undisturbed


def test_finished_runs_fit_nothing(tmp_path, experiment, monkeypatch):
    store = make_store(tmp_path, experiment)
    run(experiment, store, PATHS, 1, ignore)
    monkeypatch.setattr(runner, "fit_path", lambda *_, **__: pytest.fail("fitted again"))
    counts = []
    run(experiment, store, PATHS, 1, counts.append)
    assert counts == [24]


def test_other_settings_have_other_records(tmp_path, experiment):
    first = make_store(tmp_path, experiment)
    second = make_store(tmp_path, experiment, Protocol(alphas=(10.0,)))
    assert first.folder != second.folder
    assert json.loads((first.folder / "settings.json").read_text())["alphas"] == [10, 1, 0.1, 0.01]


def test_data_are_part_of_the_key(tmp_path, experiment):
    """The same file with other targets, or other rows to test, is another experiment."""
    others = [
        replace(experiment, Y=experiment.Y[:, ::-1]),
        replace(experiment, Y_test=experiment.Y_test[:, ::-1]),
        replace(experiment, X=sparse.csr_array(experiment.X)),
        replace(experiment, X=sparse.csr_array(2 * experiment.X)),
    ]
    stores = {make_store(tmp_path, other).folder for other in [experiment, *others]}
    assert len(stores) == 5
    assert make_store(tmp_path, replace(experiment)).folder in stores


def test_refit_adds_fits_and_repeats_none(tmp_path, experiment):
    protocol = Protocol(alphas=(1.0, 0.1), tol=1e-8)
    losses = at_tightnesses(("sparsemax", "logistic"))
    plain = make_store(tmp_path, experiment, protocol)
    run(experiment, plain, paths(losses, 2, refit=False), 1, ignore)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert len(before) == 1 + 2 * 2 * 2
    refitted = make_store(tmp_path, experiment, replace(protocol, refit=True))
    run(experiment, refitted, paths(losses, 2, refit=True), 1, ignore)
    after = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    assert before.items() <= after.items()
    assert len(after) == len(before) + 2 * 2


def test_final_model_is_fitted_to_train_and_dev(tmp_path, experiment):
    store = make_store(tmp_path, experiment, Protocol(alphas=(1.0, 0.1), tol=1e-8))
    wanted = paths(at_tightnesses(("sparsemax",)), 2, refit=True)
    run(experiment, store, wanted, 1, ignore)
    found = final_models(all_records(store, wanted))
    assert [path.seed for path in found] == [0, 1]
    for records in found.values():
        chosen = choose(records.grid)
        assert (records.final.alpha, records.final.dev_error) == (chosen.alpha, chosen.dev_error)
        model = ProportionRegressor(
            "sparsemax", chosen.alpha, fit_intercept=False, standardize=True, tol=1e-8
        ).fit(experiment.X, experiment.Y)
        errors = np.square(model.predict(experiment.X_test) - experiment.Y_test).sum(axis=1)
        np.testing.assert_allclose(records.final.test_errors, errors, rtol=1e-5, atol=1e-6)
        assert records.final.test_error != chosen.test_error


def test_without_refit_the_chosen_fit_is_final(tmp_path, experiment):
    store = make_store(tmp_path, experiment, Protocol(alphas=(1.0, 0.1)))
    path = FitPath(LossChoice("sparsemax"), 1)
    run(experiment, store, [path], 1, ignore)
    records = final_models(all_records(store, [path]))[path]
    assert store.count([path]) == 2
    assert records.final is choose(records.grid)


@pytest.mark.parametrize("loss", ["sparsemax", "fitzpatrick_sparsemax", "logistic"])
def test_weak_penalties_on_separable_data_are_fitted_to_the_end(tmp_path, loss):
    """From zero or along the grid: the same test error, to three digits."""
    generator = np.random.default_rng(3)
    X = generator.normal(size=(60, 150))
    Y = np.eye(4)[(X @ generator.normal(size=(150, 4))).argmax(axis=1)]
    wide = Experiment("wide", X[:40], Y[:40], X[40:], Y[40:], {})
    errors = []
    for alphas in ((100.0, 10.0, 1.0, 0.1, 0.01, 1e-3), (1e-3,)):
        store = make_store(tmp_path, wide, Protocol(alphas=alphas))
        run(wide, store, [FitPath(LossChoice(loss), None)], 1, ignore)
        errors.append(store.finished(FitPath(LossChoice(loss), None))[-1].test_error)
    assert errors[0] == pytest.approx(errors[1], abs=1e-3)


def test_device_gives_the_records_of_numpy(tmp_path, experiment):
    pytest.importorskip("torch")
    protocol = Protocol(alphas=(10.0, 1.0, 0.1), tol=1e-8, intercept=True)
    by_numpy = make_store(tmp_path, experiment, protocol)
    by_torch = make_store(tmp_path, experiment, replace(protocol, device="cpu"))
    assert by_numpy.folder != by_torch.folder
    run(experiment, by_numpy, PATHS[:2], 1, ignore)
    run(experiment, by_torch, PATHS[:1], 1, ignore)
    run(experiment, by_torch, PATHS[:2], 2, ignore)  # in a worker
    for path in PATHS[:2]:
        for expected, found in zip(by_numpy.finished(path), by_torch.finished(path), strict=True):
            assert (expected.device, found.device) == ("NumPy", "PyTorch cpu")
            assert found.objective == pytest.approx(expected.objective, rel=1e-10)
            np.testing.assert_allclose(found.test_errors, expected.test_errors, atol=1e-6)


def test_unfinished_paths_are_no_results(tmp_path, experiment):
    with pytest.raises(RuntimeError, match="is not finished"):
        all_records(make_store(tmp_path, experiment), PATHS)


@pytest.mark.parametrize("kind", ["record", "state"])
def test_damaged_files_are_named(tmp_path, experiment, kind):
    store = make_store(tmp_path, experiment)

    def stop():
        raise Killed

    with pytest.raises(Killed):
        run_path(experiment, store, PATHS[0], stop)
    file = next(store.folder.rglob("00.json" if kind == "record" else "*.npz"))
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match="is damaged; delete it") as caught:
        # from a worker, or from here
        run(experiment, store, PATHS[:1], 2 if kind == "record" else 1, ignore)
    assert caught.value.path == file
    file.unlink()
    run(experiment, store, PATHS, 1, ignore)
    assert store.count(PATHS) == 24


def test_killed_worker_is_said_in_one_sentence(tmp_path, experiment):
    store = make_store(tmp_path, experiment)
    others = set(multiprocessing.active_children())  # such as joblib's

    def kill_a_worker(_):
        for process in set(multiprocessing.active_children()) - others:
            process.kill()

    with pytest.raises(WorkerError, match=r"a worker process was killed, .* the same command"):
        run(
            experiment,
            store,
            paths(at_tightnesses(("logistic",)), 40, refit=False),
            2,
            kill_a_worker,
        )


SLOW = """
import signal
import sys
from pathlib import Path

import numpy as np

from fitzpatrick.experiments.protocol import Experiment, Protocol, at_tightnesses, paths
from fitzpatrick.experiments.records import Store
from fitzpatrick.experiments.runner import run

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    X = np.random.default_rng(0).normal(size=(2000, 60))
    Y = np.random.default_rng(1).dirichlet(np.ones(12), size=2000)
    experiment = Experiment("slow", X, Y, X[:9], Y[:9], {})
    store = Store.of(Path(sys.argv[1]), experiment, Protocol(tol=1e-13))
    try:
        print("begin", flush=True)
        wanted = paths(at_tightnesses(("logistic",)), 40, refit=False)
        run(experiment, store, wanted, 2, lambda _: None)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_interrupt_while_workers_start_ends_without_a_traceback(tmp_path):
    """For an interrupt of workers at work, see the tests of the command line."""
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, script, tmp_path / "out"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "begin\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
