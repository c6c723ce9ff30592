"""The examples run and print what they promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sklearn_proportions", ["fitzpatrick_sparsemax", "tightness", "squared error"]),
        ("shortest_path", ["largest gap", "more than the best ones", "one path for all"]),
        ("ordinal_levels", ["order simplex: ", "classes without an order: "]),
        ("sklearn_classifier", ["best parameters", "test accuracy", "sparsemax keeps"]),
    ],
)
def test_example(name: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    out = capsys.readouterr().out
    assert all(word in out for word in words)
