"""Streams of what an address of the web answers: each answer counts once, and errors are waited out."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from waiting import wait_until


class Site(http.server.ThreadingHTTPServer):
    """Answers with what it has, to whoever has the password."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.body = b""
        self.status = 200
        self.has_tags = True
        self.said: list[int] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/rows?page=1"


class Answers(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        tag = f'"{hash(self.server.body)}"' if self.server.has_tags else None
        status = self.server.status
        if self.headers["Authorization"] != "Bearer x":
            status = 401
        elif tag is not None and self.headers["If-None-Match"] == tag:
            status = 304
        self.server.said.append(status)
        self.send_response(status)
        if tag is not None:
            self.send_header("ETag", tag)
        self.end_headers()
        if status == 200:
            self.wfile.write(self.server.body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("HEADRACE_SECRET_SITE", "Bearer x")
    found = Site()
    yield found
    found.shutdown()
    found.server_close()


def stream(site: Site, columns: str = "v BIGINT, ts BIGINT", more: str = "") -> str:
    return (
        f"CREATE STREAM s ({columns}) FROM http OPTIONS (url '{site.url}', poll '5 milliseconds', "
        f"authorization SECRET 'site'{more}) TIMESTAMP BY ts DISORDER 100"
    )


QUERY = "CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s"


def lines(*values: int) -> bytes:
    return "\n".join(json.dumps({"v": v, "ts": v}) for v in values).encode()


def values(db: hr.Database) -> list[int]:
    return sorted(one["v"] for one in db.queries["q"].changes().to_pylist())


@pytest.mark.parametrize("has_tags", [True, False])
def test_each_answer_counts_once_also_after_a_restart(site: Site, tmp_path: Path, has_tags: bool) -> None:
    site.body, site.has_tags = lines(1, 2), has_tags
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(f"{stream(site)}; {QUERY}")
        db.start()
        wait_until(lambda: values(db), [1, 2])
        asked = len(site.said)
        wait_until(lambda: len(site.said) > asked + 3, True)
        assert values(db) == [1, 2]
        # As an array, and with a row that was there before.
        site.body = b'[{"v": 2, "ts": 2}, {"v": 3, "ts": 3}]'
        wait_until(lambda: values(db), [1, 2, 2, 3])
    assert (304 in site.said) == has_tags
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.start()
        asked = len(site.said)
        wait_until(lambda: len(site.said) > asked + 3, True)
        assert values(db) == [1, 2, 2, 3]
        site.body = lines(4)
        wait_until(lambda: values(db), [1, 2, 2, 3, 4])


def test_csv_with_computed_columns_and_rows_that_are_not_valid(site: Site) -> None:
    site.body = b"v;at\n1;5\nx;6\n3;7\n"
    with hr.connect(runner="inline") as db:
        db.execute(f"{stream(site, 'v BIGINT, at STRING, ts AS CAST(at AS BIGINT)', CSV)}; {QUERY}")
        db.start()
        wait_until(lambda: values(db), [1, 3])
        (letter,) = db.dead_letters().to_pylist()
        # What is behind the question mark may be secret.
        assert letter["place"] == f"{site.url.partition('?')[0]}:3"
        assert letter["reason"] == "v is not a valid BIGINT: 'x'"
        site.body = b"other;at\n1;5\n"
        wait_until(lambda: len(db.dead_letters()), 2)
        reason = db.dead_letters().to_pylist()[1]["reason"]
        assert "there is no column v" in reason
        site.body = b"v;at\n4;5\n"
        wait_until(lambda: values(db), [1, 3, 4])


def test_answers_that_wrap_their_rows(site: Site) -> None:
    wrapped = {"count": 2, "data": {"note": "[{]", "rows": [{"V": 1, "ts": 1}, {"other": 2}]}}
    site.body = json.dumps(wrapped).encode()
    with hr.connect(runner="inline") as db:
        db.execute(f"{stream(site)}; {QUERY}")
        db.start()
        # Without the path an answer is one object, which has no column of the stream.
        wait_until(lambda: len(db.dead_letters()), 1)
        (letter,) = db.dead_letters().to_pylist()
        assert letter["reason"] == "the object has none of the columns; its keys are count, data"
    with hr.connect(runner="inline") as db:
        db.execute(f"{stream(site, more=', path ' + repr('data.rows'))}; {QUERY}")
        db.start()
        wait_until(lambda: values(db), [1])
        site.body = b'{"data": \n {"rows": [\n{"v": 3, "ts": 3},\n{"v": "x", "ts": 4}]}}'
        wait_until(lambda: values(db), [1, 3])
        site.body = b'{"data": {"row": []}}'
        wait_until(lambda: len(db.dead_letters()), 3)
        letters = [(one["place"].rpartition(":")[2], one["reason"]) for one in db.dead_letters().to_pylist()]
        assert letters[0] == ("2", "the object has none of the columns; its keys are other")
        assert letters[1] == ("2", 'v is not a valid BIGINT: "x"')
        assert "the answer has no rows at data.rows: there is no rows" in letters[2][1]


CSV = ", format 'csv', delimiter ';'"


def test_errors_are_waited_out(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.body, site.status = lines(1), 503
    with hr.connect(runner="inline") as db:
        db.execute(f"{stream(site)}; {QUERY}")
        db.start()
        wait_until(lambda: "answers 503" in caplog.text, True)
        wait_until(lambda: any("cannot be read for now" in one.message for one in db.why("q").findings), True)
        site.status = 200
        wait_until(lambda: values(db), [1])
        assert db.problems == {}
    assert "key=1" not in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("poll '1 second'", "the option url is missing"),
        ("url 'ftp://host/x'", "the url is not an address of the web"),
        ("url 'http://user:pw@host/x'", "the url has a user in it"),
        ("url 'http://host/x', format 'xml'", "answers have no format xml"),
        ("url 'http://host/x', poll 'soon'", "the option poll"),
        ("url 'http://host/x', path 'x..y'", "the option path is 'x..y' .hint: write keys"),
        ("url 'http://host/x', format 'csv', path 'x'", "answers in csv have no path"),
        ("url 'http://host/x', delimiter ';'", "the format json has no option delimiter"),
    ],
)
def test_wrong_options_are_refused_with_a_hint(options: str, message: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match=message) as found:
        db.execute(f"CREATE STREAM s (v BIGINT, ts BIGINT) FROM http OPTIONS ({options}) TIMESTAMP BY ts")
    assert found.value.hint
    assert "user:pw" not in str(found.value)


def test_closed_policies_do_not_ask_addresses() -> None:
    text = "CREATE STREAM s (ts BIGINT) FROM http OPTIONS (url 'http://127.0.0.1:1/') TIMESTAMP BY ts"
    with hr.connect(runner="inline") as db, pytest.raises(hr.PolicyError, match="created FROM http"):
        db.execute(text, policy=hr.Policy.closed())


def test_what_is_in_the_catalog_names_the_secret_alone(site: Site, tmp_path: Path) -> None:
    site.body = lines(1)
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.execute(f"{stream(site)}; {QUERY}")
        db.start()
        wait_until(lambda: values(db), [1])
        shown: list[Any] = db.execute("SHOW CREATE STREAM s")
        assert "SECRET 'site'" in str(shown[0])
    for path in (tmp_path / "s").rglob("*"):
        assert not path.is_file() or b"Bearer" not in path.read_bytes(), path
