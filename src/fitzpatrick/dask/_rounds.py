"""Rounds of tasks: one task for each chunk, and a tree that merges their results.

A chunk without a sample of positive weight is None, and so is the result of every task on it.
"""

import inspect
import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
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


@dataclass(eq=False)
class Rounds:
    """Rounds over the chunks of one data set."""

    inputs: dict[str, list[Delayed]]  # what reads the chunks of X, y, and weights if there are any
    keeps: bool = True  # results that are needed again, on the workers; else they are made again
    n_threads: int | None = None  # of each task
    _token: str = field(default_factory=lambda: uuid.uuid4().hex)
    _number: Iterator[int] = field(default_factory=itertools.count)
    _quiet: dict[str, str] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        """Of the chunks, from 0 on."""
        return list(range(len(self.inputs["X"])))

    def send(self, name: str, value: Any) -> Delayed:
        """A value for the tasks of a round: it leaves this process once.

        It is the result of a task, so that workers hand it to one another, and a copy that is lost
        with a worker is made again.
        """
        return self._task(name, partial(_itself, value))

    def share(self, name: str, value: Any) -> Delayed:
        """A value for the tasks of many rounds."""
        shared: Delayed = dask.persist(self.send(name, value))[0]
        return shared

    def map(self, name: str, function: Callable[..., Any], *arguments: Any) -> list[Delayed]:
        """A task for each chunk; lists have one argument for each, others are for all of them.

        Arguments are values, and after them tasks, of which the first stands for the chunk.
        """
        n = len(self.numbers)
        columns = [given if isinstance(given, list) else [given] * n for given in arguments]
        return [self.apply(name, function, *row) for row in zip(*columns, strict=True)]

    def apply(self, name: str, function: Callable[..., Any], *arguments: Any) -> Delayed:
        """A task that calls a function with values, and after them with the results of tasks."""
        values = [given for given in arguments if not isinstance(given, Delayed)]
        tasks = [given for given in arguments if isinstance(given, Delayed)]
        # values are bound, since Dask looks into those that it sees
        return self._task(name, partial(_run, function, self.n_threads or 1, values), *tasks)

    def merge(self, parts: list[Delayed], function: Callable[[list[Any]], Any]) -> Delayed:
        """One result from many, merged in their order by a tree."""
        while True:
            parts = [
                self._task("merge", partial(_merge, function), *parts[i : i + FAN_IN])
                for i in range(0, len(parts), FAN_IN)
            ]
            if len(parts) == 1:
                return parts[0]

    def run(
        self,
        parts: list[Delayed],
        function: Callable[[list[Any]], Any],
        kept: Sequence[Delayed] = (),
    ) -> tuple[Any, list[Delayed]]:
        """One round: merged parts, and tasks whose results stay on the workers for later rounds."""
        result = self.merge(parts, function)
        quiet, self._quiet = self._quiet, QUIET  # the client warns of large inputs once
        try:
            with dask.config.set(quiet):
                if self.keeps and kept:
                    *kept, result = dask.persist(*kept, result)
                return result.compute(), list(kept)
        except ChunkError:
            raise
        except Exception as error:
            self._name_unreadable(error)
            raise

    def _task(self, name: str, work: Callable[..., Any], *tasks: Delayed) -> Delayed:
        key = f"{PREFIX}-{name}-{next(self._number)}-{self._token}"
        task: Delayed = delayed(work, pure=False, traverse=False)(*tasks, dask_key_name=key)
        return task

    def _name_unreadable(self, error: Exception) -> None:
        """Raise for the first chunk that cannot be read, if that is what went wrong."""
        for name, chunks in self.inputs.items():
            probes: Sequence[Delayed] = [delayed(type, pure=False)(chunk) for chunk in chunks]
            if inspect.ismethod(dask.base.get_scheduler()):  # of a client, which tries all at once
                probes = dask.persist(*probes)
            for i, probe in enumerate(probes):
                try:
                    probe.compute()
                except Exception as reason:
                    raise ChunkError(
                        f"chunk {i} of {name} cannot be read: {type(reason).__name__}: {reason}"
                    ) from error


def _itself(value: Any) -> Any:
    return value


def _run(function: Callable[..., Any], n_threads: int, values: list[Any], *results: Any) -> Any:
    if results and results[0] is None:
        return None
    with limited_blas(n_threads):
        return function(*values, *results)


def _merge(function: Callable[[list[Any]], Any], *parts: Any) -> Any:
    found = [part for part in parts if part is not None]
    return function(found) if found else None
