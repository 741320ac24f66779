"""Damaged files of every format in folders that are followed: the stream goes on, and names each file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from damaging import FORMATS, ROWS, damaged, packed, written
from headrace.language.statements.formats import FILE_FORMATS
from how_many import examples
from waiting import wait_for


def test_every_format_is_damaged() -> None:
    assert set(FORMATS) == set(FILE_FORMATS)


def put(folder: Path, name: str, data: bytes) -> None:
    draft = folder / f".{name}"
    draft.write_bytes(data)
    draft.rename(folder / name)


def follow(db: hr.Database, folder: Path, form: str) -> None:
    columns = "v BIGINT, s STRING"
    if form == "text":
        parts = "v AS TRY_CAST(SPLIT_PART(line, ',', 1) AS BIGINT)", "s AS SPLIT_PART(line, ',', 2)"
        columns = ", ".join(("line STRING", *parts))
    db.execute(
        f"CREATE STREAM s ({columns}) FROM {form} OPTIONS (path '{folder}', follow 'true', "
        "ready 'renamed', poll '2 milliseconds') TIMESTAMP BY ARRIVAL;"
        "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s WHERE s = 'last'"
    )


@pytest.mark.parametrize("form", FORMATS)
@examples(4, 15)
@given(seed=st.integers(0, 2**32))
def test_a_stream_goes_on_after_damaged_files(
    tmp_path_factory: pytest.TempPathFactory, form: str, seed: int
) -> None:
    chance, folder = random.Random(seed), tmp_path_factory.mktemp("in")
    names = []
    for number in range(6):
        whole = written(form, chance, "first")
        data, end = packed(whole, chance) if form in ("csv", "json", "text") else (damaged(whole, chance), "")
        names.append(f"{number}.{form}{end}")
        put(folder, names[-1], data)
    put(folder, f"last.{form}", written(form, chance, "last"))
    with hr.connect(runner="inline") as db:
        follow(db, folder, form)
        db.start()
        wait_for(lambda: len(db["q"].changes()) == ROWS or db.problems, lambda: dict(db.problems))
        assert db.problems == {}
        for letter in db.dead_letters().to_pylist():
            assert any(name in letter["place"] for name in names), letter
