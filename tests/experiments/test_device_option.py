"""``reproduce --device``: the same table by PyTorch, and an error where there is no such device."""

import sys

import pytest

from fitzpatrick import cli
from fitzpatrick.experiments import runner


@pytest.fixture
def reproduce(monkeypatch, capsys, tmp_path):
    """Call the command; its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)

    def call(*options):
        monkeypatch.setattr(sys, "argv", ["fitzpatrick", "reproduce", *options])
        try:
            cli.main()
        except SystemExit as ended:
            return ended.code or 0, *capsys.readouterr()
        return 0, *capsys.readouterr()

    return call


def test_the_table_is_that_of_numpy(reproduce, tmp_path):
    pytest.importorskip("torch")
    options = ("--seeds", "1", "-j", "1", "--losses", "logistic", "--alphas", "1e3")
    by_numpy, by_torch = reproduce(*options), reproduce(*options, "--device", "cpu")
    assert by_numpy[0] == by_torch[0] == 0
    assert by_torch[1] == by_numpy[1]
    assert "PyTorch cpu" in (tmp_path / "out" / "fits.csv").read_text()
    assert "PyTorch on cpu" in (tmp_path / "out" / "report.html").read_text()


def test_a_device_is_started_in_one_process_alone(reproduce, monkeypatch):
    pytest.importorskip("torch")

    class OneProcess(runner.Parallel):
        def __init__(self, n_jobs, **options):
            assert n_jobs == 1
            super().__init__(n_jobs, **options)

    monkeypatch.setattr(runner, "Parallel", OneProcess)
    options = ("--seeds", "2", "--losses", "logistic", "--alphas", "1e3", "--device", "cpu")
    assert reproduce(*options)[0] == 0


def test_a_device_that_is_not_there(reproduce, tmp_path):
    pytest.importorskip("torch")
    code, _, errors = reproduce("--device", "abacus")
    assert code == 2
    assert errors.startswith("error: --device: PyTorch cannot use the device 'abacus' here: ")
    assert errors.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_pytorch_that_is_not_installed(reproduce, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, errors = reproduce("--device", "cpu")
    assert (code, errors) == (
        2,
        "error: --device needs PyTorch: pip install 'fitzpatrick[torch]'\n",
    )
