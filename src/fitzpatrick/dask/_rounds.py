"""Rounds of tasks: one task for each chunk, and a tree that merges their results."""

import functools
import inspect
import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dask
from dask.delayed import Delayed, delayed

from ..linear_model._threads import limited_blas

FAN_IN = 8  # results that one task of the tree merges
PREFIX = "fitzpatrick"  # of the names of all tasks, as the dashboard shows them


class ChunkError(ValueError):
    """What is wrong with a chunk of the data; the message names it."""


@dataclass(frozen=True)
class Input:
    """The chunks of one argument of a fit, as tasks that read them."""

    name: str
    tasks: Sequence[Delayed]


@dataclass(eq=False)
class Rounds:
    """Rounds over the chunks of one data set.

    Args:
        inputs: what the chunks are read from: X, y, and weights.
        keeps: whether results that are needed again stay on the workers; else they are computed
            again from the inputs.
        n_threads: threads of each task.
    """

    inputs: Sequence[Input]
    keeps: bool = True
    n_threads: int | None = None
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _number: Iterator[int] = field(default_factory=itertools.count)

    @property
    def n_chunks(self) -> int:
        """Chunks of the data."""
        return len(self.inputs[0].tasks)

    def send(self, name: str, value: Any) -> Delayed:
        """A value for the tasks of a round: it leaves this process once.

        It is the result of a task, so that workers hand it to one another, and a copy that is lost
        with a worker is made again.
        """
        return self._task(name, self._key(name), _itself, value)

    def share(self, name: str, value: Any) -> Delayed:
        """The same for many rounds."""
        (task,) = dask.persist(self.send(name, value))
        return task

    def map(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Delayed]:
        """A task for each chunk; lists have one argument for each, others are for all of them."""
        key = self._key(name)
        work = functools.partial(_run, function, self.n_threads or 1)
        columns = [
            given if isinstance(given, list) else itertools.repeat(given) for given in arguments
        ]
        return [
            self._task(name, (key, i), work, *row)
            for i, row in zip(range(self.n_chunks), zip(*columns, strict=False), strict=True)
        ]

    def apply(self, name: str, function: Callable[..., Any], *arguments: Any) -> Delayed:
        """A single task."""
        work = functools.partial(_run, function, self.n_threads or 1)
        return self._task(name, self._key(name), work, *arguments)

    def merge(self, parts: list[Delayed], function: Callable[[list[Any]], Any]) -> Delayed:
        """One result from many, merged in their order by a tree."""
        key = self._key("merge")
        level = 0
        while level == 0 or len(parts) > 1:
            parts = [
                self._task("merge", (key, level, i), function, parts[i : i + FAN_IN])
                for i in range(0, len(parts), FAN_IN)
            ]
            level += 1
        return parts[0]

    def run(self, result: Delayed, kept: list[Delayed] | None = None) -> tuple[Any, list[Delayed]]:
        """One round: its result, and tasks whose results stay on the workers for later rounds."""
        kept = kept or []
        try:
            if self.keeps and kept:
                *kept, result = dask.persist(*kept, result)
            return result.compute(), kept
        except ChunkError:
            raise
        except Exception as error:
            self._name_unreadable(error)
            raise

    def _key(self, name: str) -> str:
        return f"{PREFIX}-{name}-{self._token}-{next(self._number)}"

    def _task(self, name: str, key: Any, function: Callable[..., Any], *arguments: Any) -> Delayed:
        make = delayed(function, name=f"{PREFIX}-{name}", pure=False, traverse=False)
        return make(*arguments, dask_key_name=key)

    def _name_unreadable(self, error: Exception) -> None:
        """Raise for the first chunk that cannot be read, if that is what went wrong."""
        for given in self.inputs:
            found = _first_failure(given.tasks)
            if found is None:
                continue
            index, reason = found
            raise ChunkError(
                f"chunk {index} of {given.name} cannot be read: {type(reason).__name__}: {reason}"
            ) from error


def _itself(value: Any) -> Any:
    return value


def _nothing(_: Any) -> None:
    return None


def _run(function: Callable[..., Any], n_threads: int, *arguments: Any) -> Any:
    with limited_blas(n_threads):
        return function(*arguments)


def _first_failure(tasks: Sequence[Delayed]) -> tuple[int, Exception] | None:
    """The first task that fails, and why."""
    probes: Sequence[Delayed] = [delayed(_nothing, pure=False)(task) for task in tasks]
    if inspect.ismethod(dask.base.get_scheduler()):  # that of a client, which tries all at once
        probes = dask.persist(*probes)
    for i, probe in enumerate(probes):
        try:
            probe.compute()
        except Exception as error:
            return i, error
    return None
