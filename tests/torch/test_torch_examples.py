"""The examples run at small sizes, and learn."""

import runpy
from pathlib import Path

import pytest
import torch
from conftest import TEST_ALL

import fitzpatrick as fp

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, *arguments):
    threads = torch.get_num_threads()
    try:
        return runpy.run_path(str(EXAMPLES / name))["main"]([*arguments])
    finally:
        torch.set_num_threads(threads)


def test_digits(tmp_path):
    figure = tmp_path / "digits.png"
    names = fp.loss_names() if TEST_ALL else ["fitzpatrick_logistic", "sigmoid"]
    options = ["--epochs", "3", "--seeds", "1", "--figure", str(figure), "--losses", *names]
    errors = run("torch_digits.py", *options)
    assert set(errors) == set(names)
    for name in ("fitzpatrick_logistic", "sigmoid"):
        assert errors[name] < 0.5  # a guess is wrong in nine cases of ten
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "options",
    [["entmax15", "--all-scores"], ["fitzpatrick_logistic", "--tightness", "0.5"]],
    ids=str,
)
def test_language_model_head(options):
    losses = run("torch_lm_head.py", "--size", "tiny", "--steps", "40", "--loss", *options)
    assert len(losses) == 40
    assert losses[-1] < losses[0] / 2


def test_text():
    losses, recited = run("torch_text.py", "--steps", "12", "--batch", "4")
    assert recited.startswith("A loss says ")
    assert losses[-1] < 0.9 * losses[0]


def test_distillation():
    options = "--steps", "25", "--rest", "renormalize", "--temperature", "2"
    losses, before, after = run("torch_distil.py", *options)
    assert losses[-1] < losses[0]
    assert after < before
