"""The kernels compile for a GPU, which the interpreter of the other tests does not show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers import TEST_ALL

triton = pytest.importorskip("triton", reason="the kernels need the package triton")

if "nvidia" not in triton.backends.backends:
    pytest.skip("this Triton has no NVIDIA backend", allow_module_level=True)

# far beyond what it takes on a busy machine, but not for ever
MAX_SECONDS = 3600


OMEGAS = ["logistic", "sparsemax", "entmax15", "tsallis", "links", "entries", "probabilities"]
OMEGAS += ["attention", "isotonic"]


def test_kernels_compile(tmp_path):
    # a process of its own: not interpreted, and a compiler that crashes takes it along
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    script = Path(__file__).with_name("compile_kernels.py")
    command = [sys.executable, str(script), *OMEGAS, *["--all"] * TEST_ALL]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=MAX_SECONDS
    )
    lines = run.stdout.splitlines() or ["nothing"]
    assert run.returncode == 0, f"failed at {lines[-1]}:\n{run.stderr[-2000:]}"
    parts = run.stdout.split("done\n")
    assert parts.pop() == ""
    assert len(parts) == len(OMEGAS)
    assert all(part.count("\n") >= 4 for part in parts)
