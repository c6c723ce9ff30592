"""What ``torch.compile`` does with a function that it should not trace.

These decorators stand for those of :mod:`torch.compiler`, which load Dynamo at once. That takes
longer than the rest of PyTorch, so it waits for a function that is traced.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

F = TypeVar("F", bound=Callable[..., Any])

# Functions by name, each with the decorator of torch.compiler that a graph needs. All of them are
# in modules that fitzpatrick.torch imports, so that none comes after the first traced graph.
MARKS: dict[str, tuple[str, Callable[..., Any]]] = {}


def _marked(mark: str, function: F) -> F:
    name = f"{function.__module__}.{function.__qualname__}"
    MARKS[name] = mark, function

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        if torch.compiler.is_compiling():
            # Dynamo imports a module for real and does not trace it
            from ._marked import FUNCTIONS

            return FUNCTIONS[name](*given, **options)
        return function(*given, **options)

    return call  # type: ignore[return-value]


def constant(function: F) -> F:
    """Call the function while a graph is traced; its result is a constant of the graph."""
    return _marked("assume_constant_result", function)


def untraced(function: F) -> F:
    """Leave the graph to call the function, which ``fullgraph=True`` does not allow."""
    return _marked("disable", function)


def allowed(function: F) -> F:
    """Take the function into the graph as it is; its operators are looked at later."""
    return _marked("allow_in_graph", function)
