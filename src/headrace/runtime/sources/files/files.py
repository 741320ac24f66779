"""Finding the files of a source, and laying them end to end in one space of positions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import AwayError, PolicyError, SourceError
from headrace.runtime.outside.pipes import is_pipe, name_of
from headrace.runtime.outside.trouble import is_away
from headrace.runtime.sources.files.held_pipes import held
from headrace.runtime.sources.files.patterns import is_hidden, is_partition, is_pattern, matching, plain_path
from headrace.runtime.sources.files.remote import (
    Account,
    Place,
    RemoteFile,
    check_remote,
    is_remote,
    remote_files,
)


def list_files(
    path: str, base: Path, allowed: tuple[Path, ...] | None, account: Account = ()
) -> tuple[tuple[Place, str], ...]:
    """The files that a path names, each with the name to show: the path itself, or a folder's files.

    A folder's files come in the order of their names, without those that start with `.` or `_`, and with
    those of its subfolders that have the value of a column in their names. A pattern names several files and
    folders, unless there is something of just this name. Standard input and named pipes are read to their
    end.

    Args:
        path: of a file or a folder, or a pattern for such; a relative one starts at `base`. It may start with
            `~/` or `file://`, or be the URL of files elsewhere.
        base: the folder of the text that names the path.
        allowed: the folders that the files must be in, see `allowed_path`; None for any file, also elsewhere.
        account: how an object store is reached.

    Raises:
        SourceError: there is no such file or folder, it holds no file, or nothing matches the pattern.
        PolicyError: a file is not in an allowed folder.
    """
    check_remote(path, account, allowed=allowed is None)
    if is_remote(path):
        files = remote_files(path, account)
        if not files:
            raise SourceError(
                f"{path}: there are no files",
                hint="name files in subfolders by a pattern, such as 'folder/*/*'",
            )
        return tuple((file, file.label) for file in files)
    try:
        if pipe_at(path, base, allowed):
            place = base / plain_path(path)
            return ((held(path, place), name_of(path, place)),)
        return _list_files(path, base, allowed)
    except OSError as error:
        raise _not_looked_at(path, error) from error


def pipe_at(path: str, base: Path, allowed: tuple[Path, ...] | None) -> bool:
    """Whether a path names standard input or a named pipe.

    Args:
        path, base: as for `list_files`.
        allowed: None where any file may be read; pipes are in no folder.

    Raises:
        PolicyError: it does, and only files of some folders may be read.
    """
    found = "\0" not in path and is_pipe(path, base / plain_path(path))
    if found and allowed is not None:
        raise PolicyError(
            f"{path} may not be read", hint="the policy of this SQL allows files of folders alone"
        )
    return found


def allowed_path(place: Path, label: str, allowed: tuple[Path, ...] | None) -> Path:
    """The path to open for a file or folder: the real one, without links, if only some folders are allowed.

    What was checked is then what is opened, even if a link is changed in between.

    Args:
        place: where it is.
        label: its name to show.
        allowed: real paths of folders; it must be in one of them; None for any place.

    Raises:
        PolicyError: it is in none of them; whether it exists is not said.
    """
    if allowed is None:
        return place
    real = Path(os.path.realpath(place))
    if not any(real.is_relative_to(folder) for folder in allowed):
        folders = ", ".join(map(str, allowed))
        hint = f"files may be read in {folders}" if folders else "the policy of this SQL allows no files"
        raise PolicyError(f"{label} may not be read", hint=hint)
    return real


def _list_files(path: str, base: Path, allowed: tuple[Path, ...] | None) -> tuple[tuple[Path, str], ...]:
    found = _places(path, base, allowed)
    if not found:
        raise SourceError(
            f"{path}: no file or folder has such a name", hint=f"relative paths start at {base.resolve()}"
        )
    return _files_at(found, plain_path(path), allowed)


def _places(path: str, base: Path, allowed: tuple[Path, ...] | None) -> list[tuple[Path, str]]:
    """The files and folders that a path names, each with its name to show; a pattern may name none."""
    if "\0" in path:
        raise SourceError("the path holds a zero byte")
    path = plain_path(path)
    place = allowed_path(base / path, path, allowed)
    if place.exists():
        return [(place, path)]
    if not is_pattern(path):
        raise SourceError(f"{path}: no such file or folder", hint=f"relative paths start at {base.resolve()}")
    # All are checked before any is looked at, as in a folder.
    return [
        (allowed_path(entry, label, allowed), label)
        for entry, label in matching(path, base, lambda entry, label: allowed_path(entry, label, allowed))
    ]


def _files_at(
    places: Sequence[tuple[Path, str]], path: str, allowed: tuple[Path, ...] | None
) -> tuple[tuple[Path, str], ...]:
    """Files, and those in folders, each with its name to show; `path` is what named them all."""
    found: list[tuple[Path, str]] = []
    for place, label in places:
        if place.is_dir():
            found.extend(_files_in(place, label, allowed))
        elif place.is_file():
            found.append((place, label))
        else:
            kind = "neither a file nor a folder" if place.exists() else "a link to nothing"
            raise SourceError(f"{label}: {kind}")
    if not found:
        raise SourceError(
            f"{path}: the folder holds no files",
            hint="files in subfolders, unless called as day=1, or whose names start with . or _ are not read",
        )
    return tuple(found)


def _entries(folder: Path, path: str, allowed: tuple[Path, ...] | None) -> list[tuple[Path, str]]:
    """What is in a folder, in the order of the names, without what is hidden."""
    names = sorted(entry.name for entry in folder.iterdir() if not is_hidden(entry.name))
    labels = [f"{path.rstrip('/')}/{name}" for name in names]
    # All are checked before any is looked at: what a link leads to is not said either.
    return [
        (allowed_path(folder / name, label, allowed), label)
        for name, label in zip(names, labels, strict=True)
    ]


def _files_in(folder: Path, path: str, allowed: tuple[Path, ...] | None) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for entry, label in _entries(folder, path, allowed):
        if entry.is_dir():
            if is_partition(Path(label).name):
                found += _files_in(entry, label, allowed)
        elif entry.is_file():
            _check_name(label, path)
            found.append((entry, label))
        else:
            kind = "not an ordinary file" if entry.exists() else "a link to nothing"
            raise SourceError(
                f"{path}: {Path(label).name} is {kind}",
                hint="remove it, or give it a name that starts with . or _",
            )
    return found


def _check_name(label: str, path: str) -> None:
    """Refuse a name that no text can have.

    Raises:
        SourceError: it is one.
    """
    try:
        label.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(Path(label).name).decode("utf-8", "backslashreplace")
        raise SourceError(
            f"{path}: the name {shown} is not UTF-8",
            hint="rename it; names that start with . or _ are left out",
        ) from None


def _present_in(folder: Path, path: str, allowed: tuple[Path, ...] | None) -> list[tuple[Path, str]]:
    """As `_files_in`, with all that is no folder."""
    found: list[tuple[Path, str]] = []
    for entry, label in _entries(folder, path, allowed):
        if not entry.is_dir():
            found.append((entry, label))
        elif is_partition(Path(label).name):
            found += _present_in(entry, label, allowed)
    return found


def present_files(
    path: str, base: Path, allowed: tuple[Path, ...] | None, account: Account = ()
) -> tuple[tuple[Place, str], ...]:
    """As `list_files`, where there may be no files yet, and what is not an ordinary file is left out.

    Raises:
        SourceError: the path is not one of a folder or a pattern, or the folder cannot be looked into.
        PolicyError: a file is not in an allowed folder.
    """
    check_remote(path, account, allowed=allowed is None)
    if is_remote(path):
        return tuple((file, file.label) for file in remote_files(path, account))
    try:
        places = _places(path, base, allowed)
        found: list[tuple[Path, str]] = []
        for place, label in places:
            found.extend(_present_in(place, label, allowed) if place.is_dir() else [(place, label)])
        return tuple((place, label) for place, label in found if place.is_file())
    except OSError as error:
        raise _not_looked_at(path, error) from error


def _not_looked_at(path: str, error: OSError) -> SourceError:
    """The error for a path at which the system cannot look, or only for now."""
    kind = AwayError if is_away(error) else SourceError
    return kind(f"{path}: {error.strerror}")


def mark_of(pieces: Sequence[tuple[Place, int]], position: int, *, whole: bool = False) -> str:
    """Identifies the pieces laid end to end below a position; see `SplitSource.mark`.

    Pieces that have been read to their end keep their sizes. The one that has been read in part may grow,
    and new ones may come after it. A file is known by its name, and by its folder where that is not the
    folder of the first one.

    Args:
        pieces: the files and their sizes.
        position: up to where they have been read.
        whole: whether the last one keeps its size, too, since it is read as a whole.
    """
    digest, offset = hashlib.sha256(), 0
    for path, size in pieces:
        if offset >= position:
            break
        name = path.name if path.parent == pieces[0][0].parent else _whole_name(path)
        is_read = whole or offset + size <= position
        digest.update(f"{name}\0{size if is_read else ''}\0".encode())
        offset += size
    return digest.hexdigest()[:16] if position else ""


def _whole_name(path: Place) -> str:
    return path.url if isinstance(path, RemoteFile) else os.path.abspath(path)


@dataclass(frozen=True)
class Stamp:
    """What is known of a file without reading it; see `stamps_of`.

    Attributes:
        path: where it is.
        size: bytes; -1 where there is no such file.
        changed: when it was changed last (nanoseconds).
    """

    path: Place
    size: int
    changed: int


def found_stamp(path: Place) -> Stamp:
    """What is known of a file that was just found: of one elsewhere what was said then."""
    return Stamp(path, path.size, path.changed) if isinstance(path, RemoteFile) else stamps_of([path])[0]


def stamps_of(paths: Iterable[Place]) -> tuple[Stamp, ...]:
    """What is known now of some files: it is another one once a file has been written again.

    Raises:
        AwayError: one cannot be looked at for now.
    """
    found = []
    for path in paths:
        try:
            known = path.stat()
        except OSError as error:
            if is_away(error):
                raise _not_looked_at(str(path), error) from error
            found.append(Stamp(path, -1, 0))
        else:
            found.append(Stamp(path, known.st_size, known.st_mtime_ns))
    return tuple(found)


def overlaps(sizes: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The parts of pieces laid end to end that fall into `[start, end)`.

    Yields:
        `(index, first, last)`: the index of a piece and the range of its own positions, never empty.
    """
    offset = 0
    for index, size in enumerate(sizes):
        first, last = max(start - offset, 0), min(end - offset, size)
        if first < last:
            yield index, first, last
        offset += size
        if offset >= end:
            return
