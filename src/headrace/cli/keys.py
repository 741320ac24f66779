"""`headrace keys`: who may use a server, and what for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.errors import reported
from headrace.errors import UserError
from headrace.server.keys import FILE_NAME, KeyFile, Role

keys = typer.Typer(no_args_is_help=True, help="Add, list and drop the keys of a server.")

_Storage = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder of the server's store, in which the keys are.")
]
_File = Annotated[Path | None, typer.Option("--keys", metavar="FILE", help="The file of keys, if elsewhere.")]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")]


@keys.command()
def add(
    name: _Name,
    role: Annotated[
        Role,
        typer.Option(
            help="read: ask and watch; write: also send rows and define queries; admin: also change and drop."
        ),
    ],
    only: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="The streams and queries it is for, separated by commas."),
    ] = None,
    storage: _Storage = None,
    file: _File = None,
) -> None:
    """Make a key and print it; it is shown only now. A server that runs takes it at once."""
    with reported():
        names = None if only is None else tuple(one.strip() for one in only.split(",") if one.strip())
        typer.echo(_file(storage, file).add(name, role, names))


@keys.command("list")
def list_(storage: _Storage = None, file: _File = None) -> None:
    """List whose keys there are."""
    with reported():
        for key in _file(storage, file).keys:
            names = "" if key.only is None else f"  only {', '.join(key.only)}"
            typer.echo(f"{key.name}  {key.role}{names}")


@keys.command()
def drop(name: _Name, storage: _Storage = None, file: _File = None) -> None:
    """Remove a key; a server that runs refuses it at once."""
    with reported():
        _file(storage, file).drop(name)


def _file(storage: Path | None, file: Path | None) -> KeyFile:
    """The file that the options name.

    Raises:
        UserError: they name none, or two.
    """
    if storage is not None and file is None:
        return KeyFile(storage / FILE_NAME)
    if file is not None and storage is None:
        return KeyFile(file)
    raise UserError("it is not clear where the keys are", hint="give --storage DIR, or --keys FILE")
