"""IF NOT EXISTS, IF EXISTS and CREATE OR REPLACE of streams and relations: scripts that can be run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.errors import LanguageError, PolicyError, UserError

STREAM = "STREAM s (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts"
SCRIPT = f"""
CREATE {STREAM};
CREATE STREAM doubled AS SELECT ts, v * 2 AS v FROM s;
CREATE QUERY large AS SELECT v FROM doubled WHERE v > 2;
CREATE RELATION names (k BIGINT, name STRING) KEY (k) FROM csv OPTIONS (path 'names.csv');
CREATE SINK out FOR large TO csv OPTIONS (path 'out');
"""
NAMES = {"STREAM": "doubled", "QUERY": "large", "RELATION": "names", "SINK": "out"}
GONE = "DROP SINK IF EXISTS out; DROP QUERY IF EXISTS large; DROP STREAM IF EXISTS doubled;"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[hr.Database]:
    (tmp_path / "names.csv").write_text("k,name\n1,a\n")
    with hr.connect(runner="inline", storage=tmp_path / "store") as made:
        yield made


def created(db: hr.Database, kind: str, name: str) -> str:
    return str(db.execute(f"SHOW CREATE {kind} {name}")[0])


def shown(db: hr.Database) -> list[str]:
    return [created(db, kind, name) for kind, name in NAMES.items()]


def test_a_script_of_conditional_statements_can_be_run_again(db: hr.Database, tmp_path: Path) -> None:
    script = SCRIPT
    for kind in ("STREAM", "QUERY", "RELATION", "SINK"):
        script = script.replace(f"CREATE {kind} ", f"CREATE {kind} IF NOT EXISTS ")
    (first,) = db.execute(script, base=tmp_path)
    before = shown(db)
    # What is there stays, whatever the text says.
    (again,) = db.execute(script.replace("v > 2", "v > 3").replace("v * 2", "v * 3"), base=tmp_path)
    assert again is first
    assert shown(db) == before
    assert db.query("CREATE QUERY IF NOT EXISTS large AS SELECT v FROM s") is first
    db.execute(GONE)
    db.execute(GONE + "DROP RELATION IF EXISTS names; DROP STREAM IF EXISTS s")
    assert not db.queries


@pytest.mark.parametrize("kind", NAMES)
def test_what_is_there_is_dropped(db: hr.Database, tmp_path: Path, kind: str) -> None:
    db.execute(SCRIPT, base=tmp_path)
    cascade = "" if kind == "SINK" else " CASCADE"
    db.execute(f"DROP {kind} IF EXISTS {NAMES[kind]}{cascade}")
    with pytest.raises(LanguageError, match="there is no"):
        created(db, kind, NAMES[kind])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM IF NOT EXISTS names AS SELECT v FROM s", "there is a relation names already"),
        ("DROP RELATION IF EXISTS s", r"s is a stream \(hint: write DROP STREAM s\)"),
        ("DROP STREAM IF EXISTS s", "the stream s cannot be dropped: it is used by the stream doubled"),
        ("CREATE QUERY IF NOT EXISTS other AS SELECT nothing FROM s", "there is no column nothing"),
        ("CREATE OR REPLACE STREAM IF NOT EXISTS x AS SELECT v FROM s", "exclude each other"),
        ("CREATE OR REPLACE SINK out FOR large TO csv", "a sink cannot be replaced"),
        ("ALTER STREAM s ADD COLUMN IF NOT EXISTS v DOUBLE", "s has a column v already"),
    ],
)
def test_what_cannot_be_meant_is_refused(db: hr.Database, tmp_path: Path, text: str, message: str) -> None:
    db.execute(SCRIPT, base=tmp_path)
    with pytest.raises(LanguageError, match=message):
        db.execute(text)


def test_columns_are_added_that_are_missing(db: hr.Database) -> None:
    db.execute(f"CREATE {STREAM}")
    for _ in range(2):
        db.execute("ALTER STREAM s ADD COLUMN IF NOT EXISTS V BIGINT, ADD COLUMN IF NOT EXISTS w BIGINT")
    assert db.query("SELECT * FROM s").schema.names == ("ts", "v", "w")


@pytest.mark.parametrize("text", ["DROP QUERY IF EXISTS x", "CREATE SINK IF NOT EXISTS o FOR x TO csv"])
def test_a_policy_refuses_what_would_do_nothing(db: hr.Database, text: str) -> None:
    with pytest.raises(PolicyError):
        db.execute(text, policy=hr.Policy.closed(may_define=False))


def test_what_a_store_has_is_given_again_by_a_conditional_statement(tmp_path: Path) -> None:
    text = f"CREATE {STREAM}; CREATE QUERY q AS SELECT v FROM s"
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(text + "; CREATE QUERY other AS SELECT v + 1 AS v FROM s")
        db.start()
        db.push("s", {"ts": 1, "v": 2})
    with hr.connect(runner="inline", storage=tmp_path) as db:
        db.execute(
            text.replace("STREAM s", "STREAM IF NOT EXISTS s").replace("QUERY q", "QUERY IF NOT EXISTS q")
        )
        db.sync()
        assert [query.name for query in db.queries] == ["q"]


def test_a_stream_is_replaced_by_what_it_takes(db: hr.Database) -> None:
    db.execute(f"CREATE OR REPLACE {STREAM}; CREATE QUERY q AS SELECT * FROM s")
    db.start()
    db.push("s", {"ts": 5, "v": 1})
    db.execute(f"CREATE OR REPLACE {STREAM}")
    wider = STREAM.replace("v BIGINT", "v BIGINT, w BIGINT") + " DISORDER 3"
    for _ in range(2):
        db.execute(f"CREATE OR REPLACE {wider}")
    db.push("s", [{"ts": 10, "v": 2, "w": 7}, {"ts": 9, "v": 3}, {"ts": 20, "v": 4}])
    assert [row["v"] for row in db["q"].history().to_pylist()] == [1, 3, 2]
    assert created(db, "STREAM", "s") == f"CREATE {wider};"
    db.execute(f"CREATE OR REPLACE {wider.replace('DISORDER 3', 'DISORDER 4')}")
    assert "DISORDER 4" in created(db, "STREAM", "s")
    for other in (STREAM, wider.replace("v BIGINT", "v DOUBLE"), wider.replace("BY ts", "BY w")):
        with pytest.raises(
            LanguageError, match="the stream s cannot be replaced: it is used by the query q; there is"
        ):
            db.execute(f"CREATE OR REPLACE {other}")
    db.execute("DROP QUERY q")
    db.execute(f"CREATE OR REPLACE {STREAM}")
    assert created(db, "STREAM", "s") == f"CREATE {STREAM};"


def test_a_stream_that_was_handed_over_has_no_text_to_be_compared(db: hr.Database) -> None:
    db.stream("s", pa.table({"ts": [1], "v": [2]}), timestamp="ts")
    db.query("SELECT v FROM s", "q")
    with pytest.raises(LanguageError, match="used by the query q; there is: it was handed over"):
        db.execute(f"CREATE OR REPLACE {STREAM}")
    db.execute(f"DROP QUERY q; CREATE OR REPLACE {STREAM}")
    assert created(db, "STREAM", "s") == f"CREATE {STREAM};"


def test_of_two_changes_neither_is_made_where_one_is_refused(db: hr.Database) -> None:
    db.execute(f"CREATE {STREAM}; CREATE QUERY q AS SELECT v FROM s")
    wider = STREAM.replace("v BIGINT", "v BIGINT, w BIGINT")
    with pytest.raises(LanguageError, match="has a unit"):
        db.execute(f"CREATE OR REPLACE {wider} RETAIN 5 SECONDS")
    assert created(db, "STREAM", "s") == f"CREATE {STREAM};"
    db.execute(f"CREATE OR REPLACE {wider} DISORDER 3")
    db.execute(f"CREATE OR REPLACE {wider}")
    assert created(db, "STREAM", "s") == f"CREATE {wider};"


def test_a_derived_stream_and_a_relation_are_replaced_where_nothing_reads_them(
    db: hr.Database, tmp_path: Path
) -> None:
    db.execute(SCRIPT, base=tmp_path)
    doubled = "CREATE OR REPLACE STREAM doubled AS SELECT ts, v * 3 AS v FROM s"
    with pytest.raises(LanguageError, match="doubled cannot be replaced: it is used by the query large"):
        db.execute(doubled)
    db.execute("DROP QUERY large CASCADE")
    db.execute(doubled + "; CREATE QUERY beside AS SELECT v FROM s")
    db.start()
    db.execute(doubled.replace("3", "4"))
    assert "v * 4" in created(db, "STREAM", "doubled")
    with pytest.raises(LanguageError, match="no column nothing"):
        db.execute("CREATE OR REPLACE STREAM doubled AS SELECT nothing FROM s")
    assert "v * 4" in created(db, "STREAM", "doubled")
    relation = "CREATE OR REPLACE RELATION names (k BIGINT) KEY (k) FROM csv OPTIONS (path '{}')"
    with pytest.raises(UserError, match="no such file"):
        db.execute(relation.format("elsewhere.csv"), base=tmp_path)
    assert "name STRING" in created(db, "RELATION", "names")
    db.execute(relation.format("names.csv"), base=tmp_path)
    assert "name STRING" not in created(db, "RELATION", "names")
