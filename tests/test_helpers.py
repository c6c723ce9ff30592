"""The tests of the core run where PyTorch and JAX are not installed."""

import subprocess
import sys


def test_what_the_tests_share_imports_no_optional_library() -> None:
    code = (
        "import sys, tests.conftest, tests.helpers, tests.contracts.draws, tests.reference\n"
        "print(*{'jax', 'numba', 'torch'} & sys.modules.keys())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    loaded = done.stdout
    assert loaded.strip() == ""
