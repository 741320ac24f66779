"""A secret that a statement names is used, and is in nothing that anybody can read afterwards."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.run.core import Core
from headrace.errors import LanguageError, SourceError
from unit.server.serving_for_tests import running

SECRET, READER = "sesame-1001", "sesame-2002"
RELATION = """CREATE RELATION room (id BIGINT, name STRING) KEY (id) FROM jdbc
OPTIONS (url 'jdbc:postgresql://host/db', user SECRET 'reader', password SECRET 'broker')"""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """What a data source is given, in the place of Spark's."""
    seen: list[Mapping[str, str]] = []

    def read_frame(_: Core, format: str, options: Mapping[str, str]) -> Any:
        seen.append(options)
        if "broken" in options["url"]:
            sent = options["password"]
            raise SourceError(f"{options['user']} was refused with {sent}", hint=sent)
        return pa.table({"id": [1], "name": ["hall"]})

    monkeypatch.setattr(Core, "read_frame", read_frame)
    monkeypatch.setenv("HEADRACE_SECRET_BROKER", SECRET)
    monkeypatch.setenv("HEADRACE_SECRET_READER", READER)
    monkeypatch.setattr("headrace.engine.inputs.whole_frames.sorted_rows", lambda frame, wanted: frame)
    return seen


def test_a_secret_is_in_no_text_answer_file_or_log(
    given: list[Mapping[str, str]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = []
    store = tmp_path / "store"
    with hr.connect(runner="inline", storage=store) as db:
        db.execute(RELATION)
        assert given[0]["password"] == SECRET
        db.execute("CREATE STREAM r (ts BIGINT, id BIGINT) FROM push TIMESTAMP BY ts")
        db.execute("CREATE QUERY q AS SELECT x.name FROM r [NOW] JOIN room x ON x.id = r.id")
        db.start()
        db.push("r", {"ts": 1, "id": 1})
        with pytest.raises(SourceError) as caught:
            db.execute(RELATION.replace("RELATION room", "RELATION other").replace("host/db", "broken/db"))
        assert "*** was refused with ***" in str(caught.value)
        shown += [repr(caught.value), str(caught.value)]
        asked = "SHOW CREATE RELATION room; DESCRIBE room; SHOW RELATIONS; EXPLAIN SELECT name FROM room"
        texts = [str(text) for text in db.execute(asked)]
        assert "password SECRET 'broker'" in texts[0]
        shown += [*texts, db.served.catalog, str(db.status)]
    with running(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert len(given) == 3, "the store has what makes the relation again"
        paths = ("/catalog", "/relations", "/queries", "/streams", "/status", "/metrics", "/explain?query=q")
        shown += [client.get(path).text for path in paths]
        refused = client.post("/statements", json={"text": RELATION.replace("room", "mine")})
        assert refused.status_code == 403
        shown.append(refused.text)
    shown.append(caplog.text)
    assert "SECRET 'broker'" in "".join(shown)
    assert [text for text in shown if "sesame" in text] == []
    files = [path for path in store.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [path for path in files if b"sesame" in path.read_bytes()] == []


def test_secrets_come_from_files_too_and_a_missing_one_is_said(
    given: list[Mapping[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_SECRET_BROKER")
    with hr.connect(runner="inline") as db:
        with pytest.raises(SourceError, match=r"1:1: there is no secret broker \(hint: set the variable"):
            db.execute(RELATION)
        monkeypatch.setenv("HEADRACE_SECRETS", str(tmp_path))
        (tmp_path / "broker").write_text(f"{SECRET}\n")
        db.execute(RELATION)
        assert given[0]["password"] == SECRET
        with pytest.raises(LanguageError, match="the option path of csv is not secret"):
            db.execute("CREATE STREAM f FROM csv OPTIONS (path SECRET 'broker') TIMESTAMP BY ts")
        closed = hr.Policy.closed(formats=["jdbc"], options=["url", "user", "password"])
        with pytest.raises(hr.PolicyError, match="the secret of the option user may not be used"):
            db.execute(RELATION.replace("room", "x"), policy=closed)
