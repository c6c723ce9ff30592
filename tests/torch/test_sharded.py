"""Classes in several processes: the losses and gradients are those of one process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as distributed

HERE = Path(__file__).parent
# in seconds; far more than the processes take, even where they have to share a core
DEADLINE = 300

if not (distributed.is_available() and distributed.is_gloo_available()):
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from sharded_worker import CASES, NUMBERS  # noqa: E402  # which needs gloo


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the processes of the worker wrote."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, str(HERE / "sharded_worker.py"), str(folder)]
    # one thread each, since they share the cores
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # a group of its own, so that none of them is left behind
    worker = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
    try:
        output, _ = worker.communicate(timeout=DEADLINE)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    assert worker.returncode == 0, output
    return folder


@pytest.fixture(scope="module", params=[2, 4], ids="{} processes".format)
def results(request, folder):
    """What went wrong in each case, on any rank; all cases run in one group of processes."""
    n = request.param
    ranks = [json.loads((folder / str(n) / f"{rank}.json").read_text()) for rank in range(n)]
    return {case: "\n".join(filter(None, (rank[case] for rank in ranks))) for case in CASES}


@pytest.mark.parametrize("case", CASES)
def test_in_processes(results, case):
    assert not results[case], results[case]


def test_the_page_says_what_travels():
    """Its table has the reductions, numbers and bytes that the processes counted."""
    page = (HERE.parents[1] / "docs" / "distributed.md").read_text()
    rows = {
        ("logistic", 1.0, "labels"): "`logistic`, any tightness, class indices",
        ("logistic", 0.0, "proportions"): "`logistic`, tightness 0, proportions",
        ("logistic", 1.0, "proportions"): "`logistic`, other tightness, proportions",
        ("sparsemax", 1.0, "labels"): "`sparsemax`, `entmax15` and every α-entmax",
        ("perceptron", 0.0, "labels"): "`perceptron`",
    }
    for loss, title in rows.items():
        cells = []
        for dtype in (torch.float32, torch.float64):
            numbers = NUMBERS[dtype][loss]
            total = sum(numbers)
            cells.append(f"{len(numbers)}, {total}, {total * dtype.itemsize}")
        assert f"| {title} | {' | '.join(cells)} |" in page


def test_a_process_that_ends_does_not_leave_the_other_waiting(folder):
    message = json.loads((folder / "lost" / "0.json").read_text())
    assert "a collective of process_group failed: another rank exited" in message
