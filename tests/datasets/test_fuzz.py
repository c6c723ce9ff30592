"""A few cases of the fuzzer in every run of the tests; ``make fuzz`` looks for more."""

import pytest
from tools import fuzz


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_files_are_read_or_refused_in_a_sentence(name, tmp_path):
    answers = {fuzz.run_case(name, f"tests/{name}/{case}", tmp_path) for case in range(60)}
    assert answers == {"read", "refused"}


def test_a_reader_that_fails_is_found(tmp_path, monkeypatch):
    target = fuzz.TARGETS["csv"]
    monkeypatch.setitem(
        fuzz.TARGETS,
        "csv",
        fuzz.Target(target.suffix, target.examples, target.words, lambda *_: [][0]),
    )
    with pytest.raises(IndexError):
        fuzz.run_case("csv", "0", tmp_path)
