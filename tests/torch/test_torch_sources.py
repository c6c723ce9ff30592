"""The source of functions and modules is what its tool writes, and what a type checker reads."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TEST_ALL

ROOT = Path(__file__).parents[2]


def test_the_committed_files_are_fresh():
    pytest.importorskip("jax")  # whose functions the tool writes, too
    files = runpy.run_path(str(ROOT / "tools" / "write_front_ends.py"))["files"]()
    assert {path.name for path in files} == {"functional.py", "modules.py", "_functions.py"}
    for path, text in files.items():
        assert path.read_text() == text, f"{path.name} is stale: run tools/write_front_ends.py"


GOOD = """
import torch
from fitzpatrick.torch import FitzpatrickLogisticLoss, FitzpatrickLoss, functional as F
from fitzpatrick.torch.modules import SigmoidLoss
import fitzpatrick as fp

scores, labels = torch.zeros(2, 3), torch.tensor([0, 1])
loss: torch.Tensor = F.sparsemax_loss(scores, labels, label_smoothing=0.1, reduction="sum")
loss = F.fitzpatrick_poisson_loss(scores, scores, tightness=0.5)
link: torch.Tensor = F.sparsemax(scores, dim=0)
criterion = FitzpatrickLogisticLoss(torch.ones(3), tightness=0.5)
criterion.tightness = 2
number: float = criterion.tightness
axis: int | None = criterion.dim
loss = SigmoidLoss(pos_weight=torch.ones(3))(scores, scores)
prediction: torch.Tensor = criterion.link(scores)
loss = FitzpatrickLoss(fp.regularizers.Tsallis(1.3), tightness=0.5)(scores, labels)
loss = F.loss_function("sparsemax")(scores, labels)
"""
BAD = {
    "F.sparsemax_loss(scores, labels, tightness=0.5)": 'keyword argument "tightness"',
    "F.fitzpatrick_sparsemax_loss(scores, labels, tightness='high')": 'incompatible type "str"',
    "F.logistic_loss(scores, labels, reductoin='sum')": 'keyword argument "reductoin"',
    "F.squared_loss(scores, scores, pos_weight=scores)": 'keyword argument "pos_weight"',
    "F.no_loss(scores, labels)": 'has no attribute "no_loss"',
    "FitzpatrickLogisticLoss(smoothing=0.1)": 'keyword argument "smoothing"',
    "word: str = F.entmax15_loss(scores, labels, reduction=3)": 'incompatible type "int"',
    "criterion.tightness = 'high'": "Incompatible types in assignment",
}
# what mypy takes its time to read; the wide version reads it, which tells tensors from the rest
SKIPPED = [] if TEST_ALL else ["torch", "numpy", "scipy", "sklearn", "array_api_compat"]


def test_a_type_checker_sees_the_signatures(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "user.py"
    script.write_text(GOOD + "\n".join(BAD) + "\n")
    sections = "".join(
        f"[mypy-{name},{name}.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n"
        for name in SKIPPED
    )
    # without what the package must know of the libraries, it is read but not judged
    loose = "[mypy-fitzpatrick.*]\nignore_errors = True\n"
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = True\nignore_missing_imports = True\n{loose}{sections}")
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--no-error-summary"]
    command += ["--cache-dir", str(tmp_path / "cache"), str(script)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert not run.stderr
    first = GOOD.count("\n") + 1
    errors = {}
    for line in run.stdout.splitlines():
        if ": error: " in line:
            number = int(line.split(":")[1])
            errors[number] = errors.get(number, "") + line
    assert set(errors) == set(range(first, first + len(BAD))), run.stdout
    for i, (source, message) in enumerate(BAD.items()):
        assert message in errors[first + i], source
