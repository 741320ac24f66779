"""A secret that is written out in an option of a source or a sink is in no answer, error, log or file."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

import headrace as hr
from headrace.errors import UserError
from headrace.runtime.delivery.kinds import SinkKind, options_of
from headrace.runtime.sources.files.remote import ACCOUNT_OPTIONS

MARK: Final = "sesame"
ROWS: Final = b"ts,v\n1,2\n2,x\n3,4\n"


class _Rows(BaseHTTPRequestHandler):
    """Gives rows, one of which is none, at `/rows.csv`, and refuses everything else."""

    def _answer(self, *, body: bool) -> None:
        found = self.path.startswith("/rows.csv")
        self.send_response(200 if found else 403)
        self.send_header("Content-Length", str(len(ROWS)))
        self.end_headers()
        if body:
            self.wfile.write(ROWS)

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_POST(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Rows) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


ADDRESSES: Final = (
    f"http://HOST/PATH?api_key={MARK}",
    f"http://HOST/PATH?sv=2020&sig={MARK}",
    f"http://HOST/PATH?key={MARK}",
    f"http://HOST/PATH?X-Amz-Credential=a&X-Amz-Signature={MARK}",
    f"http://HOST/PATH?a=1&access_token={MARK}",
    f"http://ann:{MARK}@HOST/PATH",
    f"http://{MARK}@HOST/PATH",
)
STORE: Final = "path 's3://b/x.csv', endpoint 'http://HOST', region 'x'"
SOURCES: Final = (
    *(f"csv OPTIONS (path '{one}')" for one in ADDRESSES),
    *(f"csv OPTIONS ({STORE}, access_key 'a', {one} '{MARK}')" for one in ("secret_key", "session_token")),
    f"csv OPTIONS ({STORE}, access_key '{MARK}', secret_key 'b')",
    *(f"http OPTIONS (url '{one}', poll '1 second', format 'csv')" for one in ADDRESSES),
    f"http OPTIONS (url 'http://HOST/PATH', format 'csv', authorization 'Bearer {MARK}')",
    f"http OPTIONS (url 'http://HOST/PATH', format 'csv', header.`X-Api-Key` '{MARK}')",
    f"http OPTIONS (url 'http://HOST/PATH', format 'csv', header.Cookie '{MARK}')",
    f"kafka OPTIONS (brokers 'HOST', topic 't', sasl.password '{MARK}')",
    f"kafka OPTIONS (brokers 'HOST', topic 't', format 'avro', schema_registry 'http://a:{MARK}@HOST')",
    f"push OPTIONS (signature 'X-Signature', secret '{MARK}')",
)
SINKS: Final = (
    *(f"webhook OPTIONS (url '{one}')" for one in ADDRESSES),
    f"webhook OPTIONS (url 'http://HOST/PATH', authorization '{MARK}')",
    f"table OPTIONS (url 'postgresql://a:{MARK}@HOST/x', table 't')",
    f"table OPTIONS (url 'postgresql://HOST/x?password={MARK}', table 't')",
    f"table OPTIONS (url 'postgresql://HOST/x', table 't', user 'a', password '{MARK}')",
    f"kafka OPTIONS (brokers 'HOST', topic 't', sasl.password '{MARK}')",
    f"kafka OPTIONS (brokers 'HOST', topic 't', format 'avro', schema_registry 'http://a:{MARK}@HOST')",
)


@pytest.mark.parametrize("path", ["rows.csv", "refused"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_secret_of_a_stream(
    source: str, path: str, web: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if path == "refused" and "PATH" not in source:
        return
    named = source.replace("HOST", web).replace("PATH", path)
    check(f"CREATE STREAM x (ts BIGINT, v BIGINT) FROM {named} TIMESTAMP BY ts", tmp_path, caplog)


@pytest.mark.parametrize("source", [one for one in SOURCES if one.startswith("csv")])
def test_a_secret_of_a_relation(
    source: str, web: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    named = source.replace("HOST", web).replace("PATH", "rows.csv")
    check(f"CREATE RELATION x (ts BIGINT, v BIGINT) KEY (ts) FROM {named}", tmp_path, caplog)


@pytest.mark.parametrize("sink", SINKS)
def test_a_secret_of_a_sink(sink: str, web: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    named = sink.replace("HOST", web).replace("PATH", "refused")
    made = (
        "CREATE STREAM x (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts; CREATE QUERY q AS SELECT v FROM x"
    )
    shown = check(f"{made}; CREATE SINK k FOR q TO {named}", tmp_path, caplog)
    assert "SECRET 'name'" in shown[0] or "has a user" in shown[0], "the way to write it is said"


def check(text: str, folder: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Carry out a text, look everywhere, and give the errors and whatever else was shown."""
    caplog.set_level(logging.DEBUG)
    shown = [""]
    with hr.connect(runner="inline", storage=folder / "store") as db:
        try:
            db.execute(text)
        except UserError as error:
            shown[0] = f"{error}, {error!r}"
        if "x" in db.streams:
            with suppress(UserError):
                db.execute("CREATE QUERY seen AS SELECT v FROM x")
            with suppress(UserError):
                db.start()
            wait(db)
            shown += [json.dumps(db.status.to_dict()), str(db.status), str(dict(db.problems))]
            shown += [str(db.dead_letters().to_pylist())]
        for asked in (
            *("SHOW STREAMS", "SHOW RELATIONS", "SHOW SINKS", "SHOW CREATE STREAM x", "SHOW CREATE SINK k"),
            *("SHOW CREATE RELATION x", "DESCRIBE x", "DESCRIBE k", "EXPLAIN SELECT v FROM x", "WHY seen"),
        ):
            try:
                shown += map(str, db.execute(asked))
            except UserError as error:
                shown.append(str(error))
        shown.append(db.served.catalog)
    shown.append(caplog.text)
    assert [one for one in shown if MARK in one] == []
    files = [path for path in (folder / "store").rglob("*") if path.is_file()]
    assert [path.name for path in files if MARK.encode() in path.read_bytes()] == []
    return shown


def wait(db: hr.Database) -> None:
    """Until the rows have come, or there is a problem; where neither comes, there is nothing more to see."""
    end = time.monotonic() + 0.5
    while time.monotonic() < end and not db.problems and db.dead_letters().num_rows == 0:
        time.sleep(0.02)


def test_every_option_of_a_sink_has_been_judged() -> None:
    secret = {"authorization", "password"}
    addresses = {"url", "schema_registry"}
    plain = {"path", "topic", "brokers", "key", "form", "format", "timeout", "table", "user", "driver"}
    found = {name for kind in SinkKind for part in _names(kind) for name in part}
    assert found == secret | addresses | plain, "may a new one hold a secret?"
    assert set(ACCOUNT_OPTIONS) >= {"access_key", "secret_key", "session_token"}


def _names(kind: SinkKind) -> tuple[tuple[str, ...], ...]:
    options = options_of(kind)
    return options.needed, options.others


def test_the_address_of_a_webhook_is_shown_without_its_path(web: str) -> None:
    with hr.connect(runner="inline") as db:
        db.execute(
            "CREATE STREAM x (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;"
            "CREATE QUERY q AS SELECT v FROM x"
        )
        db.execute(f"CREATE SINK k FOR q TO webhook OPTIONS (url 'http://{web}/services/{MARK}')")
        shown = str(db.execute("SHOW SINKS")[0])
        assert f"http://{web}/..." in shown
        assert MARK not in shown
