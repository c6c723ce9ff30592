"""How well XLA optimizes what the tests have JAX compile.

XLA takes most of the time of JAX's tests. Nearly all of them ask what is computed, not how fast:
they are compiled with little effort, in a third of the time. Optimization changes the rounding, so
the tests that look at digits, and the processes that tests start, are compiled as users compile.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from .helpers import TEST_ALL

# They go to XLA with each program: XLA_FLAGS would last for the process and reach its children.
QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}

_options: dict[str, Any] = {}


def compile_quickly() -> None:
    """From now on, unless every test is to run: JAX must be imported, and has no public way."""
    from jax._src import compiler

    if TEST_ALL or _options:
        return
    _options.update(QUICK)
    get_compile_options = compiler.get_compile_options

    def with_options(*arguments: Any, env_options_overrides: Any = None, **others: Any) -> Any:
        options = {**_options, **(env_options_overrides or {})}
        return get_compile_options(*arguments, env_options_overrides=options, **others)

    compiler.get_compile_options = with_options


@contextlib.contextmanager
def optimized() -> Iterator[None]:
    """Compile as users do for a while; JAX's caches are to be empty before and after."""
    kept = dict(_options)
    _options.clear()
    try:
        yield
    finally:
        _options.update(kept)
