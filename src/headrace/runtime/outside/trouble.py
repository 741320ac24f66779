"""Errors of the world by their meaning: something is away for now, or what it gave is of no use.

What is away is asked again. What is of no use is the same the next time: a dead letter, or refused.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from headrace.errors import AwayError, HeadraceError, SourceError, named
from headrace.later import later

if TYPE_CHECKING:
    import http.client as http
    import socket
    import urllib.error as errors
else:
    http = later("http.client")
    socket = later("socket")
    errors = later("urllib.error")

_ERRNOS: Final = frozenset(
    getattr(errno, name)
    for name in (
        *("EACCES", "EPERM", "EIO", "ESTALE", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EINTR", "EBUSY"),
        *("ETIMEDOUT", "ECONNRESET", "ECONNREFUSED", "ECONNABORTED", "EPIPE", "ENETUNREACH", "EHOSTUNREACH"),
        *("ENETDOWN", "EHOSTDOWN", "ENETRESET", "ENOTCONN", "ENXIO", "ENODEV", "EREMOTEIO", "ENOLCK"),
        *("ENOSPC", "EDQUOT", "EROFS", "ETXTBSY", "ESHUTDOWN", "ENOBUFS", "EPROTO"),
    )
    if hasattr(errno, name)
)
_STATUSES: Final = (408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524)
"""What a web server answers that may answer otherwise later."""
_STORES: Final = re.compile(
    r"AWS Error|curlCode|google::cloud|Azure\S* (?:Http|Storage)|\bHTTP (?:429|5\d\d)"
)
"""What Arrow says of an object store that did not answer well; its errors have no number."""
_DATABASES: Final = ("InterfaceError", "OperationalError")
"""What a driver of the DB-API raises for what is not the program's fault."""
_SQLSTATES: Final = ("08", "40", "53", "55", "57", "58")
"""Classes of SQLSTATE for lost connections, and for a server that cannot answer just now."""
_SQLITE: Final = frozenset((5, 6, 7, 8, 10, 13, 14))
"""What SQLite says of a file that is locked, full, read-only or cannot be opened."""
_NAMED_STATE: Final = re.compile(r"[0-9A-Z]{5}")


def is_temporary(status: int) -> bool:
    """Whether a web server that answers with a status may answer otherwise later."""
    return status in _STATUSES


def is_away(error: BaseException) -> bool:
    """Whether an error says that something outside cannot be had for now.

    Args:
        error: of the system, a library or a driver.
    """
    if isinstance(error, HeadraceError):
        return isinstance(error, AwayError)
    if isinstance(error, errors.HTTPError):
        return is_temporary(error.code)
    if isinstance(error, http.InvalidURL):
        return False
    if isinstance(
        error, (http.HTTPException, ConnectionError, TimeoutError, socket.gaierror, errors.URLError)
    ):
        return True
    if isinstance(error, OSError):
        return error.errno in _ERRNOS or (error.errno is None and bool(_STORES.search(str(error))))
    return _is_of_database(error)


def away(what: str, error: BaseException, hint: str | None = None) -> AwayError:
    """The error for something that is away.

    Args:
        what: the thing, such as a file's name.
        error: what the system says.
        hint: what may help.
    """
    found = AwayError(f"{what}: {str(error).partition(chr(10))[0] or type(error).__name__}", hint=hint)
    found.__cause__ = error
    return found


@contextmanager
def reading(label: str, kind: str) -> Iterator[None]:
    """Type what is raised while something is read.

    Args:
        label: its name to show.
        kind: what it should be, such as `Parquet file`.

    Raises:
        AwayError: it cannot be had for now.
        SourceError: it is damaged or missing, whatever its reader has raised.
    """
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:  # readers raise what they like for a damaged file
        is_of_arrow = isinstance(error, pa.ArrowException)
        if isinstance(error, MemoryError) and not is_of_arrow:
            raise
        if is_away(error):
            raise away(label, error, "it is read once that is possible again") from error
        reason = str(error).partition("\n")[0] if is_of_arrow or isinstance(error, OSError) else ""
        raise SourceError(
            f"{label}: {reason or named(error)}", hint=f"check that it is a complete, readable {kind}"
        ) from error


def _is_of_database(error: BaseException) -> bool:
    """Whether a driver of the DB-API says that its database cannot be had for now."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        return code & 0xFF in _SQLITE
    names = {kind.__name__ for kind in type(error).__mro__}
    if not names & {*_DATABASES, "DatabaseError"}:
        return False
    state = _sqlstate(error)
    return state.startswith(_SQLSTATES) if state else bool(names & {*_DATABASES})


def _sqlstate(error: BaseException) -> str:
    """The SQLSTATE that a driver gives, or nothing."""
    said = error.args[0] if error.args else None
    found = said.get("C") if isinstance(said, dict) else getattr(error, "sqlstate", None)
    return found if isinstance(found, str) and _NAMED_STATE.fullmatch(found) else ""
