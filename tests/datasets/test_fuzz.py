"""A few cases of the fuzzer in every run of the tests; ``make fuzz`` looks for more."""

import pytest
from tools import fuzz


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_answers_are_tables_or_sentences(name, tmp_path):
    answers = {fuzz.run_case(name, f"tests/{name}/{case}", tmp_path) for case in range(150)}
    assert answers == {"table", "error"}


def test_a_reader_that_fails_is_found(tmp_path, monkeypatch):
    target = fuzz.TARGETS["csv"]
    monkeypatch.setitem(
        fuzz.TARGETS,
        "csv",
        fuzz.Target(target.suffix, target.examples, target.words, lambda *_: [][0]),
    )
    with pytest.raises(IndexError):
        fuzz.run_case("csv", "0", tmp_path)
