"""Keys, roles and names; hosts and origins; TLS."""

from __future__ import annotations

import ssl
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from headrace.cli import app
from headrace.errors import UserError
from headrace.server.access import Caller, Door, hosts_of
from headrace.server.address import Address
from headrace.server.errors import RequestError
from headrace.server.keys import KeyFile, Role
from headrace.server.visible import shown_letters
from unit.server.serving_for_tests import running

LINES = {"Content-Type": "application/x-ndjson"}
TEXT = """CREATE STREAM r (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE STREAM other (ts BIGINT, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT v FROM r [NOW]; CREATE QUERY hidden AS SELECT v FROM other [NOW]"""
ROW = '{"ts": 1, "v": 1}'


class Served:
    """A server with keys, and clients that have one each."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self.file = KeyFile(folder / "keys.json")
        self.sent = {name: self.file.add(name, role) for name, role in (("a", Role.ADMIN), ("w", Role.WRITE))}
        self.sent["r"] = self.file.add("r", Role.READ)
        self.sent["only"] = self.file.add("only", Role.WRITE, ("R", "q"))

    def by(self, name: str | None) -> httpx.Client:
        headers = {} if name is None else {b"Authorization": f"Bearer {self.sent.get(name, name)}".encode()}
        return httpx.Client(base_url=self._url, headers=headers, timeout=120)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("keys")
    with running(folder) as url:
        found = Served(url, folder)
        with found.by("a") as client:
            assert client.post("/statements", json={"text": TEXT}).status_code == 200
        yield found


def status_of(served: Served, name: str | None, method: str, path: str, **sent: object) -> int:
    with served.by(name) as client:
        answer = client.request(method, path, **sent)  # type: ignore[arg-type]
        return answer.status_code


def test_without_a_known_key_nothing_is_answered_but_that_the_server_is_there(served: Served) -> None:
    for name in (None, "hr_wrong", "é"):
        for path in ("/streams", "/metrics", "/openapi.json", "/status/events", "/nowhere"):
            assert status_of(served, name, "GET", path) == 401
        assert status_of(served, name, "POST", "/statements", json={"text": "SHOW STREAMS"}) == 401
    assert status_of(served, None, "GET", "/healthz") == 200
    assert status_of(served, None, "GET", "/readyz") == 200


@pytest.mark.parametrize(
    ("method", "path", "sent", "allowed"),
    [
        ("GET", "/queries/q/changes", {}, "raw"),
        ("GET", "/why/q", {}, "a"),
        ("POST", "/ask", {"json": {"sql": "FROM CHANGES OF q"}}, "raw"),
        ("POST", "/statements", {"json": {"text": "EXPLAIN SELECT v FROM r"}}, "raw"),
        ("POST", "/statements", {"json": {"text": "CREATE STREAM x AS SELECT v FROM r"}}, "w"),
        ("POST", "/statements", {"json": {"text": "COMMENT ON QUERY q IS 'x'"}}, "a"),
        ("POST", "/streams/r/rows", {"content": ROW, "headers": LINES}, "wa"),
        ("POST", "/streams/r/heartbeat", {"json": {"at": 1}}, "wa"),
        ("DELETE", "/streams/x", {}, "a"),
    ],
)
def test_each_role_may_do_what_it_says(
    served: Served, method: str, path: str, sent: dict[str, object], allowed: str
) -> None:
    for name in "rwa" if "w" in allowed or allowed == "a" else "raw":
        expected = {True: 200, False: 403}[name in allowed]
        if "CREATE STREAM x" in str(sent) and name == "a":
            continue
        assert status_of(served, name, method, path, **sent) == expected, name


def test_a_key_for_some_names_sees_no_others(served: Served) -> None:
    with served.by("only") as client:
        assert client.post("/streams/r/rows", content='{"ts": 9, "v": 1}', headers=LINES).status_code == 200
        assert client.get("/queries/q/history").status_code == 200
        shown = [client.get(path).text for path in ("/streams", "/queries", "/status", "/sinks")]
        assert not any("other" in text or "hidden" in text for text in shown)
        for path in ("/queries/hidden", "/queries/hidden/events", "/streams/other", "/why/hidden"):
            answer = client.get(path)
            assert answer.status_code == 404
            missing = client.get(path.replace("hidden", "nobody").replace("other", "nothing"))
            assert missing.json()["error"]["kind"] == answer.json()["error"]["kind"]
        assert client.post("/streams/other/rows", content=ROW, headers=LINES).status_code == 404
        for path in ("/catalog", "/metrics", "/dead-letters"):
            assert client.get(path).status_code == 403
        assert client.post("/statements", json={"text": "SHOW STREAMS"}).status_code == 403
        for question in ("FROM HISTORY OF hidden", "FROM DEAD LETTERS", "FROM DEAD LETTERS OF other"):
            assert client.post("/ask", json={"sql": question}).status_code in (400, 403), question
        assert client.post("/ask", json={"sql": "FROM HISTORY OF q"}).status_code == 200


def test_what_a_limited_key_sees_of_its_query_does_not_name_what_else_it_reads(served: Served) -> None:
    both = "CREATE QUERY both AS SELECT r.v FROM r [NOW] JOIN other [NOW] ON other.v = r.v"
    mine = "CREATE QUERY mine AS SELECT v + 1 AS v FROM r [NOW]"
    with served.by("a") as client:
        assert client.post("/statements", json={"text": f"{both}; {mine}"}).status_code == 200
        assert client.post("/streams/r/rows", content=ROW, headers=LINES).status_code == 200
        names_it = [client.get(path).text for path in ("/queries/both", "/why/both", "/explain?query=both")]
        assert all("other" in text for text in names_it), "or this shows nothing"
    served.sent["both"] = served.file.add("both", Role.WRITE, ("r", "both", "mine"))
    with served.by("both") as client:
        paths = ("/queries", "/queries/both", "/status", "/streams/r", "/why/both", "/explain?query=both")
        assert [path for path in paths if "other" in client.get(path).text] == []
        statuses = [client.get(path).status_code for path in (*paths, "/why/mine", "/explain?query=mine")]
        assert statuses == [200, 200, 200, 200, 403, 403, 200, 200]
        # The sizes of windows name the streams that they are of.
        sized = [f"/queries/{name}/history?tunings=true" for name in ("both", "mine")]
        assert [client.get(path).status_code for path in sized] == [403, 200]
        assert client.get("/queries/mine/changes?tunings=true").status_code == 400


def test_a_limited_key_does_not_see_which_other_query_could_not_use_its_row(served: Served) -> None:
    with served.by("a") as client:
        text = "CREATE QUERY concealed AS SELECT v * 9223372036854775807 AS x FROM r [NOW]"
        assert client.post("/statements", json={"text": text}).status_code == 200
    with served.by("only") as client:
        answer = client.post("/streams/r/rows", content='{"ts": 2000, "v": 5}', headers=LINES)
        (letter,) = answer.json()["dead_letters"]
        assert (letter["query"], "concealed" in answer.text) == (None, False)
    with served.by("w") as client:
        answer = client.post("/streams/r/rows", content='{"ts": 2001, "v": 6}', headers=LINES)
        assert [letter["query"] for letter in answer.json()["dead_letters"]] == ["concealed"]
    table = pa.table({"query": ["concealed", "Q", None], "reason": ["overflow in concealed", "x", "late"]})
    shown = shown_letters(table, Caller("only", Role.WRITE, frozenset(["q", "r"])))
    assert shown["query"].to_pylist() == [None, "Q", None]
    assert shown["reason"].to_pylist()[1:] == ["x", "late"]
    assert "concealed" not in str(shown)


def test_keys_are_kept_as_hashes_and_act_at_once(served: Served, tmp_path: Path) -> None:
    text = served.file.path.read_text()
    assert not any(sent in text or sent[3:] in text for sent in served.sent.values())
    assert stat.S_IMODE(served.file.path.stat().st_mode) == 0o600
    sent = served.file.add("late", Role.READ)
    assert status_of(served, sent, "GET", "/streams") == 200
    served.file.drop("late")
    assert status_of(served, sent, "GET", "/streams") == 401
    with pytest.raises(UserError, match="there is a key a already"):
        served.file.add("a", Role.READ)
    damaged = KeyFile(tmp_path / "keys.json")
    damaged.path.write_text('{"keys": [{"name": "a"}]}')
    with pytest.raises(UserError, match="cannot be read"):
        Door(damaged).caller("Bearer x")


@pytest.mark.parametrize("lose", [lambda file: file.drop("a"), lambda file: file.path.unlink()])
def test_a_door_that_had_a_key_stays_closed_without(lose: Callable[[KeyFile], None], tmp_path: Path) -> None:
    door = Door(KeyFile(tmp_path / "keys.json"))
    assert door.caller(None).role is Role.ADMIN
    file = KeyFile(tmp_path / "keys.json")
    sent = file.add("a", Role.READ)
    assert door.caller(f"Bearer {sent}").name == "a"
    lose(file)
    for authorization in (None, f"Bearer {sent}"):
        with pytest.raises(RequestError, match="key"):
            door.caller(authorization)
    again = file.add("b", Role.READ)
    assert door.caller(f"Bearer {again}").name == "b"


def test_a_lost_file_of_keys_opens_no_door(tmp_path: Path) -> None:
    """Not even after a restart; whoever adds a key again is let in, and so is who takes the last one away."""
    path = tmp_path / "keys.json"
    KeyFile(path).add("a", Role.ADMIN)
    path.unlink()
    with pytest.raises(UserError, match=r"keys\.json is gone"):
        Door(KeyFile(path)).caller(None)
    sent = KeyFile(path).add("b", Role.READ)
    assert Door(KeyFile(path)).caller(f"Bearer {sent}").name == "b"
    KeyFile(path).drop("b")
    assert Door(KeyFile(path)).caller(None).role is Role.ADMIN


def test_the_command_adds_lists_and_drops(tmp_path: Path) -> None:
    def run(*words: str) -> str:
        told = CliRunner().invoke(app, ["keys", *words, "--keys", str(tmp_path / "k.json")])
        return told.stdout if told.exit_code == 0 else f"{told.exit_code}: {told.stderr}"

    sent = run("add", "ann", "--role", "write", "--only", "a, b").strip()
    assert KeyFile(tmp_path / "k.json").find(sent) is not None
    assert run("list") == "ann  write  only a, b\n"
    assert run("drop", "ann") == ""
    assert run("drop", "ann").startswith("2: ")
    assert run("add", "a b", "--role", "read").startswith("2: ")


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("127.0.0.1:7878", None, True),
        ("localhost", "http://localhost", True),
        ("[::1]:7878", "http://[::1]:7878", True),
        ("evil.example", None, False),
        ("evil.example@localhost", None, False),
        ("localhost@evil.example", None, False),
        ("a:b@localhost:7878", None, False),
        ("evil.example:7878", "http://evil.example:7878", False),
        ("127.0.0.1.evil.example", None, False),
        ("localhost:7878", "http://evil.example", False),
        ("localhost:7878", "http://localhost:80", False),
        ("localhost:7878", "null", False),
        ("[::1", None, False),
        (None, None, False),
    ],
)
def test_pages_of_others_and_names_of_others_are_refused(
    tmp_path: Path, host: str | None, origin: str | None, allowed: bool
) -> None:
    door = Door(KeyFile(tmp_path / "none.json"), hosts_of("127.0.0.1", ()))
    with nullcontext() if allowed else pytest.raises(RequestError):
        door.check_host(host)
        door.check_origin(origin, host)


def test_a_request_for_another_host_gets_nothing(served: Served) -> None:
    sent = {"Host": "evil.example", "Authorization": f"Bearer {served.sent['a']}"}
    with served.by(None) as client:
        assert client.get("/streams", headers=sent).status_code == 421
        other = {"Origin": "http://evil.example", "Authorization": f"Bearer {served.sent['a']}"}
        assert client.get("/streams", headers=other).status_code == 403


def test_an_address_that_others_reach_needs_keys_and_tls() -> None:
    for host in ("127.0.0.1", "localhost", "::1"):
        Address(host).check(has_keys=False)
    with pytest.raises(UserError, match="there are no keys"):
        Address("0.0.0.0", insecure=True).check(has_keys=False)
    with pytest.raises(UserError, match="could read keys and rows"):
        Address("::").check(has_keys=True)
    Address("0.0.0.0", insecure=True).check(has_keys=True)


def test_tls(tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *subject, *files], check=True, capture_output=True)
    with running(tmp_path, address=Address(port=0, certificate=certificate, private_key=key)) as url:
        assert url.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{url}/streams", verify=trusted).json() == {"streams": []}
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/streams")
