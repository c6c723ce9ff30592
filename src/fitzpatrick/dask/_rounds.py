"""Rounds of tasks: one task for each chunk, and a tree that merges their results."""

import functools
import inspect
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dask
from dask.delayed import Delayed, delayed

from ..linear_model._threads import limited_blas

FAN_IN = 8  # results that one task of the tree merges
# parameters of many classes make every graph large, which is as it has to be
QUIET = {"distributed.admin.large-graph-warning-threshold": "1TB"}
PREFIX = "fitzpatrick"  # of the names of all tasks, as the dashboard shows them


class ChunkError(ValueError):
    """What is wrong with a chunk of the data; the message names it."""


@dataclass(frozen=True, eq=False)
class Task:
    """A task of a graph, or its result where that is kept.

    Args:
        key: its name.
        graph: what Dask needs to know of it, apart from the tasks that it depends on.
        needs: these.
    """

    key: Any
    graph: Mapping[Any, Any]
    needs: tuple["Task", ...] = ()


@dataclass(frozen=True)
class Input:
    """The chunks of one argument of a fit, as what reads them."""

    name: str
    chunks: Sequence[Delayed]

    @property
    def tasks(self) -> list[Task]:
        """One task for each chunk."""
        return [Task(chunk.key, chunk.__dask_graph__()) for chunk in self.chunks]


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
    _quiet: dict[str, str] = field(default_factory=dict)

    @property
    def n_chunks(self) -> int:
        """Chunks of the data."""
        return len(self.inputs[0].chunks)

    def send(self, name: str, value: Any) -> Task:
        """A value for the tasks of a round: it leaves this process once.

        It is the result of a task, so that workers hand it to one another, and a copy that is lost
        with a worker is made again.
        """
        return _task(self._key(name), _itself, value)

    def share(self, name: str, value: Any) -> Task:
        """The same for many rounds."""
        return _persist([self.send(name, value)])[0]

    def map(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Task]:
        """A task for each chunk; lists have one argument for each, others are for all of them.

        Arguments are values, and after them tasks.
        """
        key, work = self._key(name), self._limited(function)
        n = self.n_chunks
        columns = [given if isinstance(given, list) else [given] * n for given in arguments]
        return [_task((key, i), work, *row) for i, row in enumerate(zip(*columns, strict=True))]

    def apply(self, name: str, function: Callable[..., Any], *arguments: Any) -> Task:
        """A single task."""
        return _task(self._key(name), self._limited(function), *arguments)

    def merge(self, parts: list[Task], function: Callable[[list[Any]], Any]) -> Task:
        """One result from many, merged in their order by a tree."""
        key, level = self._key("merge"), 0
        while level == 0 or len(parts) > 1:
            parts = [
                _task((key, level, i), functools.partial(_merge, function), *parts[i : i + FAN_IN])
                for i in range(0, len(parts), FAN_IN)
            ]
            level += 1
        return parts[0]

    def run(self, result: Task, kept: Sequence[Task] = ()) -> tuple[Any, list[Task]]:
        """One round: its result, and tasks whose results stay on the workers for later rounds."""
        quiet, self._quiet = self._quiet, QUIET  # the client warns of large inputs once
        try:
            with dask.config.set(quiet):
                if self.keeps and kept:
                    *kept, result = _persist([*kept, result])
                return as_delayed([result])[0].compute(), list(kept)
        except ChunkError:
            raise
        except Exception as error:
            self._name_unreadable(error)
            raise

    def _key(self, name: str) -> str:
        return f"{PREFIX}-{name}-{self._token}-{next(self._number)}"

    def _limited(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.partial(_run, function, self.n_threads or 1)

    def _name_unreadable(self, error: Exception) -> None:
        """Raise for the first chunk that cannot be read, if that is what went wrong."""
        for given in self.inputs:
            found = _first_failure(given.chunks)
            if found is None:
                continue
            index, reason = found
            raise ChunkError(
                f"chunk {index} of {given.name} cannot be read: {type(reason).__name__}: {reason}"
            ) from error


def _task(key: Any, function: Callable[..., Any], *arguments: Any) -> Task:
    """A task that calls a function with values, and after them with the results of tasks."""
    values = [given for given in arguments if not isinstance(given, Task)]
    needs = tuple(given for given in arguments if isinstance(given, Task))
    work = functools.partial(function, *values) if values else function  # Dask looks into values
    return Task(key, {key: (work, *(task.key for task in needs))}, needs)


def as_delayed(tasks: Sequence[Task]) -> list[Delayed]:
    """Tasks as Dask takes them: with one graph of all that they depend on."""
    graph: dict[Any, Any] = {}
    seen: set[int] = set()
    left = list(tasks)
    while left:
        task = left.pop()
        if id(task.graph) not in seen:  # chunks of a collection share one
            seen.add(id(task.graph))
            graph.update(task.graph)
            left.extend(task.needs)
    return [Delayed(task.key, graph) for task in tasks]


def _persist(tasks: Sequence[Task]) -> list[Task]:
    """The same tasks with their results, wherever the scheduler keeps them."""
    return [Task(kept.key, kept.__dask_graph__()) for kept in dask.persist(*as_delayed(tasks))]


def _itself(value: Any) -> Any:
    return value


def _merge(function: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return function(list(parts))


def _nothing(_: Any) -> None:
    return None


def _run(function: Callable[..., Any], n_threads: int, *arguments: Any) -> Any:
    with limited_blas(n_threads):
        return function(*arguments)


def _first_failure(chunks: Sequence[Delayed]) -> tuple[int, Exception] | None:
    """The first chunk that cannot be read, and why."""
    probes: Sequence[Delayed] = [delayed(_nothing, pure=False)(chunk) for chunk in chunks]
    if inspect.ismethod(dask.base.get_scheduler()):  # that of a client, which tries all at once
        probes = dask.persist(*probes)
    for i, probe in enumerate(probes):
        try:
            probe.compute()
        except Exception as error:
            return i, error
    return None
