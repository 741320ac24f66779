"""Spark's log of a file stream: which files a batch has.

A query's checkpoint says per batch how far every source is, in `offsets/<batch>`. A file source has a log of
its own, `sources/0/<entry>`, whose entries name the files that were found at a time. A batch has the files of
the entries after those of the batch before, up to its own. Every tenth entry is a `.compact` file, which has
all entries up to it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_VERSION: Final = "v1"


class UnknownLogError(ValueError):
    """The log is not there, or not in the form that is known."""


def files_of_batch(checkpoint: Path, number: int) -> list[Path]:
    """The files of a batch that Spark has planned, in the order in which Spark lists them.

    Args:
        checkpoint: the checkpoint of a query with one source, a file stream.
        number: the batch, from 0.

    Raises:
        ValueError: the log does not say it in the form that is known, or a file is not on this machine.
        OSError: a part of the log cannot be read.
    """
    first = _entries_read(checkpoint, number - 1) if number else 0
    entries = range(first, _entries_read(checkpoint, number))
    return [_local_path(url) for entry in entries for url in _files_of_entry(checkpoint, entry)]


def _entries_read(checkpoint: Path, number: int) -> int:
    """How many entries of the source's log have been read after a batch."""
    _, *offsets = _lines(checkpoint / "offsets" / str(number))
    match [json.loads(offset) for offset in offsets]:
        case [{"logOffset": int(last)}]:
            return last + 1
    raise UnknownLogError


def _files_of_entry(checkpoint: Path, entry: int) -> list[str]:
    log = checkpoint / "sources/0"
    plain = log / str(entry)
    found = map(json.loads, _lines(plain if plain.is_file() else log / f"{entry}.compact"))
    match [file for file in found if file["batchId"] == entry]:
        case []:
            raise UnknownLogError
        case files:
            return [file["path"] for file in files]


def _lines(path: Path) -> list[str]:
    version, *lines = path.read_text("utf-8").rstrip("\n").split("\n")
    if version != _VERSION:
        raise UnknownLogError
    return lines


def _local_path(url: str) -> Path:
    parts = urlsplit(url)
    if (parts.scheme, parts.netloc, parts.query, parts.fragment) != ("file", "", "", ""):
        raise UnknownLogError
    return Path(unquote(parts.path, errors="strict"))
