"""Databases by their addresses: how a connection of Python's DB-API is opened to one."""

from __future__ import annotations

import importlib
import sqlite3
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from headrace.errors import UserError
from headrace.runtime.outside.patience import patience

_SSL: Final = ("disable", "require", "verify-full")


@dataclass(frozen=True)
class DatabaseAddress:
    """How a database is reached.

    Attributes:
        connect: opens a connection of the DB-API that does not commit on its own, and fails where the
            database is silent.
        marker: how its driver marks the place of a parameter.
    """

    connect: Callable[[], Any]
    marker: str


def database_at(
    url: str, user: str | None = None, password: str | None = None, driver: str | None = None
) -> DatabaseAddress:
    """The database of an address.

    Args:
        url: `postgresql://user@host:5432/name`, with `?sslmode=require` or `verify-full` for TLS, or with
            `?host=/folder` for the socket in a folder; `sqlite:///absolute/path`; or one that begins with
            `jdbc:`, whose database is reached through Spark.
        user: who connects, if the address does not say it.
        password: theirs, if the address does not have it.
        driver: with `jdbc:`, the class of the driver, if its jar was given to Spark.

    Raises:
        UserError: the address is of no such database, or a package is missing.
    """
    if url.startswith("jdbc:"):
        # Loaded here: the others do without Spark.
        jdbc = importlib.import_module("headrace.runtime.spark.jdbc")
        return DatabaseAddress(jdbc.connector(url, user, password, driver), "?")
    if driver is not None:
        raise UserError("driver is for an address that begins with jdbc:", hint="leave it out")
    try:
        parts = urlsplit(url)
        # Looked at here, where it can still be refused.
        _ = parts.port
    except ValueError:
        raise _unknown() from None
    match parts.scheme:
        case "postgresql" | "postgres":
            return _postgresql(parts, user, password)
        case "sqlite" if parts.path.startswith("/") and not parts.netloc:
            path = unquote(parts.path)
            return DatabaseAddress(lambda: sqlite3.connect(path, patience().silent), "?")
        case _:
            raise _unknown()


def _postgresql(parts: SplitResult, user: str | None, password: str | None) -> DatabaseAddress:
    options = dict(parse_qsl(parts.query))
    folder, mode = options.pop("host", None), options.pop("sslmode", "disable")
    if options or mode not in _SSL:
        raise UserError(
            "the url of a database has a parameter that is not known",
            hint=f"sslmode may be {', '.join(_SSL)}; host, the folder of a socket",
        )
    driver = _pg8000()
    port = parts.port or 5432
    settings: dict[str, Any] = {
        "user": unquote(parts.username) if parts.username else user or "postgres",
        "password": unquote(parts.password) if parts.password else password,
        "database": unquote(parts.path.lstrip("/")) or None,
    }
    if folder is not None:
        settings["unix_sock"] = f"{folder}/.s.PGSQL.{port}"
    else:
        settings |= {"host": parts.hostname or "localhost", "port": port, "ssl_context": _context(mode)}
    return DatabaseAddress(lambda: driver.connect(**settings, timeout=patience().silent), "%s")


def _context(mode: str) -> ssl.SSLContext | None:
    if mode == "disable":
        return None
    context = ssl.create_default_context()
    if mode == "require":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _unknown() -> UserError:
    # The address may have a password.
    return UserError(
        "the url of a table is not that of a database that is known",
        hint="write url 'postgresql://user@host:5432/name', 'sqlite:///absolute/path' or 'jdbc:...'",
    )


def _pg8000() -> Any:
    try:
        return importlib.import_module("pg8000.dbapi")
    except ModuleNotFoundError as error:
        raise UserError(
            "a table of PostgreSQL needs the package pg8000", hint="pip install 'headrace[postgres]'"
        ) from error
