"""`headrace.Client` at a real server."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.client import GoneError
from headrace.client.errors import error_of
from headrace.client.rows import rows_of
from headrace.errors import HeadraceError, LanguageError, PolicyError, Position, SourceError
from headrace.language.named_values import ParameterValue
from headrace.runtime.writing.tables import write_table
from headrace.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP
from headrace.server.keys import KeyFile, Role
from unit.server.serving_for_tests import running

TEXT = """CREATE STREAM s (ts BIGINT, item STRING, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM timed (at TIMESTAMP, day DATE, price DECIMAL(10, 2)) FROM push TIMESTAMP BY at;
CREATE STREAM came (v BIGINT, doubled AS 2 * v) FROM push TIMESTAMP BY ARRIVAL AS came_at;
CREATE QUERY q AS SELECT item, SUM(v) AS t FROM s [RANGE 10] GROUP BY item;
CREATE QUERY prices AS SELECT day, price FROM timed [RANGE 1 HOUR];
CREATE QUERY arrived AS SELECT v, doubled FROM came [RANGE 1 HOUR];
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("served")) as url:
        hr.Client(url).execute(TEXT)
        hr.Client(url).push("s", [{"ts": 1, "item": "pen", "v": 3}, {"ts": 5, "item": "cup", "v": 4}])
        yield url


@pytest.fixture
def client(url: str) -> hr.Client:
    return hr.Client(url, timeout=20)


def test_statements_and_what_is_defined(client: hr.Client) -> None:
    assert (
        client.execute("CREATE QUERY other AS SELECT v FROM s; SHOW DIALECT; DROP QUERY other")[0] == "other"
    )
    assert {one.name for one in client.streams} == {"s", "timed", "came"}
    assert [one.name for one in client.queries] == ["q", "prices", "arrived"]
    assert dict(client.query("Q").columns) == {"item": "STRING", "t": "BIGINT"}
    assert client.query("prices").schema.arrow().types == [DATE, pa.decimal128(10, 2)]
    assert client.relations == ()
    assert "CREATE QUERY q AS SELECT item" in client.catalog


def test_parameters(client: hr.Client) -> None:
    text = "CREATE QUERY dear AS SELECT v, :at AS at FROM s WHERE item = :item AND v > :least;"
    values: dict[str, ParameterValue] = {
        "least": Decimal("1.5"),
        "item": "it's",
        "at": datetime(2024, 5, 1, tzinfo=UTC),
    }
    client.execute(text, parameters=values)
    shown = " ".join(client.catalog.split())
    assert "item = 'it\\'s' AND v > 1.5" in shown
    assert "TIMESTAMP '2024-05-01" in shown
    client.execute("DROP QUERY dear")
    asked = client.ask(
        "SELECT :item AS item, :at AS at, t FROM HISTORY OF q WHERE t > :least AND item = 'pen'",
        parameters=values,
    )
    assert asked.to_pylist()[0] == {"item": "it's", "at": values["at"], "t": 3}
    with pytest.raises(LanguageError) as caught:
        client.execute("SELECT v FROM s\nWHERE v > :missing", parameters={"v": 1})
    assert (caught.value.position, caught.value.message) == (
        Position(2, 11), "the parameter :missing has no value",
    )  # fmt: skip


def test_answers_are_arrow_tables(client: hr.Client) -> None:
    expected = {"item": ["pen"], "t": [3], "valid_from": [1], "valid_to": [5]}
    assert client.history("q").to_pydict() == expected
    assert client.history("q", tunings=True).to_pydict() == {**expected, "tunings": [[]]}
    assert client.changes("q").column_names == ["epoch", "item", "t", "valid_from", "valid_to", "change"]
    assert (
        client.snapshot("q").to_pydict() == client.snapshot("q", 4).to_pydict() == {"item": ["pen"], "t": [3]}
    )
    assert client.snapshot("q", 4, as_of=1).num_rows == 1
    assert client.snapshot("q", 4, last=2).num_rows == client.snapshot("q", 4, since=-4).num_rows == 1
    assert client.snapshot("q", 0, last="1").num_rows == 0
    with pytest.raises(hr.UserError, match="both say where"):
        client.snapshot("q", 4, last=1, since=4)
    with pytest.raises(hr.UserError, match="has a unit"):
        client.snapshot("q", 4, last=timedelta(minutes=1))
    assert client.tail("q", 1).to_pydict() == expected
    assert client.tail("q", 0).num_rows == 0
    client.execute("ALTER STREAM s RETAIN ALL")
    assert client.rows("s").num_rows == 0
    assert client.query("q").more["events"] is False
    assert client.epochs("q")["epoch"].to_pylist()[0] == 1
    assert client.ask("SELECT t + 1 AS u FROM HISTORY OF q").to_pydict() == {"u": [4]}
    assert client.dead_letters().num_rows == 0
    assert client.why("q").startswith("q has yielded")
    assert client.status()["running"] is True


def test_rows_of_any_form_are_pushed(client: hr.Client) -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    rows = [{"at": noon, "day": date(2024, 1, 1), "price": Decimal("1.50")}]
    with pytest.raises(SourceError, match="no column dai") as error:
        client.push("timed", {"at": noon, "dai": None, "price": 2})
    assert error.value.hint == "did you mean day?"
    assert client.push("timed", rows)
    assert client.push("timed", {"AT": noon, "price": 2, "day": None})
    assert client.push(
        "timed", pa.table({"at": [noon], "day": [None], "price": pa.array([3], pa.decimal128(10, 2))})
    )
    assert client.push_json("timed", '{"at": "2024-01-01T12:00:01Z", "day": "2024-01-02", "price": 4}')
    client.heartbeat("timed", datetime(2024, 1, 1, 12, 1, tzinfo=UTC))
    found = client.history("prices").to_pydict()
    assert sorted(found["price"]) == [Decimal("1.50"), Decimal("2.00"), Decimal("3.00"), Decimal("4.00")]
    assert sorted(filter(None, found["day"])) == [date(2024, 1, 1), date(2024, 1, 2)]
    assert found["valid_from"][0] == noon


def test_streams_timed_by_arrival_take_rows_without_an_instant(client: hr.Client) -> None:
    assert client.push("came", {"v": 1})
    assert client.push_json("came", '[{"v": 2}]')


def test_changes_of_a_relation_are_pushed(client: hr.Client) -> None:
    client.execute(
        "CREATE RELATION tag (op STRING, id BIGINT, word STRING, ts BIGINT) KEY (id) FROM push "
        "CHANGES BY op TIMESTAMP BY ts; CREATE QUERY tags AS SELECT id, word FROM tag"
    )
    rows = [("insert", "old"), ("update", "new"), ("delete", None), ("insert", "last")]
    assert client.push("tag", [{"op": op, "id": 1, "word": word, "ts": 3} for op, word in rows])
    client.heartbeat("tag", 5)
    assert client.snapshot("tags", 4).to_pylist() == [{"id": 1, "word": "last"}]
    client.execute("DROP QUERY tags; DROP RELATION tag")


def test_a_numbered_push_is_taken_once(client: hr.Client) -> None:
    row = {"ts": 5, "item": "ink", "v": 0}
    assert client.push("s", row, producer="pi", sequence=1)
    assert not client.push("s", row, producer="pi", sequence=1)
    assert not client.push("s", row, producer="pi", sequence=2, wait=False)
    assert client.push("s", row, producer="pi", sequence=3)


def test_errors_are_those_of_the_library(client: hr.Client) -> None:
    with pytest.raises(LanguageError) as wrong:
        client.execute("SELECT item\n  FROM nothing")
    assert wrong.value.position == Position(2, 8)
    assert wrong.value.message.startswith("there is no stream nothing")
    with pytest.raises(PolicyError):
        client.execute("CREATE STREAM r FROM csv OPTIONS (path='/etc/passwd') TIMESTAMP BY ts")
    with pytest.raises(hr.UserError, match="there is no query nothing"):
        client.history("nothing")
    with pytest.raises(hr.UserError, match="x y%"):
        client.subscribe("x y%")
    with pytest.raises(hr.UserError, match="ts is not"):
        client.push("s", {"ts": "soon", "item": "pen", "v": 1})
    with pytest.raises(hr.UserError, match="not JSON"):
        client.push_json("s", "{1}")


def test_a_server_that_is_not_there() -> None:
    for wrong in ("nothing", "ftp://x", "http://", "http://x:y", "http://x?y"):
        with pytest.raises(hr.UserError, match="is not the URL of a server"):
            hr.Client(wrong)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(hr.UserError, match=r"cannot be reached: .*refused") as error:
            hr.Client(url).status()
    assert error.value.hint == "is `headrace serve` running there?"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 1}'])
def test_what_another_server_answers(body: bytes) -> None:
    assert "not as Headrace does" in str(error_of(502, body))


def test_changes_that_are_gone_say_where_to_start() -> None:
    error = error_of(410, b'{"error": {"kind": "gone", "message": "m"}, "start_from": {"id": "1.2.0.end"}}')
    assert isinstance(error, GoneError)
    assert (error.message, error.resume, error.snapshot) == ("m", "1.2.0.end", None)


def test_changes_come_as_they_are_committed(client: hr.Client) -> None:
    with client.subscribe("q", after="now") as news:
        pushed = threading.Thread(target=client.push, args=("s", {"ts": 5, "item": "net", "v": 7}))
        # What is pushed before the subscription is there would not be news.
        connected, read = threading.Event(), news._connect

        def connect() -> object:
            stream = read()
            connected.set()
            return stream

        news._connect = connect  # type: ignore[method-assign,assignment]
        found: list[object] = []
        reader = threading.Thread(target=lambda: found.append(next(news)))
        reader.start()
        assert connected.wait(20)
        pushed.start()
        client.push("s", {"ts": 9, "item": "net", "v": 1})
        reader.join(20)
        pushed.join(20)
        assert found


def test_closing_ends_whoever_waits(client: hr.Client) -> None:
    news = client.subscribe("q")
    assert next(news).rows.num_rows
    ended = threading.Event()

    def read() -> None:
        for _ in news:
            pass
        ended.set()

    reader = threading.Thread(target=read)
    reader.start()
    news.close()
    reader.join(20)
    assert ended.is_set()


def test_rows_in_events_are_what_was_written() -> None:
    types = [STRING, BIGINT, DOUBLE, DATE, TIMESTAMP, BOOLEAN, pa.decimal128(30, 2), pa.list_(BIGINT)]
    columns = [
        ["a\n\"'", None, "12"],
        [2**63 - 1, None, -(2**63)],
        [float("inf"), None, 0.1],
        [date(1, 1, 1), None, date(2024, 1, 1)],
        pa.array([-(2**62), None, 2**62], pa.int64()).view(TIMESTAMP),
        [True, None, False],
        [Decimal("1234567890123456789012345.67"), None, Decimal("-0.01")],
        [[1, None], None, []],
    ]
    arrays = [pa.array(values, dtype) for values, dtype in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=[f"c{place}" for place in range(len(types))])
    text = _json_lines(table)
    told, found = rows_of(f'{{"epoch": 3, "rows": [{",".join(text.splitlines())}]}}', types)
    assert found.equals(table)
    assert told == {"epoch": "3"}
    with pytest.raises(HeadraceError, match="other columns"):
        rows_of('{"rows": [{"a": 1}]}', types)
    with pytest.raises(HeadraceError, match="not of the type"):
        rows_of('{"rows": [{"a": "x"}]}', [BIGINT])


def _json_lines(table: pa.Table) -> str:
    text = io.StringIO()
    write_table(table, "jsonl", text)
    return text.getvalue()


def test_a_key_is_sent_where_one_is_needed(tmp_path: Path) -> None:
    secret = KeyFile(tmp_path / "keys.json").add("reader", Role.READ)
    with running(tmp_path) as url:
        with pytest.raises(hr.UserError, match="a key is needed"):
            hr.Client(url).status()
        reader = hr.Client(url, secret)
        assert reader.status()["epoch"] == 0
        with pytest.raises(PolicyError):
            reader.execute(TEXT)
        assert secret not in repr(reader)
