"""A store that another version has written is read, or refused by what it has of another version.

`written` is a store that was left after three epochs, of the layout and the state format that its store.json
names. A change that breaks the first test makes the stores that users have unreadable: raise the number of
what has changed, so that they are refused by it, and write the store again:

    HEADRACE_STORE=write pytest tests/unit/runtime/journal/test_earlier_stores.py

`earlier` is one of the same layout that was written before sessions and relations of changes were carried out
as they are now. Where a store of another layout or state format is written again, the one before it stays
here too.
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
from headrace.runtime.journal.described_query import DescribedQuery
from headrace.runtime.journal.description import Description, differences, refuse
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
    ("name", "off", "has"),
    [("layout", -1, "layout"), ("layout", 1, "layout"), ("state_format", 1, "operator state of format")],
)
def test_a_store_of_another_format_is_refused_by_it(storage: Path, name: str, off: int, has: str) -> None:
    path = storage / "store.json"
    made = unseal(path.read_bytes())
    ours = made[name]
    path.write_bytes(seal(made | {name: ours + off}))
    before = {file: file.read_bytes() for file in storage.rglob("*") if file.is_file()}
    for use in (answers, contents, verify):
        with pytest.raises(
            StoreError, match=rf"{has} {ours + off}, and this Headrace reads .*{ours}"
        ) as raised:
            use(storage)
        assert re.search("use the version that wrote it", str(raised.value.hint))
    after = {file: file.read_bytes() for file in storage.rglob("*") if file.is_file()}
    assert {file: text for file, text in after.items() if file.name != "lock"} == before


def test_a_query_of_another_text_is_refused() -> None:
    given = (Definition("QUERY", "q", "CREATE QUERY q AS SELECT 1"),)
    for catalog, hint in (
        (None, "if it is that, use the version"),
        ((Definition("QUERY", "q", "CREATE QUERY q AS SELECT 2"),), "the store, or"),
    ):
        theirs = Description({"q": DescribedQuery("of other operators")}, {}, 1, catalog=catalog)
        with pytest.raises(StoreError, match="is for another query q than the one given now") as raised:
            differences(
                theirs, Description({"q": DescribedQuery("of operators")}, {}, 1, catalog=given), "folder"
            )
        assert hint in str(raised.value.hint)


@pytest.mark.parametrize(
    ("kind", "other", "is_refused"),
    [
        ("STREAM", "CREATE STREAM r AS SELECT 2", True),
        ("RELATION", "CREATE RELATION r AS SELECT 2", True),
        ("QUERY", "CREATE QUERY r AS SELECT 2", False),
        ("STREAM", "the same", False),
    ],
)
def test_a_query_that_is_carried_out_otherwise_begins_anew(kind: str, other: str, is_refused: bool) -> None:
    """Where its text is the same, and those of all that it may read."""
    own = Definition("QUERY", "q", "CREATE QUERY q AS SELECT x FROM r")
    stored, given = ((own, Definition(kind, "r", text)) for text in ("the same", other))
    theirs = Description({"q": DescribedQuery("of other operators")}, {}, 1, catalog=stored)
    ours = Description({"q": DescribedQuery("of operators")}, {}, 1, catalog=given)
    if is_refused:
        with pytest.raises(StoreError, match="is for another query q"):
            differences(theirs, ours, "folder")
        return
    found = differences(theirs, ours, "folder")
    assert (found.anew, found.added, found.dropped) == (("q",), (), ())
    with pytest.raises(StoreError, match="carries out the query q in another way"):
        refuse(found, theirs, "folder")


EARLIER = Path(__file__).parent / "earlier"
DEFINED = """
CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2 RETAIN ALL;
CREATE STREAM u (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts DISORDER 2;
CREATE RELATION owner (op STRING, k STRING, name STRING, ts BIGINT) KEY (k)
  FROM push CHANGES BY op TIMESTAMP BY ts;
CREATE QUERY windows AS SELECT k, COUNT(*) AS n, MAX(v) AS most FROM s [RANGE 7] GROUP BY k;
CREATE QUERY pairs AS SELECT a.v, b.v AS w FROM s [RANGE 3] a JOIN u [RANGE 4] b ON a.k = b.k;
CREATE QUERY sessions AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM SESSION(s, ts, k, 4) GROUP BY k;
CREATE QUERY owned AS SELECT s.v, o.name FROM s [RANGE 3] s JOIN owner o ON o.k = s.k;
CREATE QUERY named AS SELECT name, COUNT(*) AS n FROM owner GROUP BY name;
CREATE QUERY ever AS SELECT COUNT(*) AS n FROM u [RANGE UNBOUNDED];
"""


def push_rows(db: hr.Database, begin: int, end: int) -> None:
    """Push the rows of some numbers, as those in the store were."""
    for first in range(begin, end, 5):
        rows = [(number, number - 2 if number % 2 else number) for number in range(first, first + 5)]
        kinds = ["insert" if number < 3 else "update" for number, _ in rows]
        changes = [
            {"op": kind, "k": "abc"[number % 3], "name": f"o{number % 5}", "ts": number}
            for kind, (number, _) in zip(kinds, rows, strict=True)
        ]
        db.push("owner", changes)
        db.push("s", [{"k": "abc"[number % 3], "v": number, "ts": ts} for number, ts in rows])
        db.push("u", [{"k": "abc"[number % 2], "v": number, "ts": ts} for number, ts in rows])


def test_a_store_of_other_operators_goes_on_and_says_what_it_lacks(tmp_path: Path) -> None:
    storage = Path(shutil.copytree(EARLIER, tmp_path / "store"))
    with hr.connect(runner="inline") as db:
        # The readings of that time.
        db.execute("SET dialect = 'pipes'")
        db.execute(DEFINED)
        db.start()
        push_rows(db, 0, 40)
        db.stop()
        whole = {query.name: query.history() for query in db.queries}
    with hr.connect(runner="inline", storage=storage) as db:
        with pytest.warns(hr.HeadraceWarning) as said:
            db.start()
        assert db.differences.anew == ("named", "owned", "sessions")
        push_rows(db, 20, 40)
        db.stop()
        found = {query.name: query.history() for query in db.queries}
        lacking = {query.name for query in db.queries if query.gaps().num_rows}
    # The rows of s are kept; what the relation had is not.
    assert lacking == {"named", "owned"}
    assert [str(one.message).rpartition("so that ")[2] for one in said] == [
        "it says not all from 19 on",
        "it says not all from 16 on",
        "it lacks nothing",
    ]
    for name in whole.keys() - lacking:
        assert found[name].to_pylist() == whole[name].to_pylist(), name
    assert verify(storage).problems == ()
