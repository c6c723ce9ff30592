"""Markdown pages: find their code blocks, and run the code and the commands."""

import ast
import doctest
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
# an expression, and its value in a comment, to the given digits
_CLAIM = re.compile(r"^(\S.*?)  # (-?\d+\.\d+)(?:$|,)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of code, without the indentation of a list around it."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    return [
        Block(language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))
        for indent, language, text in _BLOCK.findall(page.read_text(encoding="utf-8"))
    ]


def skip_without_packages(page: Path) -> None:
    """Skip pages about a library that is not installed."""
    code = "\n".join(block.text for block in blocks(page) if block.language == "python")
    for package in ("torch", "jax"):
        if re.search(rf"^(import|from) (fitzpatrick\.)?{package}\b", code, re.MULTILINE):
            pytest.importorskip(package)


def run_python(text: str, page: Path, names: dict[str, Any]) -> None:
    """Run a block, and compare the numbers in its comments with those of the expressions.

    A block that begins with a prompt is a doctest.
    """
    if text.startswith(">>>"):
        example = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
        options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        runner = doctest.DocTestRunner(optionflags=options)
        runner.run(example, clear_globs=False)
        names.update(example.globs)
        assert runner.failures == 0, text
        return
    exec(compile(text, page.name, "exec"), names)
    for expression, number in _CLAIM.findall(text):
        if isinstance(ast.parse(expression).body[0], ast.Expr):
            digits = len(number.split(".")[1])
            # half a unit of the last digit for rounding, and a margin for other CPUs
            expected = pytest.approx(float(number), abs=0.6 * 10**-digits)
            assert float(eval(expression, names)) == expected, expression


@dataclass(frozen=True)
class Command:
    """A command, and the lines of its output that the page shows."""

    words: list[str]
    shown: list[str]


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console, and of a block that names no language."""
    if block.language not in ("", "console"):
        return
    prompt = r"^\$ " if block.language == "console" else r"^(?=fitzpatrick |make )"
    for part in re.split(prompt, block.text, flags=re.MULTILINE)[1:]:
        line, *shown = part.splitlines()
        yield Command(shlex.split(os.path.expandvars(line), comments=True), shown)


def masked(line: str) -> str:
    """A line without numbers, stars and column widths: fits differ slightly between machines."""
    return " ".join(re.sub(r"[-+]?\d*\.?\d+(e[-+]\d+)?%?|\*|n/a|–|,", " ", line).split())


def run_command(command: Command, run: Callable[..., tuple[int, str, str]]) -> None:
    """Run a ``fitzpatrick`` command, and compare its output with the lines on the page."""
    assert command.words[0] == "fitzpatrick"
    jobs = ("-j", "1") if command.words[1] == "compare" else ()
    code, out, err = run(*command.words[1:], *jobs)
    assert code == 0, err
    printed = {masked(line) for line in out.splitlines()}
    assert {masked(line) for line in command.shown} <= printed
