"""The memory of a worker: JAX keeps all that it has compiled until it is told."""

import contextlib
import ctypes
import gc
import os
import sys
from pathlib import Path

import pytest

# A process that has imported everything takes 0.95 GB; beyond 1.35 what JAX compiles is not kept.
MUCH, STEP = 1_350_000_000, 80_000_000
# What a module has to leave behind before it is cleaned up, which takes 0.4 seconds.
REMAINS = 40_000_000
STATM = Path("/proc/self/statm")  # Linux

_kept = 0  # bytes after the last time


def give_back() -> None:
    """Drop what JAX has compiled, and what the C library keeps for later."""
    global _kept
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
        gc.collect()
        gc.freeze()  # what is left is not scanned again, which takes longer each time
        with contextlib.suppress(OSError, AttributeError):  # where the C library is not GNU's
            ctypes.CDLL("libc.so.6").malloc_trim(0)
    _kept = _in_use()


def give_back_remains() -> None:
    """Give memory back at the end of a module, unless it has left little behind."""
    if _in_use() > _kept + REMAINS or not STATM.exists():
        give_back()


def _in_use() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    if not STATM.exists():
        return 0
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Do not wait for the end of a module that has JAX compile much."""
    in_use = _in_use()
    if in_use > MUCH and in_use > _kept + STEP:
        give_back()
