"""Servers as the place of what a command works on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from headrace.client import Client
from headrace.errors import UserError

KEY: Final = "HEADRACE_KEY"
"""The environment variable with the key for a server."""

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help=f"A server in place of a folder, such as http://127.0.0.1:7878; its key is in {KEY}.",
    ),
]
"""The option that names a server."""


StorageOption = Annotated[
    Path | None, typer.Option("--storage", metavar="DIR", help="The same as DIR, as other commands have it.")
]
"""The option that names a folder which may stand alone as well."""


def folder_of(folder: Path | None, storage: Path | None) -> Path | None:
    """The one of the two that is given, or None.

    Raises:
        UserError: both are.
    """
    if folder is not None and storage is not None:
        raise UserError("there are a folder and --storage", hint="leave one of them out")
    return folder or storage


def client_of(url: str, timeout: float = 60.0) -> Client:
    """A client of a server, with the key that the environment has for it.

    Args:
        url: the server's.
        timeout: seconds until a server that is silent counts as gone.

    Raises:
        UserError: it is not the URL of a server.
    """
    return Client(url, os.environ.get(KEY) or None, timeout=timeout)


def folder_or_url(folder: Path | None, url: str | None) -> Path | str:
    """The one of the two that is given.

    Raises:
        UserError: none is, or both are.
    """
    if folder is not None and url is not None:
        raise UserError("there are a folder and --url", hint="leave one of them out")
    if url is not None:
        return url
    if folder is None:
        raise UserError("there is no store", hint="name its folder, or a server with --url URL")
    return folder
