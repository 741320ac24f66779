"""Connections of Python's DB-API to databases for which Spark's JVM has a JDBC driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyspark import SparkContext

from headrace.errors import DeliveryError, UserError
from headrace.runtime.spark.types import SPARK_ERRORS, reason_of

JdbcRow = tuple[Any, ...]


def connector(
    url: str, user: str | None, password: str | None, driver: str | None
) -> Callable[[], JdbcConnection]:
    """What opens connections to a database.

    Args:
        url: its address, which begins with `jdbc:`.
        user: who connects, if the address does not say it.
        password: theirs, if the address does not have it.
        driver: the class of the driver, if its jar was given to Spark; None for one of the class path.
    """
    said = {"user": user, "password": password}
    given = {name: value for name, value in said.items() if value is not None}

    def connect() -> JdbcConnection:
        jvm = _jvm()
        with _plain_errors():
            properties = jvm.java.util.Properties()
            for name, value in given.items():
                properties.setProperty(name, value)
            found = _driver(jvm, url, driver).connect(url, properties)
            if found is None:
                raise DeliveryError(f"the driver {driver} does not know such an address")
            found.setAutoCommit(False)
        return JdbcConnection(found)

    return connect


def _driver(jvm: Any, url: str, name: str | None) -> Any:
    """The driver for an address; Spark loads the one that is named, also from a jar that came later."""
    if name is None:
        return jvm.java.sql.DriverManager.getDriver(url)
    registry = jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
    registry.register(name)
    return registry.get(name)


def _jvm() -> Any:
    context = SparkContext._active_spark_context
    if context is None:
        raise UserError(
            "a table by JDBC needs Spark",
            hint="connect with the runner spark, or write url 'postgresql://...'",
        )
    return context._jvm


class JdbcConnection:
    """A connection, as far as delivered tables need it.

    Args:
        connection: that of the JVM, which does not commit on its own.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def cursor(self) -> JdbcCursor:
        """What carries out statements."""
        return JdbcCursor(self._connection)

    def commit(self) -> None:
        """Let what was done since the last commit count."""
        with _plain_errors():
            self._connection.commit()

    def rollback(self) -> None:
        """Undo what was done since the last commit."""
        with _plain_errors():
            self._connection.rollback()

    def close(self) -> None:
        """Close it, whatever state it is in."""
        with suppress(*SPARK_ERRORS):
            self._connection.close()


class JdbcCursor:
    """Carries out statements with `?` in the places of values, and has the rows of the last one.

    Args:
        connection: that of the JVM.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._rows: list[JdbcRow] = []

    def execute(self, text: str, values: Sequence[object] = ()) -> None:
        """Carry out a statement."""
        with self._prepared(text) as statement:
            _bind(statement, values)
            self._rows = list(_rows(statement.getResultSet())) if statement.execute() else []

    def executemany(self, text: str, rows: Iterable[Sequence[object]]) -> None:
        """Carry out a statement that has no rows for each of several lists of values."""
        with self._prepared(text) as statement:
            for values in rows:
                _bind(statement, values)
                statement.addBatch()
            statement.executeBatch()

    def fetchone(self) -> JdbcRow | None:
        """The next row, or None."""
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[JdbcRow]:
        """The rows that are left."""
        found, self._rows = self._rows, []
        return found

    @contextmanager
    def _prepared(self, text: str) -> Iterator[Any]:
        with _plain_errors():
            statement = self._connection.prepareStatement(text)
            try:
                yield statement
            finally:
                with suppress(*SPARK_ERRORS):
                    statement.close()


def _bind(statement: Any, values: Sequence[object]) -> None:
    for place, value in enumerate(values, start=1):
        statement.setObject(place, value)


def _rows(found: Any) -> Iterator[JdbcRow]:
    places = range(1, found.getMetaData().getColumnCount() + 1)
    while found.next():
        yield tuple(found.getObject(place) for place in places)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """The JVM's errors as one line."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise DeliveryError(f"the database refuses: {reason_of(error)}") from error
