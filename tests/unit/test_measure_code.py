"""The measures of the code find what is too long, too many or named twice, and needless exceptions."""

from __future__ import annotations

from pathlib import Path

import measure_code
import pytest


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.py").write_text('class Thing:\n    """A thing."""\n')
    return tmp_path


def test_a_small_package_has_no_problems(package: Path) -> None:
    assert measure_code.problems_in(package, {}) == []


def test_a_long_file_is_found_unless_there_is_a_reason(package: Path) -> None:
    (package / "a" / "long.py").write_text("x = 1\n" * (measure_code.MOST_LINES + 1))
    assert measure_code.problems_in(package, {}) == ["a/long.py has 501 lines, 500 are allowed"]
    assert measure_code.problems_in(package, {"a/long.py": "a table"}) == []


def test_a_docstring_does_not_make_a_function_long(package: Path) -> None:
    text, body = '    """Says much.' + "\n" * 30 + '    """\n', "    x = 1\n" * 49
    (package / "a" / "two.py").write_text(f"def told() -> None:\n{text}{body}")
    assert measure_code.problems_in(package, {}) == []
    (package / "a" / "two.py").write_text(f"def told() -> None:\n{text}{body}    x = 1\n")
    assert measure_code.problems_in(package, {}) == ["a/two.py:told has 51 lines, 50 are allowed"]


@pytest.mark.parametrize("again", ["class Thing: ...\n", "Thing = tuple[int, int]\n", "Thing: type = int\n"])
def test_a_name_of_two_things_is_found(package: Path, again: str) -> None:
    (package / "b").mkdir()
    (package / "b" / "two.py").write_text(again)
    assert measure_code.problems_in(package, {}) == ["Thing is the name of 2 things: a/one.py, b/two.py"]


def test_private_names_and_constants_may_come_again(package: Path) -> None:
    for name in ("two", "three"):
        (package / "a" / f"{name}.py").write_text("class _Own: ...\nMOST = 1\n")
    assert measure_code.problems_in(package, {}) == []


def test_a_folder_with_many_files_is_found(package: Path) -> None:
    for number in range(measure_code.MOST_FILES):
        (package / "a" / f"m{number}.py").touch()
    (package / "a" / "__init__.py").touch()
    assert measure_code.problems_in(package, {}) == ["a/ has 25 files, 24 are allowed"]


def test_an_exception_that_is_not_needed_is_found(package: Path) -> None:
    assert measure_code.problems_in(package, {"a/one.py": "was long"}) == [
        "a/one.py is short enough now: take it off the list of exceptions"
    ]
