"""A store that another version has written is read, or refused by what it has of another version.

`written` is a store that was left after three epochs, of the layout and the state format that its store.json
names. A change that breaks the first test makes the stores that users have unreadable: raise the number of
what has changed, so that they are refused by it, and write the store again:

    HEADRACE_STORE=write pytest tests/unit/runtime/journal/test_earlier_stores.py
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import StoreError
from headrace.lowering.identity import STATE_FORMAT
from headrace.runtime.journal.definition import Definition
from headrace.runtime.journal.description import Description, differences
from headrace.runtime.journal.inspect import contents, verify
from headrace.runtime.journal.journal import LAYOUT
from headrace.runtime.store.sealed import seal, unseal

WRITTEN = Path(__file__).parent / "written"
QUERIES = {
    "grouped": "SELECT k, COUNT(*) AS n, MAX(v) AS most, SUM(v / 3) AS total FROM s [RANGE 5] GROUP BY k",
    "joined": "SELECT a.v, b.k FROM s [RANGE 3] a JOIN s [ROWS 2] b ON a.k = b.k",
}
ROWS = pa.table({"k": ["a", "b", "a", "c", "b", "a"], "v": [5, 3, 4, 1, 2, 6], "ts": [1, 2, 2, 4, 5, 7]})


class Interruption(BaseException):
    """What ends the run that writes the store."""


def answers(storage: Path | None, epochs: int | None = None) -> dict[str, pa.Table]:
    """The histories of a run to the end, or for so many epochs."""

    def stop(seen: Any) -> None:
        if seen.epoch == epochs:
            raise Interruption

    with hr.connect(runner="inline", storage=storage, epoch_rows=1, buckets=1) as db:
        db.stream("s", ROWS, timestamp="ts")
        for name, text in QUERIES.items():
            db.query(text, name=name)
        db.run(stop)
        return {query.name: query.history() for query in db.queries}


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    """A copy of the store that was written."""
    if os.environ.get("HEADRACE_STORE") == "write":
        shutil.rmtree(WRITTEN, ignore_errors=True)
        with pytest.raises(Interruption):
            answers(WRITTEN, epochs=3)
        (WRITTEN / "lock").unlink()
    return Path(shutil.copytree(WRITTEN, tmp_path / "store"))


def test_a_store_of_these_formats_is_read(storage: Path) -> None:
    made = unseal((storage / "store.json").read_bytes())
    assert (made["layout"], made["state_format"]) == (LAYOUT, STATE_FORMAT), "write the store again"
    assert contents(storage).epochs == 3
    assert answers(storage) == answers(None)
    assert verify(storage).problems == ()


@pytest.mark.parametrize(
    ("name", "has"), [("layout", "layout"), ("state_format", "operator state of format")]
)
@pytest.mark.parametrize("off", [-1, 1], ids=["earlier", "later"])
def test_a_store_of_another_format_is_refused_by_it(storage: Path, name: str, has: str, off: int) -> None:
    path = storage / "store.json"
    made = unseal(path.read_bytes())
    ours = made[name]
    path.write_bytes(seal(made | {name: ours + off}))
    before = {file: file.read_bytes() for file in storage.rglob("*") if file.is_file()}
    for use in (answers, contents, verify):
        with pytest.raises(
            StoreError, match=rf"{has} {ours + off}, and this Headrace reads {ours}"
        ) as raised:
            use(storage)
        assert re.search("use the version that wrote it", str(raised.value.hint))
    after = {file: file.read_bytes() for file in storage.rglob("*") if file.is_file()}
    assert {file: text for file, text in after.items() if file.name != "lock"} == before


@pytest.mark.parametrize(
    ("stored", "says", "hint"),
    [
        (None, "is for another query q than the one given now", "if it is that, use the version"),
        ("CREATE QUERY q AS SELECT 1", "carries out the query q in another way", "use the version"),
        ("CREATE QUERY q AS SELECT 2", "is for another query q than the one given", "the store, or"),
    ],
)
def test_a_query_that_another_version_carries_out_otherwise_is_refused(
    stored: str | None, says: str, hint: str
) -> None:
    catalog = None if stored is None else (Definition("QUERY", "q", stored),)
    given = (Definition("QUERY", "q", "CREATE QUERY q AS SELECT 1"),)
    theirs = Description({"q": "of other operators"}, {}, 1, catalog=catalog)
    with pytest.raises(StoreError, match=says) as raised:
        differences(theirs, Description({"q": "of operators"}, {}, 1, catalog=given), "folder")
    assert hint in str(raised.value.hint)
