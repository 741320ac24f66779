"""The page of functions has all of them, and is what the code says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from headrace.expressions.aggregates import aggregates
from headrace.expressions.aggregates.functions import SYNONYMS
from headrace.expressions.functions import functions

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "functions.md").read_text()


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_functions", _ROOT / "scripts" / "write_functions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_written_from_the_code(script: ModuleType) -> None:
    assert script.page() == _PAGE, "run python scripts/write_functions.py"


def test_every_function_is_there_once() -> None:
    cells = re.findall(r"^\| (`\w+`(?: \([^|]*\))?) \|", _PAGE, re.MULTILINE)
    found = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    known = {*functions.FUNCTIONS, *aggregates.AGGREGATES, *aggregates.COMPOSED, *SYNONYMS}
    assert sorted(found) == sorted({*known, *found})
