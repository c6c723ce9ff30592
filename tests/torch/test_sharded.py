"""Classes in several processes: the losses and gradients are those of one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as distributed

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

HERE = Path(__file__).parent
# A file opening of the processes, which a loaded machine may take a minute for.
DEADLINE = 300

if not (distributed.is_available() and distributed.is_gloo_available()):
    pytest.skip("this PyTorch has no gloo", allow_module_level=True)

from sharded_worker import CASES


def start(*arguments):
    """A process of the worker's file, with one thread, as its siblings share the cores."""
    command = [sys.executable, str(HERE / "sharded_worker.py"), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env=environment, **pipes)


def finish(processes):
    """What they have written, once all have ended well; none of them is left behind."""
    try:
        outputs = [process.communicate(timeout=DEADLINE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return outputs


@pytest.fixture(scope="module", params=[2, 4], ids="{} processes".format)
def results(request, tmp_path_factory):
    """What went wrong in each case, on any rank; all cases run in one group of processes."""
    folder = tmp_path_factory.mktemp("ranks")
    finish([start(rank, request.param, folder) for rank in range(request.param)])
    ranks = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(request.param)]
    return {case: "\n".join(filter(None, (rank[case] for rank in ranks))) for case in CASES}


@pytest.mark.parametrize("case", CASES)
def test_in_processes(results, case):
    assert not results[case], results[case]


def test_a_process_that_ends_does_not_leave_the_other_waiting(tmp_path):
    finish([start("lose_one", rank, tmp_path) for rank in range(2)])
    message = json.loads((tmp_path / "0.json").read_text())
    assert "the processes of process_group lost one another: one of them has ended" in message


def test_a_group_needs_torch_distributed():
    with pytest.raises(RuntimeError, match=r"init_process_group\(\) first, on every rank"):
        F.sparsemax_loss(torch.zeros(1, 3), torch.tensor([0]), process_group="tp")
