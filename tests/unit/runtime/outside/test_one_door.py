"""Nothing reaches the world but through its door, `headrace.runtime.outside`, read from the syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import headrace

SOURCE: Final = Path(headrace.__file__).parent
DOOR: Final = "runtime/outside/"
MODULES: Final = ("urllib.request", "http.client", "socket", "ssl", "ftplib", "requests", "pg8000", "psycopg")
"""What opens connections."""
CALLS: Final = ("urlopen", "HTTPConnection", "HTTPSConnection", "create_connection", "S3FileSystem")
EXEMPT: Final = {
    "client/": "the client library of a server of ours",
    "server/serving.py": "listens, and connects to nothing",
    "server/connections.py": "takes connections, and makes none",
    "runtime/spark/startup": "pipes and sockets between processes of one run",
    "runtime/sources/files/remote.py": "the file systems of object stores, with the timeouts of the door",
    "runtime/delivery/webhook.py": "names what the door's connections raise",
    "cli/": "a client of a server of ours",
}
"""Files and folders with another reason to name such things."""


def used(tree: ast.AST) -> Iterator[str]:
    """The modules that a tree imports, now or later, and the calls that open something outside."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name in MODULES)
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                yield module
            case ast.Call(func=ast.Name(id="later" | "import_module"), args=[ast.Constant(value=str(name))]):
                yield from (one for one in MODULES if name.startswith(one))
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name))]):
                yield from (one for one in MODULES if name.startswith(one))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="sqlite3"), attr="connect")):
                yield "sqlite3.connect"


def other_doors(name: str, text: str) -> list[str]:
    """What a file uses that only the door may use."""
    if name.startswith((DOOR, *EXEMPT)):
        return []
    return [f"{name} uses {one}" for one in used(ast.parse(text))]


def test_there_is_no_other_door() -> None:
    found = [
        one
        for path in sorted(SOURCE.rglob("*.py"))
        for one in other_doors(path.relative_to(SOURCE).as_posix(), path.read_text())
    ]
    assert found == []


def test_other_doors_would_be_seen() -> None:
    for text in (
        "import urllib.request",
        "from http.client import HTTPConnection",
        "requests = later('urllib.request')",
        "importlib.import_module('pg8000.dbapi')",
        "def f(): urlopen('http://x')",
        "pyarrow.fs.S3FileSystem()",
        "sqlite3.connect(path)",
    ):
        assert other_doors("runtime/intake/new.py", text), text
    assert not other_doors(f"{DOOR}web.py", "import urllib.request")


def test_every_exemption_is_of_something() -> None:
    for name in EXEMPT:
        assert (SOURCE / name).exists(), name


def test_what_the_door_calls_has_a_timeout() -> None:
    for path in (SOURCE / DOOR).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="urlopen" | "HTTPConnection" | "HTTPSConnection" as name)
                ):
                    assert any(one.arg == "timeout" for one in node.keywords), f"{path.name}: {name}"
