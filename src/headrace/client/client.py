"""A client of a server: the same streams and queries, from another process or machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from headrace.client.connection import Connection, UnreachableError
from headrace.client.errors import error_of
from headrace.client.subscription import RemoteSubscription
from headrace.errors import UserError
from headrace.language.named_values import ParameterValue
from headrace.language.sent_values import sent_values
from headrace.runtime.intake.given_rows import Omissible, table_of_dictionaries
from headrace.runtime.sources.composed.tables import to_arrow_table
from headrace.schema import BIGINT, TIMESTAMP, Field, Schema, type_named
from headrace.time import duration_of

_ARROW: Final = "application/vnd.apache.arrow.stream"
_JSON_LINES: Final = "application/x-ndjson"
_ATTEMPTS: Final = 3
"""So often rows with a sequence number are sent, where no answer comes."""


@dataclass(frozen=True)
class Columns:
    """A stream, a relation or a query at a server.

    Attributes:
        name: its name.
        columns: the SQL types of its columns, by their names.
        time: what its instants count: TIMESTAMP or INTEGER; None for a relation.
        more: what else the server says of it.
    """

    name: str
    columns: Mapping[str, str]
    time: str | None
    more: Mapping[str, Any]

    @property
    def schema(self) -> Schema:
        """The columns with Arrow's types."""
        return Schema(tuple(Field(name, type_named(text)) for name, text in self.columns.items()))


class Client:
    """A client of `headrace serve`; one for any number of threads.

    Errors are those that the library raises, with place and hint.

    Args:
        url: such as `http://127.0.0.1:7878`.
        key: one of the server's keys; None where it has none.
        timeout: seconds until a server that is silent counts as gone. While rows are refused since epochs
            have fallen behind, they are sent again for so long.

    Raises:
        UserError: it is not the URL of a server. Whether one is there, the first request shows.
    """

    def __init__(self, url: str, key: str | None = None, *, timeout: float = 60.0) -> None:
        self._server = Connection(url, key, timeout)

    def __repr__(self) -> str:
        return f"<Client {self._server.url}>"

    @property
    def url(self) -> str:
        """The server's."""
        return self._server.url

    # --- definitions -------------------------------------------------------------------------------------

    def execute(self, text: str, *, parameters: Mapping[str, ParameterValue] | None = None) -> list[str]:
        """Carry out statements separated by semicolons.

        Args:
            text: SQL. Relative paths in it start from a folder of the server's.
            parameters: the values of `:name` in the text, as `Database.execute` takes them.

        Returns:
            The name of each query that CREATE QUERY or SELECT makes, and the text of each EXPLAIN or SHOW.

        Raises:
            UserError: a statement is wrong; those before it have taken effect.
        """
        results = self.carry_out(text, parameters)
        return [found.get("name") or found["text"] for found in results if found["kind"] != "none"]

    def carry_out(
        self, text: str, parameters: Mapping[str, ParameterValue] | None = None
    ) -> list[dict[str, Any]]:
        """Carry out statements; for each what it has given, as the server says it."""
        body = {"text": text, "parameters": sent_values(parameters)}
        return list(self._server.json("POST", "/statements", body)["results"])

    @property
    def streams(self) -> tuple[Columns, ...]:
        """All streams."""
        return _all(self._server.json("GET", "/streams")["streams"])

    @property
    def relations(self) -> tuple[Columns, ...]:
        """All relations."""
        return _all(self._server.json("GET", "/relations")["relations"])

    @property
    def queries(self) -> tuple[Columns, ...]:
        """All queries."""
        return _all(self._server.json("GET", "/queries")["queries"])

    @property
    def sinks(self) -> tuple[dict[str, Any], ...]:
        """All sinks: where the changes of queries go, and how far they are there, as the server says it."""
        return tuple(self._server.json("GET", "/sinks")["sinks"])

    def query(self, name: str) -> Columns:
        """The query of a name.

        Raises:
            UserError: there is none.
        """
        return _described(self._server.json("GET", f"/queries/{_quoted(name)}"))

    @property
    def catalog(self) -> str:
        """Everything that is defined, as SQL that defines it again."""
        return str(self._server.json("GET", "/catalog")["text"])

    # --- rows --------------------------------------------------------------------------------------------

    def push(
        self,
        stream: str,
        rows: Any,
        producer: str | None = None,
        sequence: int | None = None,
        wait: bool = True,
    ) -> bool:
        """Add rows to a stream created FROM push.

        Args:
            stream: its name.
            rows: a table or data frame, a list of dictionaries, or one dictionary, as for `Database.push`.
            producer, sequence: who pushes, and a number that grows with each of its pushes. With them
                rows are sent again where the connection is lost, and taken once.
            wait: whether to wait until the rows are committed; else nothing is known of them.

        Returns:
            Whether the rows are committed; False if they were a repeat, or for `wait=False`.

        Raises:
            UserError: the rows do not fit the stream, no query reads it, or, without a sequence number, the
                connection is lost; the rows may have been taken then.
            BusyError: epochs have fallen behind for longer than the timeout.
        """
        if isinstance(rows, Mapping):
            rows = [rows]
        if isinstance(rows, Sequence):
            table = table_of_dictionaries(rows, *self._sent(stream))
        else:
            table = to_arrow_table(rows)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return self._push(stream, sink.getvalue().to_pybytes(), _ARROW, producer, sequence, wait)

    def push_json(self, stream: str, text: str) -> bool:
        """Add rows that are written as JSON: one object, or a list of them; TIMESTAMPs are texts.

        Raises:
            UserError: as `push` does, or it is not JSON.
        """
        try:
            given = json.loads(text)
        except ValueError as error:
            raise UserError(f"the row is not JSON: {error}", hint='write {"column": value}') from None
        rows = given if isinstance(given, list) else [given]
        body = "\n".join(map(json.dumps, rows)).encode()
        return self._push(stream, body, _JSON_LINES, None, None, True)

    def heartbeat(self, stream: str, at: int | datetime | str) -> None:
        """Say that a stream brings no row below an instant any more; see `Database.heartbeat`."""
        instant = at.isoformat() if isinstance(at, datetime) else at
        self._server.json("POST", f"/streams/{_quoted(stream)}/heartbeat", {"at": instant})

    def _push(
        self, stream: str, body: bytes, kind: str, producer: str | None, sequence: int | None, wait: bool
    ) -> bool:
        query = {"producer": producer, "sequence": sequence, "wait": None if wait else "false"}
        path, headers = f"/streams/{_quoted(stream)}/rows", {"Content-Type": kind}
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = json.loads(self._server.call("POST", path, body, headers, query))
            except UnreachableError:
                # Rows that have no number would be taken twice, if their answer alone was lost.
                if sequence is None or attempt == _ATTEMPTS:
                    raise
                continue
            return bool(answer["committed"]) and not answer.get("repeat", False)
        raise AssertionError("the last attempt returns or raises")

    # --- answers -----------------------------------------------------------------------------------------

    def history(self, query: str, as_of: int | str | None = None, *, tunings: bool = False) -> pa.Table:
        """The answer as coalesced intervals, perhaps with the sizes of windows; see `Query.history`."""
        return self._view(query, "history", as_of=as_of, tunings="true" if tunings else None)

    def changes(self, query: str, as_of: int | str | None = None) -> pa.Table:
        """The elements as emitted; see `Query.changes`."""
        return self._view(query, "changes", as_of=as_of)

    def stream(self, query: str, as_of: int | str | None = None) -> pa.Table:
        """What ISTREAM, DSTREAM or RSTREAM yields; see `Query.stream`."""
        return self._view(query, "stream", as_of=as_of)

    def tail(self, query: str, rows: int = 10, as_of: int | str | None = None) -> pa.Table:
        """The newest rows, the newest one last; see `Query.tail`."""
        return self._view(query, "tail", rows=rows, as_of=as_of)

    def rows(self, stream: str, newest: int = 10) -> pa.Table:
        """The newest rows of a stream that are kept by `RETAIN`, the newest one last; see `Database.rows`."""
        path = f"/streams/{_quoted(stream)}/tail"
        return _table(self._server.call("GET", path, headers={"Accept": _ARROW}, query={"rows": newest}))

    def snapshot(
        self,
        query: str,
        at: int | str | datetime | None = None,
        as_of: int | str | None = None,
        *,
        last: int | str | timedelta | None = None,
        since: int | str | datetime | None = None,
    ) -> pa.Table:
        """The content at an instant; at the last one that is said if None, as `Query.latest` gives it.

        With `last`, a length of time, or `since`, an instant, it is the content over a span that ends there;
        see `Query.snapshot`.
        """
        instant, begin = (one.isoformat() if isinstance(one, datetime) else one for one in (at, since))
        length = str(duration_of(last)) if isinstance(last, timedelta) else last
        return self._view(query, "snapshot", at=instant, as_of=as_of, last=length, since=begin)

    def difference(
        self,
        query: str,
        before: int | str,
        after: int | str | None = None,
        at: int | str | datetime | None = None,
    ) -> pa.Table:
        """How the answer as of an epoch differs from that as of an earlier one; see `Query.difference`."""
        instant = at.isoformat() if isinstance(at, datetime) else at
        return self._view(query, "difference", since=before, as_of=after, at=instant)

    def epochs(self, query: str) -> pa.Table:
        """The epochs as of which the answer can be asked for; see `Query.epochs`."""
        return self._view(query, "epochs")

    def ask(self, question: str, *, parameters: Mapping[str, ParameterValue] | None = None) -> pa.Table:
        """The answer of a question that is asked once; see `Database.ask`. The server sets its limits."""
        found = {"sql": question, "parameters": sent_values(parameters)}
        body, headers = json.dumps(found).encode(), {"Content-Type": "application/json"}
        return _table(self._server.call("POST", "/ask", body, {**headers, "Accept": _ARROW}))

    def dead_letters(self, stream: str | None = None) -> pa.Table:
        """The rows that no query could use; see `Database.dead_letters`."""
        path = "/dead-letters" + ("" if stream is None else f"/{_quoted(stream)}")
        return _table(self._server.call("GET", path, headers={"Accept": _ARROW}))

    def subscribe(
        self, query: str, after: str | None = None, *, patience: float = 60.0
    ) -> RemoteSubscription:
        """The changes of a query as they are committed, each once.

        Where the connection is lost, the subscription goes on with what follows the last change that it has
        yielded.

        Args:
            query: its name.
            after: the `id` of the last change that the reader has had, in this process or an earlier one;
                `now` for those from now on; None for all that are kept.
            patience: seconds for which the server may be gone.

        Raises:
            UserError: there is no such query.
        """
        path = f"/queries/{_quoted(self.query(query).name)}/events"
        return RemoteSubscription(
            self._server, path, lambda: _change_types(self.query(query)), after, patience
        )

    def _view(self, query: str, view: str, **options: Any) -> pa.Table:
        path = f"/queries/{_quoted(query)}/{view}"
        return _table(self._server.call("GET", path, headers={"Accept": _ARROW}, query=options))

    # --- how far -----------------------------------------------------------------------------------------

    def why(self, query: str) -> str:
        """Why a query has no output, or no newer one; see `Database.why`."""
        return str(self._server.json("GET", f"/why/{_quoted(query)}")["text"])

    def status(self) -> dict[str, Any]:
        """How far the run is, as `Status.to_dict` gives it; with `problems` beside."""
        return dict(self._server.json("GET", "/status"))

    def check_store(self) -> dict[str, Any]:
        """Whether the server's store is whole: `problems`, each a `file` and a `reason`; `files` and `bytes`.

        Raises:
            UserError: the key is not one of an administrator, or it takes longer than the server allows.
        """
        return dict(self._server.json("GET", "/store/check"))

    def _sent(self, name: str) -> tuple[Schema, str, Omissible | None]:
        """The columns that rows come with: neither computed ones nor the instant of arrival; with the name,
        and those that may be left out."""
        found = _described(self._server.json("GET", f"/streams/{_quoted(name)}"))
        left_out = {*found.more.get("computed", ())}
        if found.more.get("by_arrival"):
            left_out.add(found.more.get("timestamp"))
        schema = Schema(tuple(field for field in found.schema if field.name not in left_out))
        omissible = found.more.get("omissible")
        known = omissible and Omissible(tuple(omissible["needed"]), **_more_of(omissible))
        return schema, name, known or None


def _more_of(omissible: dict[str, Any]) -> dict[str, Any]:
    """What a server says of columns besides which are needed; an older one says nothing."""
    return {
        "refuses_unknown": omissible.get("refuses_unknown", False),
        "computed": tuple(omissible.get("computed", ())),
    }


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _all(found: list[dict[str, Any]]) -> tuple[Columns, ...]:
    return tuple(map(_described, found))


def _described(found: dict[str, Any]) -> Columns:
    columns = {column["name"]: column["type"] for column in found["columns"]}
    more = {key: value for key, value in found.items() if key not in ("name", "columns", "time")}
    return Columns(found["name"], columns, found.get("time"), more)


def _change_types(query: Columns) -> list[pa.DataType]:
    """The types of the columns of a query's changes."""
    instants = TIMESTAMP if query.time == "TIMESTAMP" else BIGINT
    return [BIGINT, *(field.type for field in query.schema), instants, instants, BIGINT]


def _table(body: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(body) as reader:
            return reader.read_all()
    except pa.ArrowException:
        raise error_of(200, b"") from None
