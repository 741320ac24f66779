"""A transfer that breaks off is never an answer: of files, of addresses that are polled, of relations."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import headrace as hr
from headrace.errors import AwayError, SourceError, UserError
from headrace.runtime.outside.web import asked
from toxic_peers import MOODS, ToxicSite, toxic_site
from waiting import wait_for, wait_until

ROWS = [{"ts": at, "v": at % 7} for at in range(1, 401)]
WHOLE = {"n": 400, "s": sum(row["v"] for row in ROWS)}
AWAY = [mood for mood in MOODS if mood not in ("missing", "forbidden")]
"""Those that the bytes of a file do not end with."""


@pytest.fixture
def site() -> Iterator[ToxicSite]:
    with toxic_site() as found:
        yield found


def written(form: str) -> bytes:
    if form == "json":
        return "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    if form in ("csv", "text"):
        header = b"ts,v\n" if form == "csv" else b""
        return header + b"".join(b"%d,%d\n" % (row["ts"], row["v"]) for row in ROWS)
    sink, table = io.BytesIO(), pa.Table.from_pylist(ROWS)
    if form == "parquet":
        pq.write_table(table, sink)
    elif form == "orc":
        pyarrow.orc.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def counted(db: hr.Database) -> list[dict[str, int]]:
    return [{"n": row["n"], "s": row["s"]} for row in db["q"].history().to_pylist()]


def over_a_file(db: hr.Database, site: ToxicSite, form: str) -> None:
    columns = "ts BIGINT, v BIGINT"
    if form == "text":
        found = (
            f"{name} AS CAST(SPLIT_PART(line, ',', {at}) AS BIGINT)" for at, name in enumerate(("ts", "v"), 1)
        )
        columns = ", ".join(("line STRING", *found))
    db.execute(
        f"CREATE STREAM s ({columns}) FROM {form} OPTIONS (path '{site.url}/rows.{form}') "
        "TIMESTAMP BY ts; CREATE QUERY q AS SELECT COUNT(*) AS n, SUM(v) AS s FROM s [RANGE UNBOUNDED]"
    )


@pytest.mark.parametrize("mood", AWAY)
def test_each_way_of_not_answering_is_one_of_being_away(site: ToxicSite, mood: str) -> None:
    site.body, site.mood = b"x" * 100, mood
    with pytest.raises(AwayError):
        asked(site.url, "it")
    site.mood = "well"
    assert asked(site.url, "it").body == site.body


def test_a_server_says_when_to_come_again(site: ToxicSite) -> None:
    site.mood = "busy"
    with pytest.raises(AwayError) as error:
        asked(site.url, "it")
    assert error.value.pause == 0.0


@pytest.mark.parametrize(
    ("mood", "form"),
    [
        *((mood, "csv") for mood in MOODS),
        *(("cut", form) for form in ("json", "parquet", "arrow", "orc", "text")),
    ],
)
def test_a_run_over_a_file_ends_with_all_rows_or_none(site: ToxicSite, form: str, mood: str) -> None:
    site.body = written(form)
    site.cut = len(site.body) // 2
    with hr.connect(runner="inline") as db:
        over_a_file(db, site, form)
        site.mood = mood
        with pytest.raises(SourceError):
            db.run()
        assert counted(db) == []
    site.mood = "well"
    with hr.connect(runner="inline") as db:
        over_a_file(db, site, form)
        db.run()
        assert counted(db)[-1] == WHOLE


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_that_breaks_off_delays_its_stream_alone(site: ToxicSite, form: str) -> None:
    site.body = written(form)
    site.cut = len(site.body) // 2
    with hr.connect(runner="inline") as db:
        over_a_file(db, site, form)
        db.execute(
            "CREATE STREAM p (ts BIGINT) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY other CONSISTENCY MIDDLE AS SELECT ts FROM p"
        )
        site.mood = "cut"
        db.start()
        wait_for(lambda: "broke off" in db.problems.get("s", ""), lambda: dict(db.problems))
        assert "since 2" in db.problems["s"]
        db.push("p", {"ts": 1})
        wait_until(lambda: len(db["other"].changes()), 1)
        assert counted(db) == []
        site.mood = "well"
        wait_until(lambda: counted(db)[-1:], [WHOLE])
        wait_until(lambda: dict(db.problems), {})
        assert not db.dead_letters().num_rows


def test_a_relation_that_is_away_at_the_start_is_read_later(site: ToxicSite) -> None:
    site.body = b"k,name\n1,a\n2,b\n"
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE RELATION r (k BIGINT, name STRING) FROM csv OPTIONS (path '{site.url}/r.csv');"
            "CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT name FROM p [NOW], r WHERE p.k = r.k"
        )
        site.mood = "silent"
        db.start()
        wait_for(lambda: "cannot be reached" in db.problems.get("r", ""), lambda: dict(db.problems))
        site.mood = "well"
        db.push("p", {"ts": 1, "k": 2})
        wait_until(lambda: [row["name"] for row in db["q"].changes().to_pylist()], ["b"])
        assert db.problems == {}


@pytest.mark.parametrize("mood", MOODS)
def test_a_refresh_that_breaks_off_changes_nothing(site: ToxicSite, mood: str) -> None:
    site.body = b"k,name\n" + b"".join(b"%d,n%d\n" % (k, k) for k in range(1_000))
    site.cut = len(site.body) // 2
    with hr.connect(runner="inline") as db:
        db.execute(
            f"CREATE RELATION r (k BIGINT, name STRING) FROM csv OPTIONS (path '{site.url}/r.csv') "
            "REFRESH ON DEMAND;"
            "CREATE STREAM p (ts BIGINT, k BIGINT) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT name FROM p [NOW], r WHERE p.k = r.k"
        )
        db.start()
        db.push("p", {"ts": 1, "k": 999})
        site.mood = mood
        with pytest.raises(UserError, match=r"r\.csv"):
            db.refresh("r")
        db.push("p", {"ts": 2, "k": 998})
        wait_until(lambda: [row["name"] for row in db["q"].changes().to_pylist()], ["n999", "n998"])
        site.mood = "well"
        assert db.refresh("r").deleted == 0


@pytest.mark.parametrize("mood", MOODS)
def test_an_answer_that_breaks_off_counts_once_when_it_is_whole(
    site: ToxicSite, mood: str, tmp_path: Path
) -> None:
    site.body = written("json")
    site.cut, site.mood = len(site.body) // 2, mood
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(
            f"CREATE STREAM s (ts BIGINT, v BIGINT) FROM http OPTIONS (url '{site.url}', "
            "poll '5 milliseconds') TIMESTAMP BY ts DISORDER 1000;"
            "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v, ts AS at FROM s"
        )
        db.start()
        wait_for(lambda: "s" in db.problems)
        assert not len(db["q"].changes())
        site.mood = "well"
        wait_until(lambda: len(db["q"].changes()), 400)
        wait_until(lambda: dict(db.problems), {})
        assert not db.dead_letters().num_rows
