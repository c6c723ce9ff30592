"""The kernels touch nothing but their tensors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers import TEST_ALL

pytest.importorskip("triton", reason="the kernels need the package triton")

if sys.platform != "linux":
    pytest.skip("memory is guarded by a call of Linux", allow_module_level=True)

# far beyond what it takes on a busy machine, but not for ever
MAX_SECONDS = 3600


# lines of each: sizes and ways through the kernel, at one end or at both; what wants a process that
# has computed nothing is the first
LINES = {"history": 0, "logistic": 6, "sparsemax": 6, "entmax15": 6, "links": 9, "entries": 12}
if TEST_ALL:
    LINES = {name: 2 * count for name, count in LINES.items()}
LINES["reference"] = 18


def test_kernels_stay_inside_of_their_tensors():
    script = Path(__file__).with_name("guard_pages.py")
    paths = [str(script.parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-W", "ignore", str(script), *LINES]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=MAX_SECONDS
    )
    lines = run.stdout.splitlines() or ["nothing"]
    assert run.returncode == 0, f"failed at {lines[-1]}:\n{run.stderr[-2000:]}"
    assert [part.count("\n") for part in run.stdout.split("done\n")] == [*LINES.values(), 0]
