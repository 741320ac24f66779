"""Texts whose lines are rows: FROM text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import LanguageError, SourceError
from headrace.runtime.sources import open_source
from headrace.runtime.sources.text import blocks
from headrace.schema import BIGINT, STRING, Field, Schema
from how_many import examples
from waiting import wait_for


def lines_of(path: Path, **options: str) -> tuple[list[object], list[tuple[str, str]]]:
    source = open_source("text", {"path": path.name, **options}, None, None, "s", path.parent)
    reads = list(source.read(0, source.size, ("line",)))
    rows = [line for read in reads for line in read.rows.column("line").to_pylist()]
    return rows, [(one.text, one.place) for read in reads for one in read.rejected]


@examples(60)
@given(
    st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"))),
    st.booleans(),
    st.integers(1, 20),
)
def test_each_line_is_a_row(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], is_ended: bool, size: int
) -> None:
    text = "\n".join(lines) + "\n" * is_ended
    path = tmp_path_factory.mktemp("text") / "a"
    path.write_text(text, newline="")
    # A line feed ends a line, and begins none.
    expected = text.removesuffix("\n").split("\n") if text else []
    expected = [line.removesuffix("\r") for line in expected]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", size)
        rows, rejected = lines_of(path)
    assert rows == expected or (text == "\ufeff" and rows == [])
    assert rejected == []


def test_a_line_that_is_no_text_is_set_apart(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"one\r\n\n\xff\xfe!\nla\xc3\xa9st")
    assert lines_of(tmp_path / "a.log") == (["one", "", "la\u00e9st"], [("\ufffd\ufffd!", "a.log:3")])


def test_compressed_and_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress("caf\u00e9\nb".encode("latin-1")))
    assert lines_of(tmp_path / "a.log.gz", encoding="latin-1") == (["caf\u00e9", "b"], [])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (Schema((Field("line", BIGINT),)), "one STRING, and the columns are line BIGINT"),
        (
            Schema((Field("a", STRING), Field("b", STRING))),
            "one STRING, and the columns are a STRING, b STRING",
        ),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, declared: Schema, message: str) -> None:
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(SourceError, match=message) as error:
        open_source("text", {"path": "a"}, declared, None, "s", tmp_path)
    assert "declare line STRING" in str(error.value)


def test_what_is_computed_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 x\n2 y z\nno\n")
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM s (line STRING, ts AS CAST(SPLIT_PART(line, ' ', 1) AS BIGINT)) "
            f"FROM text OPTIONS (path '{tmp_path / 'a.txt'}') TIMESTAMP BY ts"
        )
        found = db.query("SELECT line FROM s")
        db.run()
        assert [row["line"] for row in found.history().to_pylist()] == ["1 x", "2 y z"]
        (letter,) = db.dead_letters().to_pylist()
        assert letter["row"] == '{"line": "no"}'


def test_a_followed_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("x\n\n")
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE STREAM s (value STRING) FROM text OPTIONS (path '{tmp_path / 'in'}', follow true, "
            "ready 'renamed', poll '2 ms') TIMESTAMP BY ARRIVAL; CREATE QUERY q AS SELECT value FROM s"
        )
        db.start()
        wait_for(lambda: db.status.stream("s").rows == 2)
        (tmp_path / "b").write_text("y")
        (tmp_path / "b").rename(tmp_path / "in" / "b")
        wait_for(lambda: db.status.stream("s").rows == 3)
        assert db.problems == {}


@pytest.mark.parametrize("ending", ["txt", "log", "LOG", "text"])
def test_texts_are_known_by_their_endings(ending: str) -> None:
    with (
        hr.connect(runner="inline") as db,
        pytest.raises(LanguageError, match=f"FROM text OPTIONS.*a.{ending}"),
    ):
        db.execute(f"CREATE STREAM s FROM 'a.{ending}' TIMESTAMP BY ARRIVAL")
