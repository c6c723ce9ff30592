"""The examples run at small sizes, and learn."""

import runpy
from pathlib import Path

import pytest
import torch

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
    errors = run("torch_digits.py", "--epochs", "3", "--seeds", "1", "--figure", str(figure))
    assert set(errors) == set(fp.loss_names())
    for name in ("fitzpatrick_logistic", "sparsemax", "fitzpatrick_entmax15", "sigmoid"):
        assert errors[name] < 0.5  # a guess is wrong in nine cases of ten
    assert figure.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "fitzpatrick_sparsemax", "entmax15"])
def test_language_model_head(name):
    losses = run("torch_lm_head.py", "--size", "tiny", "--steps", "40", "--loss", name)
    assert len(losses) == 40
    assert losses[-1] < losses[0] / 2
