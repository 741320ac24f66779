"""What may come next in a statement or a command that is being written."""

from __future__ import annotations

from typing import Final

from headrace.language.completion.candidates import Candidate, KnownNames, in_text, matching, named_as, names
from headrace.language.completion.candidates import candidates as of_statement
from headrace.language.completion.tokens import tokens_of

COMMANDS: Final = {
    "\\?": "what can be typed here",
    "\\answer": "QUERY [VIEW]: its answer; VIEW is history, changes, stream, latest or tail",
    "\\ask": "SQL: a question that is asked once, answered by DuckDB",
    "\\d": "[NAME]: what is defined, or how one thing is",
    "\\i": "FILE: the statements of a file",
    "\\push": "STREAM JSON: a row, or a list of rows, for a stream FROM push",
    "\\q": "leave; a run that goes on is stopped",
    "\\rows": "N: show so many rows of an answer at most",
    "\\run": "answer all queries: to the end, or in the background where a stream is endless",
    "\\set": "[NAME VALUE]: the value of :NAME in what is typed, or all values",
    "\\status": "how far streams, queries and operators are",
    "\\stop": "end the run that goes on in the background",
    "\\timing": "show how long things take, or no longer",
    "\\unset": "NAME: leave the value of :NAME out",
    "\\watch": "QUERY: its answer now, again and again until Ctrl-C",
    "\\why": "QUERY: what its answer waits for, and where rows are lost",
    "\\x": "show each row as lines of its own, or no longer",
}
"""The commands of the shell and what they do."""

_OF_QUERIES: Final = ("\\answer", "\\watch", "\\why")


def candidates(text: str, at: int, known: KnownNames) -> tuple[int, list[Candidate]]:
    """What may come next at a place of a text, which is a command of the shell or statements.

    Args:
        text: what is being written, also after the place.
        at: the place (offset).
        known: the names there are.

    Returns:
        The offset at which the word begins that is being written, and what it may become, best first.
    """
    if not text.lstrip().startswith("\\") or in_text(tokens_of(text), at):
        return of_statement(text, at, known)
    return _of_command(text, at, known)


def _of_command(text: str, at: int, known: KnownNames) -> tuple[int, list[Candidate]]:
    """What may come next in a command of the shell."""
    start = max(text.rfind(" ", 0, at) + 1, len(text) - len(text.lstrip()))
    command, *arguments = text[:start].split() or [""]
    if not command:
        return start, [
            Candidate(name, COMMANDS[name]) for name in COMMANDS if name.startswith(text[start:at])
        ]
    if command == "\\ask":
        # What is asked is a statement of its own, at its place in the text.
        rest = " " * start if start == 0 else text.replace(command, " " * len(command), 1)
        return of_statement(rest, at, known)
    found: list[Candidate] = []
    if command in _OF_QUERIES and not arguments:
        found = named_as(known.queries, "query")
    elif command == "\\answer":
        found = [Candidate(view, "view") for view in ("history", "changes", "stream", "latest")]
    elif command == "\\d":
        found = [*names(known), *named_as(known.queries, "query")]
    elif command == "\\push" and not arguments:
        found = named_as(known.streams, "stream")
    return start, matching(found, text[start:at])
