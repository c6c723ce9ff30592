"""Workers: what they run, what they hand to one another, and what is left when one is killed."""

import logging
import os
import signal
from collections import Counter
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from dask.utils import key_split
from distributed import Client, LocalCluster
from distributed.protocol import pickle
from distributed.utils import get_mp_context

from fitzpatrick import linear_model
from fitzpatrick.dask import ChunkError, FitzpatrickClassifier
from fitzpatrick.dask._rounds import Rounds
from tests.helpers import seeded
from tests.linear_model.data import features, penalty_path, targets

from .data import assert_same_model, chunked, unreadable

X = features(300)
LABELS = targets("fitzpatrick_logistic", X).argmax(axis=1)


def test_a_cluster_in_this_process(cluster) -> None:
    rows, y = chunked(X, 100), chunked(LABELS, 100)
    expected = linear_model.FitzpatrickClassifier("logistic", 30.0).fit(X, LABELS)
    model = FitzpatrickClassifier("logistic", 30.0).fit(rows, y)
    assert_same_model(model, expected)
    np.testing.assert_array_equal(model.predict(rows).compute(), expected.predict(X))
    gap = X.copy()
    gap[207, 1] = np.nan
    with pytest.raises(ChunkError, match="chunk 2: Input X contains NaN in row 7, column 1"):
        model.fit(chunked(gap, 100), y)
    with pytest.raises(ChunkError, match="chunk 1 of X cannot be read: OSError: the disk is gone"):
        model.fit(unreadable(rows), y)


def test_tasks_have_names_that_can_be_read(monkeypatch) -> None:
    names: Counter[str] = Counter()
    task_of = Rounds._task

    def spied(self, *args):
        task = task_of(self, *args)
        names[key_split(task.key)] += 1
        return task

    monkeypatch.setattr(Rounds, "_task", spied)
    FitzpatrickClassifier("logistic", 30.0).fit(chunked(X, 100), chunked(LABELS, 100))
    for task in ("check", "design", "bind", "scores", "gradient", "hessian", "product", "merge"):
        assert f"fitzpatrick-{task}" in names
    # Hessians are of scores that the workers have
    assert names["fitzpatrick-scores"] == names["fitzpatrick-gradient"]


@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_sparsemax", "sigmoid", "perceptron"])
def test_sums_and_hessians_travel(name) -> None:
    """Workers that run out of memory write them to disk, and hand them to one another."""
    rows = features(2000) if name == "logistic" else X  # many are for compiled code
    y = targets(name, rows, k=10)
    sums = penalty_path(rows, y, name).sums
    theta = seeded(0).normal(size=y.shape)
    other = pickle.loads(pickle.dumps(sums))
    assert other.evaluate_at(theta)[0] == sums.evaluate_at(theta)[0]
    hessian = sums.loss.hessian_operator(theta)
    again = pickle.loads(pickle.dumps(hessian))
    np.testing.assert_array_equal(again(theta), hessian(theta))


def test_a_killed_worker_costs_its_chunks_and_not_the_fit(tmp_path: Path) -> None:
    path = str(tmp_path / "X.npy")
    np.save(path, X)
    rows = da.from_array(np.load(path, mmap_mode="r"), chunks=(100, X.shape[1]))
    killed = []

    def kill_one(iteration: linear_model.Iteration) -> None:
        if iteration.iteration == 1:
            pids = client.run(os.getpid)
            address = next(filter(None, client.who_has().values()))[0]  # which has chunks
            killed.append(pids[address])
            os.kill(pids[address], signal.SIGKILL)

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        # workers are forks of one process, which imports what they need
        get_mp_context().set_forkserver_preload(["distributed", "fitzpatrick.dask"])
        options = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **options) as local,
            Client(local) as client,
        ):
            model = FitzpatrickClassifier("logistic", 30.0, callback=kill_one)
            model.fit(rows, chunked(LABELS, 100))
            assert killed[0] not in client.run(os.getpid).values()
    expected = linear_model.FitzpatrickClassifier("logistic", 30.0).fit(X, LABELS)
    assert_same_model(model, expected)
