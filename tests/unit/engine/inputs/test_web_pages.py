"""Answers of the web in pages, all of which count as one answer; and the headers that ask for them."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

import headrace as hr
from waiting import wait_until

Answer = tuple[int, dict[str, str], bytes]


class Pages(http.server.ThreadingHTTPServer):
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Callable[[str, dict[str, str]], Answer] = lambda path, query: (200, {}, b"")
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Pages

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: said[0] for name, said in parse_qs(parts.query).items()}
        self.server.asked.append(self.path)
        self.server.headers.append(dict(self.headers.items()))
        status, headers, body = self.server.answer(parts.path, query)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def site() -> Iterator[Pages]:
    found = Pages()
    yield found
    found.shutdown()
    found.server_close()


def define(db: hr.Database, url: str, options: str, columns: str = "v BIGINT, ts BIGINT") -> None:
    db.execute(
        f"CREATE STREAM s ({columns}) FROM http OPTIONS (url '{url}', poll '5 milliseconds', {options}) "
        "TIMESTAMP BY ts DISORDER 100; CREATE QUERY q CONSISTENCY MIDDLE AS SELECT v FROM s"
    )
    db.start()


def values(db: hr.Database) -> list[int]:
    return sorted(one["v"] for one in db.queries["q"].changes().to_pylist())


def rows(*found: int) -> list[dict[str, int]]:
    return [{"v": v, "ts": v} for v in found]


ALL = [1, 2, 3, 4, 5]
PARTS = [[1, 2], [3, 4], [5]]


def linked(page: int) -> Answer:
    links = [f'</rows?page={page - 1}&x=1>; rel="prev"'] if page else []
    links += [f'</rows?page={page + 1}&x=1>; title="a, b"; rel="next last"'] if page < 2 else []
    return 200, {"Link": ", ".join(links)}, json.dumps(rows(*PARTS[page])).encode()


def told(page: int) -> Answer:
    body = {"meta": {"next": f"?page={page + 1}" if page < 2 else None}, "rows": rows(*PARTS[page])}
    return 200, {}, json.dumps(body).encode()


def cursor(page: int) -> Answer:
    body = {"rows": rows(*PARTS[page]), "paging": {"after": page + 1} if page < 2 else {"after": ""}}
    return 200, {}, json.dumps(body).encode()


def counted(page: int) -> Answer:
    return 200, {}, json.dumps(rows(*PARTS[page])).encode() if page < 3 else b"[ ]"


WAYS = [
    ("/rows", "pages 'link'", lambda query: linked(int(query.get("page", 0)))),
    ("/rows", "pages 'next', next 'meta.next', path 'rows'", lambda query: told(int(query.get("page", 0)))),
    (
        "/rows?page=&k=a%20b",
        "pages 'cursor', next 'paging.after', parameter 'page', path 'rows'",
        lambda query: cursor(int(query.get("page") or 0)),
    ),
    ("/rows", "pages 'number', parameter 'page'", lambda query: counted(int(query.get("page", 1)) - 1)),
    ("/rows?page=0", "pages 'number', parameter 'page'", lambda query: counted(int(query["page"]))),
    (
        "/rows",
        "pages 'offset', parameter 'from'",
        lambda query: counted((int(query.get("from", 0)) + 1) // 2),
    ),
]


@pytest.mark.parametrize(("address", "options", "answer"), WAYS)
def test_all_pages_are_one_answer(
    site: Pages, address: str, options: str, answer: Callable[[dict[str, str]], Answer]
) -> None:
    site.answer = lambda path, query: answer(query)
    with hr.connect(runner="inline") as db:
        define(db, site.url + address, options)
        wait_until(lambda: values(db), ALL)
        asked = len(site.asked)
        wait_until(lambda: len(site.asked) > asked + 10, True)
        # The same pages are the same answer.
        assert values(db) == ALL
    assert all("k=a" in one or "k=" not in address for one in site.asked)


def test_pages_of_csv_each_with_a_header(site: Pages) -> None:
    bodies = [b"v,ts\n1,1\nx,2\n", b"ts,v\n3,3\n", b"v,ts\n"]
    site.answer = lambda path, query: (200, {}, bodies[int(query.get("page", 1)) - 1])
    with hr.connect(runner="inline") as db:
        define(db, f"{site.url}/rows", "format 'csv', pages 'number', parameter 'page'")
        wait_until(lambda: values(db), [1, 3])
        (letter,) = db.dead_letters().to_pylist()
        assert letter["place"] == f"{site.url}/rows page 1:3"


def test_nothing_counts_until_all_pages_have_come(site: Pages, caplog: pytest.LogCaptureFixture) -> None:
    status = 503
    site.answer = lambda path, query: (
        (status, {"Retry-After": "0"}, b"") if query.get("page") == "2" else linked(int(query.get("page", 0)))
    )
    with hr.connect(runner="inline") as db:
        define(db, f"{site.url}/rows", "pages 'link'")
        wait_until(lambda: sum("page=2" in one for one in site.asked) > 2, True)
        assert values(db) == []
        assert "answers 503" in caplog.text
        status = 404
        wait_until(lambda: "answers 404 to the question for a further page" in caplog.text, True)
        assert values(db) == []
        site.answer = lambda path, query: linked(int(query.get("page", 0)))
        wait_until(lambda: values(db), ALL)


def test_pages_after_a_restart(site: Pages, tmp_path: Path) -> None:
    site.answer = lambda path, query: linked(int(query.get("page", 0)))
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        define(db, f"{site.url}/rows", "pages 'link'")
        wait_until(lambda: values(db), ALL)
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        db.start()
        asked = len(site.asked)
        wait_until(lambda: len(site.asked) > asked + 6, True)
        assert values(db) == ALL


ENDLESS = {"rows": rows(1), "next": "x"}


@pytest.mark.parametrize(
    ("options", "answer", "problem"),
    [
        (
            "pages 'number', parameter 'page', max_pages '4'",
            lambda query: (200, {}, json.dumps(rows(int(query.get("page", 1)))).encode()),
            "answers with more than 4 pages; nothing of them counts",
        ),
        (
            "pages 'cursor', next 'next', parameter 'c', path 'rows'",
            lambda query: (200, {}, json.dumps(ENDLESS).encode()),
            "page 2 leads back to an earlier one",
        ),
        (
            "pages 'link'",
            lambda query: (200, {"Link": "<http://localhost:1/x>; rel=next"}, b"[]"),
            "the next page is on another server: http://localhost:1/x",
        ),
        (
            "pages 'next', next 'rows', path 'rows'",
            lambda query: (200, {}, json.dumps(ENDLESS).encode()),
            "the answer has no text at rows",
        ),
        ("pages 'next', next 'next'", lambda query: (200, {}, b"{} {}"), "the answer is not JSON"),
    ],
)
def test_pages_that_do_not_end_well(
    site: Pages,
    caplog: pytest.LogCaptureFixture,
    options: str,
    answer: Callable[[dict[str, str]], Answer],
    problem: str,
) -> None:
    site.answer = lambda path, query: answer(query)
    with hr.connect(runner="inline") as db:
        define(db, f"{site.url}/rows", options)
        wait_until(lambda: problem in caplog.text, True)
        assert values(db) == []


def test_a_key_that_no_answer_has_is_said_once(site: Pages, caplog: pytest.LogCaptureFixture) -> None:
    site.answer = lambda path, query: (200, {}, json.dumps({"rows": rows(1)}).encode())
    with hr.connect(runner="inline") as db:
        define(db, f"{site.url}/rows", "pages 'next', next 'meta.nxt', path 'rows'")
        wait_until(lambda: len(site.asked) > 3, True)
        wait_until(lambda: values(db), [1])
    assert caplog.text.count("a page has nothing at meta.nxt, so it counts as the last one") == 1


def test_headers_and_a_blank_in_the_address(
    site: Pages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADRACE_SECRET_KEY", "very hidden")
    site.answer = lambda path, query: (200, {}, json.dumps(rows(1)).encode())
    options = """header.`X-Api-Key` SECRET 'key', header.Accept 'application/json'"""
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        define(db, f"{site.url}/my rows", options)
        wait_until(lambda: values(db), [1])
        assert "hidden" not in str(db.execute("SHOW CREATE STREAM s"))
    assert site.asked[0] == "/my%20rows"
    sent = {name.lower(): value for name, value in site.headers[0].items()}
    assert (sent["x-api-key"], sent["accept"]) == ("very hidden", "application/json")
    for path in (tmp_path / "s").rglob("*"):
        assert not path.is_file() or b"hidden" not in path.read_bytes(), path


@pytest.mark.parametrize("option", ["authorization 'Bearer hidden'", "header.`X-Api-Key` 'hidden'"])
def test_a_secret_that_is_written_out_is_not_kept(site: Pages, tmp_path: Path, option: str) -> None:
    site.answer = lambda path, query: (200, {}, json.dumps(rows(1)).encode())
    with hr.connect(runner="inline", storage=tmp_path / "s") as db:
        define(db, site.url, option)
        wait_until(lambda: values(db), [1])
    for path in (tmp_path / "s").rglob("*"):
        assert not path.is_file() or b"hidden" not in path.read_bytes(), path
    with (
        hr.connect(runner="inline", storage=tmp_path / "s") as db,
        pytest.warns(hr.HeadraceWarning, match="q is paused: there is no stream s"),
        pytest.raises(hr.UserError, match="there is no query to run"),
    ):
        db.start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("pages 'all'", "the option pages is 'all'"),
        ("pages 'next'", "the option next is missing"),
        ("pages 'cursor', next 'a'", "the option parameter is missing"),
        ("pages 'link', next 'a'", "pages 'link' has no option next"),
        ("pages 'next', next 'a..b'", "the option next is 'a..b'"),
        ("pages 'link', max_pages '0'", "the option max_pages is '0'"),
        ("pages 'next', next 'a', format 'csv'", "answers in csv have no keys"),
        ("parameter 'x'", "the option parameter is for pages"),
        ("header.`a b` 'x'", "'a b' is not the name of a header"),
        ("header.Host 'x'", "the header host is not to be given"),
        ("header.x 'a\nb'", "the header x has other than printable characters"),
        ("authorization 'x', header.authorization 'y'", "the option authorization is also there as a header"),
    ],
)
def test_wrong_options_of_pages_and_headers(options: str, message: str) -> None:
    with hr.connect(runner="inline") as db, pytest.raises(hr.UserError, match=message) as found:
        db.execute(
            f"CREATE STREAM s (ts BIGINT) FROM http OPTIONS (url 'http://host/x', {options}) TIMESTAMP BY ts"
        )
    assert found.value.hint
