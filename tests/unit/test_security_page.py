"""Every test that docs/security.md and docs/sinks.md name for a promise is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_behind_the_promises_exist() -> None:
    page = (ROOT / "docs/security.md").read_text()
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", page))
    names = set(re.findall(r"`(test_\w+)`", page))
    assert len(files) > 3
    assert len(names) > 15
    assert {name for name in files if not (ROOT / name).exists()} == set()
    text = "\n".join((ROOT / name).read_text() for name in files)
    assert {name for name in names if f"def {name}(" not in text} == set(), "not in the files that it names"


def test_the_tests_behind_the_promises_of_sinks_exist() -> None:
    names = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/sinks.md").read_text()))
    assert len(names) > 6
    found = set(
        re.findall(r"def (test_\w+)\(", "\n".join(map(Path.read_text, (ROOT / "tests").rglob("*.py"))))
    )
    assert names - found == set()
