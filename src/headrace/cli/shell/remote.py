"""A shell's database at a server."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console

from headrace.cli.glances import OperatorOrder, StatusGlance, picture
from headrace.cli.seen import seen_in_status
from headrace.cli.shell.target import Made, Ran, Result, Told
from headrace.client import Client, Columns
from headrace.engine.inputs.options import FORMATS, SINKS
from headrace.errors import HeadraceError, UserError
from headrace.language.completion.candidates import KnownNames
from headrace.language.named_values import ParameterValue

_MOST_SHOWN = 1_000
_WIDTH = 160
"""So many characters a line of the status has."""


class RemoteTarget:
    """The database of a server, whose run goes on whatever the shell does.

    Args:
        client: of the server.
        quick: another one, which waits only for as long as somebody does for a Tab.
    """

    def __init__(self, client: Client, quick: Client) -> None:
        self._client = client
        self._quick = quick
        self._moments: dict[str, tuple[int, str]] = {}

    def execute(self, text: str, base: Path) -> list[Result]:
        """Carry out statements; relative paths in them start from a folder of the server's."""
        found = (self._result(one) for one in self._client.carry_out(text))
        return [one for one in found if one is not None]

    def known(self) -> KnownNames:
        """The names that statements can use; none where the server does not answer."""
        try:
            quick = self._quick
            return KnownNames(
                *(_columns(quick.streams), _columns(quick.relations), _columns(quick.queries)),
                sinks=tuple(sink["name"] for sink in quick.sinks),
                formats=FORMATS,
                kinds_of_sinks=SINKS,
            )
        except HeadraceError:
            return KnownNames()

    def answer(self, query: str, view: str) -> pa.Table:
        """A view of a query's answer: history, changes, stream or latest."""
        match view:
            case "history":
                return self._client.history(query)
            case "changes":
                return self._client.changes(query)
            case "stream":
                return self._client.stream(query)
            case "latest":
                return self._client.snapshot(query)
            case _:
                raise UserError(
                    f"there is no view {view}", hint="ask for history, changes, stream, latest or tail"
                )

    def tail(self, query: str, rows: int) -> pa.Table:
        """The newest rows of a query's answer, the newest one last."""
        return self._client.tail(query, rows)

    def is_events(self, query: str) -> bool:
        """Whether a query's answer is a stream of events."""
        return bool(self._client.query(query).more.get("events"))

    def moment(self, query: str) -> tuple[object, str]:
        """The last epoch, and how far the query's answer is."""
        status = self._client.status()
        epoch = int(status["epoch"])
        known = self._moments.get(query)
        if known is None or known[0] != epoch:
            answer = self._client.query(query).more["answer"]
            known = self._moments[query] = epoch, f"epoch {epoch}, {answer}"
        return (epoch, status["running"]), known[1]

    def ask(self, question: str, parameters: Mapping[str, ParameterValue]) -> pa.Table:
        """The answer of a question."""
        return self._client.ask(question, parameters=parameters)

    def push(self, stream: str, rows: str) -> bool:
        """Add rows; returns when they are committed."""
        return self._client.push_json(stream, rows)

    def why(self, query: str) -> str:
        """Why a query has no output, or no newer one."""
        return self._client.why(query)

    def status(self) -> str:
        """How far everything is."""
        text = io.StringIO()
        seen = seen_in_status(self._client.url, self._client.status())
        shown = picture(None, StatusGlance(seen, 0.0), _MOST_SHOWN, OperatorOrder.SIZE)
        Console(file=text, width=_WIDTH, highlight=False).print(shown)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def settle(self) -> bool:
        """Nothing to do: the server begins to answer by itself."""
        return False

    def run(self) -> Ran | None:
        """Nothing to do: the server begins to answer by itself."""
        return None

    def stop(self) -> None:
        """The run is the server's.

        Raises:
            UserError: always.
        """
        raise UserError("the run of a server is not ended by a shell", hint="stop the server, with SIGTERM")

    def close(self) -> None:
        """Nothing to let go."""

    def _result(self, found: dict[str, Any]) -> Result | None:
        match found["kind"]:
            case "query":
                return Made(found["name"], tuple(map(_note, self._notes(found["name"]))))
            case "text":
                return Told(found["text"])
            case _:
                return None

    def _notes(self, query: str) -> list[dict[str, Any]]:
        return list(self._client.query(query).more.get("notes", ()))


def _note(found: dict[str, Any]) -> str:
    return f"note at {found['line']}:{found['column']}: {found['message']} (hint: {found['hint']})"


def _columns(found: tuple[Columns, ...]) -> dict[str, tuple[str, ...]]:
    return {one.name: tuple(one.columns) for one in found}
