"""Files that are elsewhere: in object stores, and on web servers.

Object stores are read by Arrow's own file systems, others by those of fsspec, where that is installed. What
is known of a file was found with it, so that a folder costs one request and not one for each file.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs

from headrace.errors import PolicyError, SourceError
from headrace.runtime.outside.patience import patience
from headrace.runtime.outside.trouble import away, is_away
from headrace.runtime.outside.web import opened, requested, shown
from headrace.runtime.sources.files.patterns import is_hidden, is_partition, is_pattern

ACCOUNT_OPTIONS: Final = ("access_key", "secret_key", "session_token", "region", "endpoint", "anonymous")
"""The options that say how an object store is reached."""

_WEB: Final = ("http", "https")
_BUFFER: Final = 2**20
_BY_ARROW: Final = ("gs", "gcs", "abfs", "abfss", "hdfs")
_NANOSECONDS: Final = 1_000_000_000

Account = tuple[tuple[str, str], ...]
"""Options of `ACCOUNT_OPTIONS`, with their values."""


@dataclass(frozen=True)
class RemoteStat:
    """What `RemoteFile.stat` finds, under the names of `os.stat_result`."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemoteFile:
    """A file that a URL names; it has of a `Path` what readers need.

    Attributes:
        url: the URL.
        account: how its store is reached; never shown.
        size: its bytes when it was found.
        changed: when it had been changed last then (nanoseconds since 1970-01-01 UTC, a whole number of
            seconds); 0 where nobody says.
    """

    url: str
    account: Account = field(repr=False)
    size: int
    changed: int

    @property
    def label(self) -> str:
        """Its URL, without what may be secret in an address of the web."""
        return shown(self.url) if self.is_sequential else self.url

    @property
    def name(self) -> str:
        """What is behind the last slash."""
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The end of the name, from its last dot on."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> str:
        """What is before the last slash."""
        return self.url.rpartition("/")[0]

    @property
    def is_sequential(self) -> bool:
        """Whether it can only be read from its beginning."""
        return urlsplit(self.url).scheme in _WEB

    def open(self, mode: str = "rb") -> BinaryIO:
        """Its bytes.

        Raises:
            OSError: it cannot be read.
        """
        if self.is_sequential:
            return opened(self.url, self.size)
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, self.open_native()), _BUFFER))

    def open_native(self) -> pa.NativeFile:
        """Its bytes, as Arrow reads them at any place.

        Raises:
            OSError: it cannot be read.
        """
        if self.is_sequential:
            with opened(self.url, self.size) as file:
                return pa.BufferReader(file.read())
        system, path = _system_of(self.url, self.account)
        return system.open_input_file(path)

    def stat(self) -> RemoteStat:
        """What is known of it now.

        Raises:
            OSError: it is gone, or cannot be reached.
        """
        found = _info(self.url, self.account)
        if not isinstance(found, RemoteFile):
            raise FileNotFoundError(f"{self.url}: no such file")
        return RemoteStat(found.size, found.changed)


Place = Path | RemoteFile
"""Where a file is."""


def opened_anywhere(place: Place) -> BinaryIO:
    """The bytes of a file, for a reader that goes back; what can only be read from its beginning is held.

    Raises:
        OSError: it cannot be read.
    """
    if isinstance(place, RemoteFile) and place.is_sequential:
        with place.open() as file:
            return io.BytesIO(file.read())
    return place.open("rb")


def is_remote(path: str) -> bool:
    """Whether a path is the URL of something elsewhere."""
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme.isalnum() and scheme != "file"


def account_of(options: Mapping[str, str]) -> Account:
    """How the store is reached, as options say it."""
    return tuple((name, options[name]) for name in ACCOUNT_OPTIONS if name in options)


def check_remote(url: str, account: Account, *, allowed: bool) -> None:
    """Refuse what may not be reached, and options for what is not elsewhere.

    Args:
        url: the path of a source.
        account: how its store is reached.
        allowed: whether files elsewhere may be read.

    Raises:
        PolicyError: they may not.
        SourceError: the path names a file on this machine.
    """
    if not is_remote(url):
        if account:
            raise SourceError(f"the option {account[0][0]} is for object stores", hint="leave it out")
    elif not allowed:
        raise PolicyError(
            f"{url} may not be read", hint="the policy of this SQL allows files of some folders alone"
        )


def remote_files(url: str, account: Account) -> tuple[RemoteFile, ...]:
    """The files that a URL names: that of a file, a folder without its subfolders, or a pattern for both.

    Args:
        url: the URL; of a web server that of a file.
        account: how its store is reached.

    Returns:
        The files in the order of their names, without hidden ones; none where there is nothing.

    Raises:
        SourceError: they cannot be found, as when the store refuses the account.
    """
    try:
        with _named(url):
            if urlsplit(url).scheme not in _WEB and is_pattern(url):
                files = tuple(_matching(url, account))
            else:
                found = _info(url, account)
                files = tuple(_in_folder(url, account)) if found is None else (found,)
            if not files:
                _check_bucket(url, account)
            return files
    except OSError as error:
        if is_away(error):
            raise away(shown(url), error, _hint_of(url)) from error
        reason = (str(error).partition("\n")[0] or type(error).__name__).removeprefix(f"{url}: ")
        raise SourceError(f"{shown(url)}: {reason}", hint=_hint_of(url)) from error


def _check_bucket(url: str, account: Account) -> None:
    """Say that there is no bucket, which otherwise looks as one without files.

    Raises:
        SourceError: there is none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("s3", "s3a"):
        return
    system, _ = _system_of(url, account)
    if system.get_file_info(parts.netloc).type == pyarrow.fs.FileType.NotFound:
        raise SourceError(f"{url}: there is no bucket {parts.netloc}", hint=_hint_of(url))


def _hint_of(url: str) -> str:
    if url.startswith("s3://"):
        return "check the address, and access_key, secret_key, region and endpoint, or the variables AWS_..."
    return "check the address, and whether this machine may reach it"


def _matching(url: str, account: Account) -> Iterator[RemoteFile]:
    """The files that a pattern names, and those in the folders that it names."""
    if "**" in url:
        raise SourceError(f"{url}: ** is not supported", hint="write */ for each folder, as in */*/*.csv")
    parts = url.split("/")
    first = next(place for place, part in enumerate(parts) if is_pattern(part))
    base, wanted = "/".join(parts[:first]), parts[first:]
    for file in _in_folder(base, account, recursive=True):
        names = file.url.removeprefix(f"{base}/").split("/")
        fits = all(
            fnmatchcase(name, part) and (not is_hidden(name) or is_hidden(part))
            for name, part in zip(names, wanted, strict=False)
        )
        below = names[len(wanted) : -1]
        in_folder = len(names) > len(wanted) and all(map(is_partition, below)) and not is_hidden(names[-1])
        if fits and (len(names) == len(wanted) or in_folder):
            yield file


def _in_folder(url: str, account: Account, *, recursive: bool = False) -> Iterator[RemoteFile]:
    """The files in a folder, in the order of their names, and in those below it that have columns' values.

    All below it, hidden ones too, where it is `recursive`.
    """
    system, path = _system_of(url, account)
    selector = pyarrow.fs.FileSelector(path.rstrip("/"), recursive=recursive, allow_not_found=True)
    infos = system.get_file_info(selector)
    if not recursive and any(map(_is_partition, infos)):
        selector = pyarrow.fs.FileSelector(path.rstrip("/"), recursive=True, allow_not_found=True)
        infos = system.get_file_info(selector)
    found = [info for info in infos if info.type == pyarrow.fs.FileType.File]
    top = url.rstrip("/")
    for info in sorted(found, key=lambda info: info.path):
        below = info.path.removeprefix(path.rstrip("/")).lstrip("/")
        *folders, name = below.split("/")
        if recursive or (not is_hidden(name) and all(map(is_partition, folders))):
            yield RemoteFile(f"{top}/{below}", account, info.size, _changed(info))


def _info(url: str, account: Account) -> RemoteFile | None:
    """A file, or None where there is none of that name, or a folder."""
    if urlsplit(url).scheme in _WEB:
        with requested(url, "HEAD") as answer:
            length, changed = answer.headers["Content-Length"], answer.headers["Last-Modified"]
        if length is None:
            raise OSError("the server does not say how long it is")
        instant = 0 if changed is None else int(parsedate_to_datetime(changed).timestamp())
        return RemoteFile(url, account, int(length), instant * _NANOSECONDS)
    system, path = _system_of(url, account)
    info = system.get_file_info(path)
    if info.type != pyarrow.fs.FileType.File:
        return None
    return RemoteFile(url, account, info.size, _changed(info))


def _is_partition(info: pyarrow.fs.FileInfo) -> bool:
    return bool(info.type == pyarrow.fs.FileType.Directory) and is_partition(info.base_name)


def _changed(info: pyarrow.fs.FileInfo) -> int:
    """When a file was changed last, in whole seconds: lists of objects have fractions, and objects do not."""
    return (info.mtime_ns or 0) // _NANOSECONDS * _NANOSECONDS


def _system_of(url: str, account: Account) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system of a URL, and the path in it.

    Raises:
        SourceError: there is no file system for such URLs.
    """
    parts = urlsplit(url)
    if parts.scheme in ("s3", "s3a"):
        return _object_store(account), f"{parts.netloc}{parts.path}"
    if account:
        raise SourceError(f"the option {account[0][0]} is for s3://", hint="leave it out")
    if parts.scheme in _BY_ARROW:
        return _by_arrow(f"{parts.scheme}://{parts.netloc}"), f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return _by_fsspec(parts.scheme), f"{parts.netloc}{parts.path}"


@lru_cache(maxsize=16)
def _object_store(account: Account) -> pyarrow.fs.FileSystem:
    options = dict(account)
    endpoint = options.get("endpoint", "")
    scheme, found, host = endpoint.partition("://")
    silent = patience().silent
    given: dict[str, Any] = {"connect_timeout": silent, "request_timeout": silent} | {
        name: options[name]
        for name in ("access_key", "secret_key", "session_token", "region")
        if name in options
    }
    if endpoint:
        given |= {"endpoint_override": host or endpoint, "scheme": scheme if found else "https"}
    if options.get("anonymous", "false").lower() == "true":
        given["anonymous"] = True
    return pyarrow.fs.S3FileSystem(**given)


@lru_cache(maxsize=16)
def _by_arrow(url: str) -> pyarrow.fs.FileSystem:
    return pyarrow.fs.FileSystem.from_uri(url)[0]


@lru_cache(maxsize=16)
def _by_fsspec(scheme: str) -> pyarrow.fs.FileSystem:
    try:
        fsspec = importlib.import_module("fsspec")
        system = fsspec.filesystem(scheme)
    except (ImportError, ValueError) as error:
        raise SourceError(
            f"files of {scheme}:// cannot be read: {error}",
            hint="s3://, gs://, abfss:// and https:// can be; for others install fsspec and what it needs",
        ) from None
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(system))


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Turn what Arrow says of a URL that it cannot read into an OSError."""
    try:
        yield
    except (pa.ArrowException, ValueError) as error:
        raise OSError(str(error)) from error
