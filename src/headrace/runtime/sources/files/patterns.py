"""Paths as they are written: `~`, `file://` and patterns such as `2026-*/*.csv`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from headrace.errors import SourceError

_FILE: Final = "file:"
_HOSTS: Final = ("", "localhost")
_WILD: Final = frozenset("*?[")
_ESCAPED: Final = re.compile("%([0-9a-fA-F]{2})")

Checked = Callable[[Path, str], Path]
"""From a place and its name to show to the path to open; it raises where the place must not be looked at."""


def plain_path(path: str) -> str:
    """A path without `~` and `file://`.

    Args:
        path: as it is written. `~` is the home folder only alone or before a slash; in a URL, `%20` and its
            like are the characters that they stand for.

    Raises:
        SourceError: the URL has the name of another machine.
    """
    if path == "~" or path.startswith("~/"):
        return os.path.expanduser(path)
    if not path.startswith(f"{_FILE}//"):
        return path
    host, slash, rest = path.removeprefix(f"{_FILE}//").partition("/")
    if host not in _HOSTS or not slash:
        raise SourceError(f"{path}: {host} is another machine", hint="write file:/// and the path here")
    return unquote(f"/{rest}")


def is_whole(path: str) -> bool:
    """Whether a path starts from no folder although it has no slash at its beginning."""
    return path == "~" or path.startswith(("~/", f"{_FILE}//"))


def is_pattern(path: str) -> bool:
    """Whether a path has `*`, `?` or `[` in it."""
    return not _WILD.isdisjoint(path)


def is_hidden(name: str) -> bool:
    """Whether a file of that name is left out where a folder is read."""
    return name.startswith((".", "_"))


def is_partition(name: str) -> bool:
    """Whether a folder has the value of a column in its name, such as `day=2026-01-01`."""
    column, _, value = name.partition("=")
    return bool(column and value) and not is_hidden(name)


def folder_columns(label: str) -> dict[str, str]:
    """The columns that the folders of a file have in their names, and their values, from the outermost on.

    Args:
        label: the file's path or URL. `%3A` and its like in a name are the characters with these numbers.
    """
    found: dict[str, str] = {}
    for name in label.partition("?")[0].split("/")[:-1] if "://" in label else label.split("/")[:-1]:
        if is_partition(name):
            column, _, value = name.partition("=")
            found[_unescaped(column)] = _unescaped(value)
    return found


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def matching(path: str, base: Path, checked: Checked) -> Iterator[tuple[Path, str]]:
    """The files and folders that a pattern names, each with its name to show, in the order of their names.

    `*` and `?` stand for any characters, and for one, but not for a slash; `[a-c]` for one of these.
    Names that begin with `.` or `_` have to be named so in the pattern.

    Args:
        path: the pattern.
        base: the folder that a relative one starts from.
        checked: called with each folder before anybody looks into it, and with nothing else.

    Raises:
        SourceError: it has `**`.
    """
    if "**" in path:
        raise SourceError(f"{path}: ** is not supported", hint="write */ for each folder, as in */*/*.csv")
    parts = path.split("/")
    first = next(place for place, part in enumerate(parts) if is_pattern(part))
    label = "".join(f"{part}/" for part in parts[:first])
    return _below(base / label, label, parts[first:], checked)


def _below(folder: Path, label: str, parts: list[str], checked: Checked) -> Iterator[tuple[Path, str]]:
    """What the parts of a pattern name in a folder; the label ends with a slash, or is empty."""
    if not parts:
        yield folder, label.rstrip("/")
        return
    part, rest = parts[0], parts[1:]
    real = checked(folder, label.rstrip("/") or ".")
    if not real.is_dir():
        return
    if is_pattern(part):
        names = [name for name in sorted(os.listdir(real)) if _matches(name, part)]
    else:
        names = [part] if os.path.lexists(real / part) else []
    for name in names:
        yield from _below(real / name, f"{label}{name}/", rest, checked)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (not is_hidden(name) or is_hidden(pattern))
