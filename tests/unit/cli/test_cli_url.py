"""Commands that work on a server in place of a folder."""

from __future__ import annotations

import io
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import headrace as hr
from headrace.cli import app
from headrace.cli.glances import OperatorOrder, picture
from headrace.cli.remote import client_of
from headrace.cli.shell.remote import RemoteTarget
from headrace.cli.top import _looking_at
from headrace.runtime.journal.inspect import named_files
from unit.server.serving_for_tests import running

TEXT = """CREATE STREAM s (ts BIGINT, item STRING, v BIGINT) FROM push TIMESTAMP BY ts;
CREATE QUERY q AS SELECT item, SUM(v) AS t FROM s [RANGE 10] GROUP BY item;
\\push s [{"ts": 1, "item": "pen", "v": 3}, {"ts": 5, "item": "cup", "v": 4}]
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("served")) as url:
        assert called("shell", "--url", url, typed=TEXT)[0] == 0
        yield url


def called(*arguments: str, typed: str = "") -> tuple[int, list[str], str]:
    done = CliRunner().invoke(app, arguments, input=typed)
    return done.exit_code, [" ".join(line.split()) for line in done.stdout.splitlines()], done.stderr


def test_the_shell_of_a_server(url: str) -> None:
    code, lines, errors = called(
        "shell", "--url", url,
        typed="\\answer q\n\\answer q latest\n\\d q\n\\status\n\\why q\nSELECT t FROM HISTORY OF q;\n\\run\n",
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert lines[2:4] == ["pen 3 1 5", "(1 row)"]
    assert lines[6:8] == ["pen 3", "(1 row)"]
    assert "CREATE QUERY q AS SELECT item, SUM(v) AS t FROM s [RANGE 10] GROUP BY item;" in lines
    assert any(line.startswith(f"{url}: running, 1 epoch, the last at ") for line in lines)
    assert "s 2 0 0 5 0" in [" ".join(line.split()[:2] + line.split()[3:]) for line in lines]
    assert any(line.startswith("q waits for s") for line in lines)
    code, _, errors = called("shell", "--url", url, typed="\nSELECT item\n FROM nothing;")
    assert code == 2
    assert errors.startswith("<stdin>:3:7: there is no stream nothing")
    assert "not ended by a shell" in called("shell", "--url", url, typed="\\stop\n")[2]


def test_what_completion_and_watching_ask_a_server(url: str) -> None:
    target = RemoteTarget(client_of(url), client_of(url, 2))
    assert (target.known().streams["s"], target.known().queries["q"]) == (("ts", "item", "v"), ("item", "t"))
    assert target.moment("q") == ((1, True), "epoch 1, final below 5")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = client_of(f"http://127.0.0.1:{free.getsockname()[1]}")
        assert not RemoteTarget(gone, gone).known().streams


def test_store_ask_and_top_of_a_server(url: str) -> None:
    assert called("store", "--url", url, "--query", "q", "--at", "4", "--format", "csv")[1] == [
        "item,t",
        "pen,3",
    ]
    assert called("store", "--url", url, "--query", "q", "--epochs")[1][2].startswith("1 ")
    assert called("store", "--url", url, "--query", "q", "--as", "changes")[1][0].endswith("valid_to change")
    assert "FROM push TIMESTAMP BY ts;" in " ".join(called("store", "--url", url)[1])
    assert called("ask", "--url", url, "SELECT t FROM HISTORY OF q", "--format", "csv")[1] == ["t", "3"]
    _, lines, _ = called("top", "--url", url)
    assert lines[0].startswith(f"{url}: running, 1 epoch")
    assert "SUM(v) AS t" in " ".join(lines)


def test_top_of_a_server_has_rates(tmp_path: Path) -> None:
    """What two looks differ in is that of streams, queries and operators in so many seconds."""
    with running(tmp_path) as url:
        assert called("shell", "--url", url, typed=TEXT)[0] == 0
        with _looking_at(None, url) as (look, _):
            before = look()
            rows = ", ".join(f'{{"ts": {ts}, "item": "ink", "v": 1}}' for ts in range(20, 60))
            assert called("shell", "--url", url, typed=f"\\push s [{rows}]\n")[0] == 0
            now = replace(look(), at=before.at + 4)
        console = Console(width=160, file=io.StringIO(), record=True)
        console.print(picture(before, now, 9, OperatorOrder.ROWS))
        lines = [re.split(r"\s{2,}", line.strip()) for line in console.export_text().splitlines()]
        assert ["s", "42", "10", "0", "0", "59", "0"] in lines
        [query] = [line for line in lines if line[0] == "q"]
        assert float(query[2]) > 0
        [operator] = [line for line in lines if "SUM(v) AS t" in line[0]]
        assert operator[1] == "10"
        assert float(operator[2]) > 0


def test_store_of_a_server_compares_epochs_and_finds_damage(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        assert called("shell", "--url", url, typed=TEXT)[0] == 0
        assert called("shell", "--url", url, typed='\\push s {"ts": 20, "item": "ink", "v": 5}')[0] == 0
        since = ("--query", "q", "--since", "1", "--as-of", "2")
        for more in ((), ("--at", "4"), ("--format", "csv")):
            there = called("store", "--url", url, *since, *more)
            assert there == called("store", str(tmp_path / "store"), *since, *more)
            assert there[0] == 0
            assert any("cup" in line for line in there[1]) is (not more or more[0] != "--at")
        code, (line,), _ = called("store", "--url", url, "--verify")
        assert (code, line[:7]) == (0, "whole: ")
        named = [path for name in named_files(tmp_path / "store") for path in tmp_path.rglob(name)]
        segment = max(named, key=lambda path: path.stat().st_size)
        segment.write_bytes(b"damaged")
        code, lines, errors = called("store", "--url", url, "--verify")
        assert (code, segment.name in " ".join(lines)) == (2, True), (lines, errors)
        assert "1 problem in" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["top"], "there is no store\nhint: name its folder, or a server with --url URL"),
        (["top", "x", "--url", "http://x"], "there are a folder and --url"),
        (["ask", "x", "SELECT 1", "--url", "http://x"], "there are a folder and --url"),
        (["ask", "SELECT 1"], "there is no question"),
        (["ask", "SELECT 1", "--url", "http://x", "--rows", "1"], "are for a folder"),
        (["store", "--url", "http://x", "--since", "1"], "are for --query"),
        (["shell", "--url", "http://x", "--runner", "spark"], "and there is --url"),
        (["top", "--url", "x"], "'x' is not the URL of a server"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], message: str) -> None:
    code, _, errors = called(*arguments)
    assert code == 2
    assert message in errors


def test_the_key_is_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_KEY", "secret")
    assert client_of("http://x")._server._headers == {"Authorization": "Bearer secret"}
    monkeypatch.setenv("HEADRACE_KEY", "")
    assert client_of("http://x")._server._headers == {}
    assert hr.Client("http://x")._server._headers == {}
