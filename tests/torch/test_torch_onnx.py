"""Links leave PyTorch through its ONNX exporter, as operations that any runtime has."""

import warnings

import pytest
import torch

from fitzpatrick.torch import Entmax, Entmax15, Sparsemax, _entmax
from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

# float32: differences of scores, τ and an entry are rounded, and sums of 9 of them
CLOSE = {"rtol": 1e-5, "atol": 32 * torch.finfo(torch.float32).eps}


@pytest.mark.parametrize("module", [Sparsemax(), Entmax15(dim=1), Entmax(1.0)], ids=repr)
def test_export(module, tmp_path, generator):
    pytest.importorskip("onnxscript", reason="PyTorch exports by the package onnxscript")
    runtime = pytest.importorskip("onnxruntime", reason="runs what was exported")
    batch = torch.export.Dim("batch")
    with warnings.catch_warnings():  # the exporter's own
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(), (torch.zeros(2, 4, 5),), dynamo=True, dynamic_shapes=({0: batch},)
        )
    program.save(tmp_path / "link.onnx")
    session = runtime.InferenceSession(tmp_path / "link.onnx")
    x = torch.randn(7, 4, 5, generator=generator)
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), module(x), **CLOSE)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0, torch.linspace(1, 2, 60)[:, None]], ids=str)
def test_the_operations_that_are_exported(alpha, generator, monkeypatch):
    """Every scale of scores, ties, masks and −∞."""
    x = torch.randn(60, 9, generator=generator) * torch.logspace(-2, 3, 60)[:, None]
    x[0], x[1, 3:] = 0.0, -torch.inf
    mask = torch.rand(60, 9, generator=generator) < 0.8
    mask[2], mask[:2] = False, True
    expected = F.entmax(x, alpha, mask=mask)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    monkeypatch.setattr(_entmax, "_solve", None)  # nothing but the operations
    torch.testing.assert_close(F.entmax(x, alpha, mask=mask), expected, **CLOSE)
