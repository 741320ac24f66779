"""CREATE SINK: where the changes of a query go, kept with the catalog and begun again exactly once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pytest

import headrace as hr
from headrace.errors import DeliveryError, LanguageError, PolicyError, UserError

BEGIN = """
CREATE STREAM s (v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v, COUNT(*) AS n FROM s [RANGE 10] GROUP BY v;
"""
OUT = "CREATE SINK drain FOR q TO json OPTIONS (path 'out')"


def connected(folder: Path, **options: Any) -> hr.Database:
    return hr.connect(runner="inline", storage=folder / "store", **options)


def push(db: hr.Database, *instants: int) -> None:
    for ts in instants:
        db.push("s", [{"v": ts % 3, "ts": ts}])


def delivered(folder: Path) -> list[dict[str, Any]]:
    lines = (path.read_text().splitlines() for path in sorted(folder.glob("*.jsonl")))
    return [json.loads(line) for part in lines for line in part]


def shown(db: hr.Database) -> str:
    return str(db.execute("SHOW SINKS")[0])


def test_a_sink_goes_on_with_the_catalog_and_misses_nothing(tmp_path: Path) -> None:
    with connected(tmp_path) as db:
        db.execute(BEGIN)
        db.start()
        push(db, 1, 2)
        db.execute(OUT, base=tmp_path)
        db.execute("COMMENT ON SINK drain IS 'for the others'")
        push(db, 3)
        db.stop()
        assert f"{tmp_path}/out" in shown(db)
    with connected(tmp_path) as db:
        made = str(db.execute("SHOW CREATE SINK drain")[0])
        assert made == f"CREATE SINK drain FOR q TO json OPTIONS (path '{tmp_path}/out');"
        told = str(db.execute("DESCRIBE SINK drain; DESCRIBE QUERY q")[0])
        assert "SINK drain: for the others" in told
        db.start()
        push(db, 4, 30)
        db.stop()
        assert delivered(tmp_path / "out") == db["q"].changes().to_pylist()
        assert len({row["epoch"] for row in delivered(tmp_path / "out")}) > 3


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_each_kind_of_file(tmp_path: Path, kind: str) -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1, 2], "v": [10, 20]}), timestamp="ts")
        db.execute("CREATE QUERY q AS SELECT v FROM s")
        db.execute(f"CREATE SINK drain FOR q TO {kind} OPTIONS (path '{tmp_path}/out', attempts 2)")
        db.run()
        found = pyarrow.dataset.dataset(tmp_path / "out", format=kind).to_table()
        assert found["v"].to_pylist() == db["q"].changes()["v"].to_pylist() == [10, 20]


def test_a_text_that_is_given_again_changes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with connected(tmp_path) as db:
            db.execute(f"{BEGIN}{OUT}", base=tmp_path)
            db.start()
            push(db, db.status.epoch * 10 + 1)
            db.stop()
            assert delivered(tmp_path / "out") == db["q"].changes().to_pylist()
    with connected(tmp_path) as db:
        with pytest.raises(
            LanguageError, match=r"^4:1: the store has another sink drain: .*hint: DROP SINK drain"
        ):
            db.execute(f"{BEGIN}{OUT.replace('json', 'csv')}", base=tmp_path)
        db.execute("CREATE QUERY other AS SELECT v FROM s")
        db.sync()
        assert "drain" not in shown(db)


def test_a_query_goes_with_its_sinks_or_not_at_all(tmp_path: Path) -> None:
    with connected(tmp_path) as db:
        more = "CREATE SINK more FOR q TO csv OPTIONS (path 'more')"
        db.execute(f"{BEGIN}{OUT}; {more}", base=tmp_path)
        db.start()
        push(db, 1, 2)
        with pytest.raises(LanguageError, match=r"its answer goes to the sink drain, the sink more.*CASCADE"):
            db.execute("DROP QUERY q")
        db.execute("DROP SINK more; CREATE QUERY other AS SELECT v FROM s")
        push(db, 3)
        expected, epoch = db["q"].changes().to_pylist(), db.status.epoch
        db.execute("DROP QUERY q CASCADE")
        assert delivered(tmp_path / "out") == expected, "all that was committed"
        labels = [json.loads((tmp_path / name / "_headrace.json").read_text()) for name in ("more", "out")]
        assert [label["epoch"] for label in labels] == [3, epoch], "all up to its end, and no more"
        assert shown(db) == shown(hr.connect(runner="inline")), "none is left"
        assert not list((tmp_path / "store/sinks").iterdir())
        db.execute("DROP STREAM s CASCADE")


def test_a_sink_that_is_created_again_begins_anew(tmp_path: Path) -> None:
    """Whatever a killed process has left of the one before: its position is that of another sink."""
    with connected(tmp_path) as db:
        db.execute(f"{BEGIN}{OUT}", base=tmp_path)
        db.start()
        push(db, 1, 2)
        db.stop()
        position = next((tmp_path / "store/sinks").iterdir())
        left = position.read_bytes()
        db.start()
        db.execute("DROP SINK drain")
        position.write_bytes(left)
        db.execute(OUT.replace("'out'", "'new'"), base=tmp_path)
        db.stop()
        assert delivered(tmp_path / "new") == delivered(tmp_path / "out") == db["q"].changes().to_pylist()


def test_a_sink_that_cannot_be_used_is_not_defined(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").touch()
    with connected(tmp_path) as db:
        db.execute(BEGIN)
        db.start()
        with pytest.raises(DeliveryError, match=r"out is not empty \(hint: name an empty folder\)"):
            db.execute(OUT, base=tmp_path)
        assert "drain" not in shown(db)
        (tmp_path / "out/mine.txt").unlink()
        db.execute(OUT, base=tmp_path)
        push(db, 1)


def test_a_sink_may_begin_now(tmp_path: Path) -> None:
    """Where earlier results are no longer kept, it must."""
    with connected(tmp_path, retain_epochs=1) as db:
        db.execute(BEGIN.replace("v, COUNT(*) AS n FROM s [RANGE 10] GROUP BY v", "v FROM s"))
        db.start()
        push(db, 1, 2, 4)
        with pytest.raises(
            DeliveryError, match=r"results are kept from epoch .*hint: give the option from_epoch now"
        ):
            db.execute(OUT, base=tmp_path)
        db.execute(OUT.replace("'out'", "'out', from_epoch now"), base=tmp_path)
        push(db, 5)
        db.stop()
    with connected(tmp_path, retain_epochs=1) as db:
        db.start()
        push(db, 7, 8)
        db.stop()
        assert [row["valid_from"] for row in delivered(tmp_path / "out")] == [4, 5, 7]


def test_a_sink_follows_its_query_to_another_name(tmp_path: Path) -> None:
    with connected(tmp_path) as db:
        db.execute(f"{BEGIN}{OUT}", base=tmp_path)
        db.start()
        push(db, 1)
        db.execute("ALTER QUERY q RENAME TO `other q`")
        push(db, 2)
        assert "`other q`" in str(db.execute("SHOW CREATE SINK drain")[0])
        db.stop()
        db.start()
        assert [sink.query for sink in db.status.sinks] == ["other q"]
    with connected(tmp_path) as db:
        db.start()
        push(db, 3)
        db.stop()
        assert delivered(tmp_path / "out") == db["other q"].changes().to_pylist()


def test_a_query_is_not_replaced_by_one_that_its_sinks_cannot_take(tmp_path: Path) -> None:
    with connected(tmp_path) as db:
        db.execute(f"{BEGIN}{OUT}", base=tmp_path)
        db.start()
        push(db, 1)
        for what, text in (
            (r"other columns, \(v BIGINT\)", "SELECT v FROM s"),
            ("rows of an instant each in place of rows that last", "SELECT v, ts AS n FROM s"),
            ("another key", "SELECT v, ts AS n FROM s [RANGE 10]"),
        ):
            for statement in ("CREATE OR REPLACE QUERY", "EXPLAIN REPLACE"):
                with pytest.raises(LanguageError, match=f"with {what}: its answer is taken by drain"):
                    db.execute(f"{statement} q AS {text}")
        db.execute("CREATE OR REPLACE QUERY q AS SELECT v, COUNT(*) AS n FROM s [RANGE 20] GROUP BY v")
        push(db, 40)
        db.stop()
        assert delivered(tmp_path / "out") == db["q"].changes().to_pylist()


def test_sinks_of_python_are_shown_beside_those_of_sql(tmp_path: Path) -> None:
    with connected(tmp_path) as db:
        db.execute(f"{BEGIN}{OUT}", base=tmp_path)
        with pytest.raises(UserError, match="q has a sink drain already"):
            db["q"].deliver(lambda *_: None, name="drain")
        seen: list[int] = []

        def failing(epoch: int, heartbeat: int, table: pa.Table) -> None:
            seen.append(epoch)
            raise OSError("it is full")

        db["q"].deliver(failing, retry=hr.Retry(attempts=1))
        db.start()
        push(db, 1)
        with pytest.raises(DeliveryError, match="it is full"):
            db.stop()
        assert sorted((sink.name, sink.epoch, sink.behind) for sink in db.status.sinks) == [
            ("drain", 1, 0),
            ("failing", 0, 1),
        ]
        assert "Python" in shown(db)
        assert "it is full" in shown(db)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE SINK drain FOR w TO json OPTIONS (path 'x')", "1:23: there is no query w"),
        ("CREATE SINK drain FOR q TO jsonl OPTIONS (path 'x')", "no sinks TO jsonl .*did you mean json"),
        ("CREATE SINK drain FOR q TO json", "1:28: a sink TO json needs the option path .*path '...'"),
        ("CREATE SINK drain FOR q TO json OPTIONS (paht 'x')", "needs the option path"),
        ("CREATE SINK drain FOR q TO json OPTIONS (path 'x', keys 'v')", "has no option keys"),
        ("CREATE SINK drain FOR q TO json OPTIONS (path 's3://x')", "not a folder of this machine"),
        ("CREATE SINK drain FOR q TO json OPTIONS (path SECRET 'x')", "the option path is not secret"),
        ("CREATE SINK drain FOR q TO json OPTIONS (path 'x', attempts 0)", "attempts is a whole number"),
        ("CREATE SINK drain FOR q TO json OPTIONS (path 'x', pause 'a')", "pause is a number of seconds"),
        (
            "CREATE SINK drain FOR q TO kafka OPTIONS (topic 't', brokers 'b', sasl.password 'sesame')",
            r"the option sasl.password may hold a secret.*write sasl.password SECRET 'name'",
        ),
        (
            "CREATE SINK drain FOR q TO kafka OPTIONS (topic 't', brokers 'b', sasl.password SECRET 'none')",
            "there is no secret none .*HEADRACE_SECRET_NONE",
        ),
        (
            "CREATE SINK drain FOR q TO webhook OPTIONS (url 'http://h', authorization 'Bearer sesame')",
            "the option authorization may hold a secret",
        ),
        ("CREATE SINK drain FOR q TO webhook OPTIONS (url 'ftp://h')", "not an address of the web"),
        ("CREATE SINK drain FOR q TO webhook OPTIONS (url 'http://a@h')", "url may hold a secret"),
        ("CREATE SINK drain FOR q TO webhook OPTIONS (url 'http://h:x')", "not an address of the web"),
        ("CREATE SINK drain FOR q TO table OPTIONS (url 'mysql://h', table 't')", "not that of a database"),
        ("CREATE SINK drain FOR q TO table OPTIONS (url 'sqlite:x', table 't')", "not that of a database"),
        (
            "CREATE SINK drain FOR q TO table OPTIONS (url 'postgresql://h/d', table 't', driver 'x')",
            "driver is for an address that begins with jdbc:",
        ),
        (
            "CREATE SINK drain FOR q TO table OPTIONS (url 'postgresql://h/d?sslmode=maybe', table 't')",
            "a parameter that is not known",
        ),
        ("CREATE SINK `o-t` FOR q TO json OPTIONS (path 'x')", "'o-t' is not a valid sink name"),
        ("DROP SINK drain", "1:11: there is no sink drain"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(BEGIN)
        with pytest.raises(UserError, match=message):
            db.execute(text)
        assert "drain" not in shown(db)


def test_others_write_where_they_may(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link").symlink_to("../elsewhere")
    with hr.connect(runner="inline", storage=tmp_path / "store") as db:
        db.execute(BEGIN)
        with pytest.raises(PolicyError, match=r"1:1: sinks may not be created TO json .*allowed are: none"):
            db.execute(OUT, base=tmp_path, policy=hr.Policy.closed(folders=[tmp_path], formats=["json"]))
        named = hr.Policy.closed(sinks=["kafka", "table", "webhook"], outputs=[tmp_path])
        for options, message in (
            (
                "TO webhook OPTIONS (url 'http://h', authorization SECRET 'a')",
                "the secret of the option",
            ),
            ("TO kafka OPTIONS (topic 't', brokers 'b', ssl.key.location '/x')", "ssl.key.location may not"),
            ("TO table OPTIONS (table 't', url 'sqlite:////tmp/x')", "in a database of the network alone"),
        ):
            with pytest.raises(PolicyError, match=message):
                db.execute(f"CREATE SINK drain FOR q {options}", policy=named)
        asks = hr.Policy.closed(sinks=["json"], outputs=[tmp_path], may_define=False)
        with pytest.raises(PolicyError, match="CREATE SINK is not allowed"):
            db.execute(OUT, base=tmp_path, policy=asks)
        policy = hr.Policy.closed(sinks=["JSON"], outputs=[tmp_path / "in"])
        for path in ("out", "in/../out", "in/link", "in/link/x", "~/x", "/"):
            with pytest.raises(PolicyError, match="may not be written"):
                db.execute(OUT.replace("'out'", f"'{path}'"), base=tmp_path, policy=policy)
        db.execute(OUT.replace("'out'", "'in/out'"), base=tmp_path, policy=policy)
        with pytest.raises(PolicyError, match="DROP SINK is not allowed"):
            db.execute("DROP SINK drain", policy=policy)
        db.start()
        push(db, 1)
    (tmp_path / "in/out").rename(tmp_path / "moved")
    (tmp_path / "in/out").symlink_to(tmp_path / "moved")
    with connected(tmp_path) as db, pytest.raises(UserError, match="may not be written"):
        db.start()
