"""The README and the site are correct: code runs, commands exist, no public name is missing.

Sphinx itself is not needed here; ``make docs`` builds the site and checks its links.
"""

import inspect
import re
import tomllib
from importlib import import_module

import pytest

import fitzpatrick

from .markdown import DOCS, ROOT, blocks, commands, run_command, run_python, skip_without_packages

README = ROOT / "README.md"
MAX_WORDS = 800
# These have separate tests, with data files, several processes or stand-ins for libraries.
ELSEWHERE = (
    "add_a_regularizer.md",
    "add_a_set.md",
    "distributed.md",
    "files.md",
    "head.md",
    "scaling.md",
    "torch.md",
)
NOT_OURS = ("_build", "auto_gallery", "gallery", "results")
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if not set(page.relative_to(DOCS).parts) & set(NOT_OURS)
)
TO_RUN = [
    page
    for page in PAGES
    if page.name not in ELSEWHERE and any(block.language == "python" for block in blocks(page))
]


def name_of(page):
    return str(page.relative_to(ROOT))


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").split()) <= MAX_WORDS


@pytest.mark.parametrize("number", range(3))
def test_snippets_of_the_readme_run(number):
    """Each block runs with its own names."""
    snippets = [block.text for block in blocks(README) if block.language == "python"]
    assert len(snippets) == 3
    skip_without_packages(README)
    run_python(snippets[number], README, {})


@pytest.mark.parametrize("page", TO_RUN, ids=name_of)
def test_a_page_runs_as_it_is_written(page, run, tmp_path, monkeypatch):
    """Blocks run in order; commands without output belong to the next test."""
    skip_without_packages(page)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for block in blocks(page):
        if block.language == "python":
            run_python(block.text, page, names)
        for command in commands(block):
            if command.words[0] == "fitzpatrick" and command.shown:
                run_command(command, run)


@pytest.fixture(scope="module")
def targets_of_make():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_commands_have_these_options(page, targets_of_make):
    typer = pytest.importorskip("typer")
    from fitzpatrick.cli import app

    group = typer.main.get_command(app)
    for block in blocks(page):
        for command in commands(block):
            program, *words = command.words
            if program == "make":
                assert words[0] in targets_of_make, command
            if program == "fitzpatrick" and words:
                context = group.make_context(program, words, resilient_parsing=True)
                _, subcommand, rest = group.resolve_command(context, words)
                # raises for an unknown option
                subcommand.make_parser(context).parse_args(rest)


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_files_and_extras_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"\b(?:benchmarks|docs|examples|tools)/[\w./]+\.\w+", text):
        assert (ROOT / path).exists(), path
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extras in re.findall(r"(?:\.|fitzpatrick)\[([a-z,]+)\]", text):
        assert set(extras.split(",")) <= set(known), extras


def test_the_citation_has_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fitzpatrick.__version__}\n" in citation
    released = re.findall(r"\ndate-released: (.*)\n", citation)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {fitzpatrick.__version__} — {released[0]}\n" in changes


def test_the_reference_has_every_public_name():
    for package in ("torch", "jax", "typer"):
        pytest.importorskip(package)
    from tools import public_names

    pages = [page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.rst")]
    written = {
        module: page for page in pages for module in re.findall(r"public-module:: (\S+)", page)
    }
    missing = []
    for module in public_names.public_modules():
        for name in public_names.described_names(module):
            thing = getattr(import_module(module), name)
            has_docstring = inspect.isclass(thing) or inspect.isfunction(thing)
            page = written.get(module, "")
            if not page or not (thing.__doc__ if has_docstring else f"py:data:: {name}" in page):
                missing.append(f"{module}.{name}")
    assert missing == []


def test_every_page_of_the_reference_is_in_its_table_of_contents():
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8").split()
    assert {page.stem for page in (DOCS / "reference").glob("*.rst")} <= set(index)
