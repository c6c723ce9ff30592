"""What a benchmark ran on."""

import importlib.metadata
import os
import platform
from pathlib import Path

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "torch", "entmax", "jax", "optax", "dask")


def cpu_model() -> str:
    """The processor's name, as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def describe() -> dict[str, object]:
    """Processor, cores and versions."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }
