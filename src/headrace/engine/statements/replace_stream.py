"""CREATE OR REPLACE STREAM and RELATION: the least that makes of what is there what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from headrace.engine.access.policy import Policy
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.run.core import Core
from headrace.errors import LanguageError
from headrace.language.parsing.parser import parse_one
from headrace.language.statement_text import stream_text
from headrace.language.statements.statements import CreateStreamAs
from headrace.language.statements.streams import AddColumns, AlterStream, CreateRelation, CreateStream
from headrace.language.syntax import Name
from headrace.runtime.journal.definition import Definition
from headrace.runtime.journal.description import where_they_differ
from headrace.schema import Schema

Replacing = CreateStream | CreateRelation | CreateStreamAs


def changes_to(
    core: Core, statement: Replacing, given: Definition, policy: Policy
) -> Sequence[AddColumns | AlterStream] | None:
    """The statements that make of a stream or a relation what is written; the database's lock is held.

    Args:
        core: the database.
        statement: the CREATE OR REPLACE.
        given: how it is defined by that.
        policy: what it may reach.

    Returns:
        None where it has to be created: there is none of its name, or the one that is there has to go.

    Raises:
        PolicyError: the policy does not allow it.
        LanguageError: the one that is there has to go, and something is written over it.
    """
    policy.check_change(f"CREATE OR REPLACE {given.kind}", statement.position)
    core.make_waiting()
    known = core.definitions
    there = known.records.known.get(given.key)
    if there is None:
        return None
    # What a program has handed over, or holds a secret, has no text that could be compared.
    has_text = there.text is not None and given.text is not None
    is_same = has_text and (there.text, there.dialect) == (given.text, given.dialect)
    if is_same and there.key not in known.records.waiting:
        return ()
    if has_text and isinstance(statement, CreateStream):
        found = _altered(there, given, statement)
        if found is not None:
            return found
    _check_unused(known, there, given, statement)
    return None


def _altered(
    there: Definition, given: Definition, statement: CreateStream
) -> Sequence[AddColumns | AlterStream] | None:
    """The ALTER STREAM statements that make of one source stream another; None where that takes more."""
    before, after = parse_one(there.text or ""), parse_one(given.text or "")
    if not isinstance(before, CreateStream) or not isinstance(after, CreateStream):
        return None
    if stream_text(replace(before, columns=after.columns, time=after.time)) != given.text:
        return None
    name, found = Name(statement.name, statement.position), list[AddColumns | AlterStream]()
    had, wanted = tuple(before.columns or ()), tuple(after.columns or ())
    if wanted[: len(had)] != had:
        return None
    said = frozenset(
        field.name
        for field in fields(after.time)
        if field.compare and getattr(before.time, field.name) != getattr(after.time, field.name)
    )
    if said:
        # Before the columns, which are not taken back where it is refused.
        found.append(AlterStream(name, statement.time, said, statement.position))
    if wanted != had:
        found.append(AddColumns(name, Schema(wanted[len(had) :]), statement.position))
    return found


def _check_unused(
    definitions: Definitions, there: Definition, given: Definition, statement: Replacing
) -> None:
    """See that nothing is written over what has to go.

    Raises:
        LanguageError: something is.
    """
    users = definitions.users_of(there.name)
    if users:
        theirs, ours = where_they_differ(there.text or there.lacks, given.text or given.lacks)
        kind, used = there.kind.lower(), ", ".join(users)
        raise LanguageError(
            f"the {kind} {there.name} cannot be replaced: it is used by {used}; "
            f"there is: {theirs}; here: {ours}",
            position=statement.position,
            hint=f"drop {users[0]} first, or all of it: DROP {there.kind} {there.name} CASCADE",
        )
