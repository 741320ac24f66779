"""What defines streams, relations, queries and sinks again, as a durable store keeps it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from headrace.algebra.letters import letters_name
from headrace.engine.access.policy import Policy
from headrace.engine.access.secrets import secret_option
from headrace.engine.catalog.records import DefinitionTexts
from headrace.language.defaults import INITIAL, Defaults
from headrace.language.names import quoted_name, quoted_text
from headrace.language.parsing.parser import parse_one
from headrace.language.references import streams_named
from headrace.language.statement_text import (
    derived_text,
    query_text,
    relation_text,
    sink_text,
    skew_text,
    stream_text,
)
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.formats import FORMATS
from headrace.language.statements.sinks import CreateSink
from headrace.language.statements.statements import Consistency, CreateQuery, CreateStreamAs
from headrace.language.statements.streams import (
    ChangesClause,
    CreateRelation,
    CreateSkew,
    CreateStream,
    ValuesOf,
    is_topic,
)
from headrace.runtime.journal.definition import SKEW, Definition
from headrace.runtime.sources.files.patterns import is_whole
from headrace.runtime.sources.files.remote import is_remote
from headrace.scheduling.priority import Priority
from headrace.schema import Schema

ReadStatement = TypeVar("ReadStatement", CreateStream, CreateRelation)


def definition_of(
    statement: CreateStream | CreateRelation | CreateStreamAs | CreateQuery,
    base: Path,
    policy: Policy,
    defaults: Defaults,
) -> Definition:
    """What is kept of a statement.

    Args:
        statement: it.
        base: the folder that its relative paths start from.
        policy: what it may reach.
        defaults: whose defaults it has.
    """
    folders = None if policy.folders is None else tuple(map(str, policy.folders))
    match statement:
        case CreateStream(name=name):
            kind, text, secret = CatalogKind.STREAM, stream_text(_placed(statement, base)), _secret(statement)
        case CreateRelation(name=name):
            kind, text, secret = (
                CatalogKind.RELATION,
                relation_text(_placed(statement, base)),
                _secret(statement),
            )
        case CreateStreamAs(name=quoted, text=query):
            name, kind, text, secret = quoted.text, CatalogKind.STREAM, derived_text(quoted.text, query), None
        case CreateQuery(name=quoted):
            name, kind, text, secret = quoted.text, CatalogKind.QUERY, query_text(statement), None
    lacks = "" if secret is None else f"its option {secret} may be secret, and is not kept; create it again"
    return Definition(kind.value, name, None if lacks else text, lacks, defaults.value, folders)


def sink_definition(statement: CreateSink, query: str, policy: Policy) -> Definition:
    """What is kept of a sink.

    Args:
        statement: it, with a path that starts from no folder.
        query: the name of its query, as that was defined.
        policy: what it may reach.
    """
    folders = None if policy.outputs is None else tuple(map(str, policy.outputs))
    text = sink_text(replace(statement, query=replace(statement.query, text=query)))
    name, delivery = statement.name.text, secrets.token_hex(8)
    return Definition(CatalogKind.SINK.value, name, text, folders=folders, delivery=delivery)


def sink_query(definition: Definition) -> str | None:
    """The name of the query that a sink is for; None for what is not a sink."""
    if definition.kind != CatalogKind.SINK.value:
        return None
    return _sink(definition).query.text


def renamed_in_sink(definition: Definition, query: str) -> Definition:
    """A sink's definition when its query has another name."""
    statement = _sink(definition)
    return replace(definition, text=sink_text(replace(statement, query=replace(statement.query, text=query))))


def _sink(definition: Definition) -> CreateSink:
    statement = parse_one(definition.text or "")
    assert isinstance(statement, CreateSink)
    return statement


def query_definition(name: str, text: str, policy: Policy, defaults: Defaults) -> Definition:
    """What is kept of a query.

    Args:
        name: its name.
        text: the query as it is written.
        policy: what it may reach.
        defaults: whose defaults it has.
    """
    folders = None if policy.folders is None else tuple(map(str, policy.folders))
    created = f"CREATE QUERY {quoted_name(name)} AS {text}"
    return Definition(CatalogKind.QUERY.value, name, created, "", defaults.value, folders)


def skew_definition(statement: CreateSkew) -> Definition:
    """What is kept of bounds between streams."""
    return _skew(_skewed(statement), skew_text(statement))


def handed_over(kind: CatalogKind, name: str) -> Definition:
    """What is kept of a table or a data frame that a program has handed over."""
    return Definition(
        kind.value,
        name,
        None,
        f"it was handed over in Python; hand it over again: db.{kind.word}({name!r}, ...)",
    )


def retimed(definition: Definition, said: Mapping[str, Any]) -> Definition:
    """A stream's definition with something else said about its time.

    Args:
        definition: it.
        said: the clauses that are said anew, by their names in `TimeClauses`.
    """
    if definition.text is None:
        return definition
    match parse_one(definition.text):
        case CreateStream(time=time) as statement:
            return replace(definition, text=stream_text(replace(statement, time=replace(time, **said))))
        case CreateRelation(changes=changes) as statement if changes is not None:
            stream = replace(changes.stream, time=replace(changes.stream.time, **said))
            changed = replace(statement, changes=replace(changes, stream=stream))
            return replace(definition, text=relation_text(changed))
        case _:
            return definition


def widened(definition: Definition, columns: Schema) -> Definition:
    """A stream's definition with columns that are added.

    Args:
        definition: it.
        columns: what is added.
    """
    if definition.text is None:
        return definition
    match parse_one(definition.text):
        case CreateStream() as statement:
            text = stream_text(_with_columns(statement, columns))
        case CreateRelation(changes=changes) as statement if changes is not None:
            stream = _with_columns(changes.stream, columns)
            changed = replace(statement, columns=stream.columns, changes=replace(changes, stream=stream))
            text = relation_text(changed)
        case _:
            return definition
    return replace(definition, text=text, added=(*definition.added, *columns.names))


def _with_columns(statement: CreateStream, columns: Schema) -> CreateStream:
    return replace(statement, columns=Schema((*(statement.columns or ()), *columns)))


def hiding(records: DefinitionTexts, stream: str, columns: Schema) -> DefinitionTexts:
    """The records once columns of a stream are added, which what is defined over it does not see.

    Args:
        records: the definitions.
        stream: the stream's name.
        columns: what is added.
    """
    found, name = records, stream.lower()
    for key, one in records.known.items():
        # Most are over other streams, and need not be parsed for it.
        if name in (one.text or "").lower() and {name, letters_name(name)} & streams_of(one):
            hides = {**one.hides, name: (*one.hides.get(name, ()), *columns.names)}
            found = found.changed(key, replace(one, hides=hides))
    return found


def releveled(definition: Definition, consistency: Consistency) -> Definition:
    """A query's definition at another level of consistency."""
    if definition.text is None:
        return definition
    statement = parse_one(definition.text)
    assert isinstance(statement, CreateQuery)
    return replace(definition, text=query_text(replace(statement, consistency=consistency)))


def reprioritised(definition: Definition, priority: Priority) -> Definition:
    """A query's definition with another priority."""
    if definition.text is None:
        return definition
    statement = parse_one(definition.text)
    if not isinstance(statement, CreateQuery):
        return definition
    return replace(definition, text=query_text(replace(statement, priority=priority)))


def renamed(definition: Definition, name: str) -> Definition:
    """A query's definition under another name."""
    if definition.text is None:
        return replace(definition, name=name)
    statement = parse_one(definition.text)
    assert isinstance(statement, CreateQuery)
    text = query_text(replace(statement, name=replace(statement.name, text=name)))
    return replace(definition, name=name, text=text)


def with_skew(records: DefinitionTexts, statement: CreateSkew) -> DefinitionTexts:
    """The records with bounds in the place of those between the same streams, or without them."""
    dropped = not statement.pairs and statement.estimation is None
    text = skew_text(statement)
    streams = _skewed(statement)
    known = records.known.get(_skew(streams).key)
    if known is not None and known.text == text:
        return records.having(known)
    left = records.without(_skew(streams).key)
    if not dropped:
        return left.having(_skew(streams, text))
    rest = {name.text.lower() for name in (*statement.firsts, *statement.seconds)}
    named = (parse_one(one.text or "") for one in left.known.values() if one.kind == SKEW)
    others = (one for one in named if isinstance(one, CreateSkew))
    if any(rest & {name.text.lower() for name in (*one.firsts, *one.seconds)} for one in others):
        # What was said of more streams at once holds for the others.
        return left.having(_skew(f"no longer {streams}", text.replace("CREATE", "DROP", 1).rstrip()))
    return left


def without_skews(records: DefinitionTexts, stream: str) -> DefinitionTexts:
    """The records without a stream in bounds between streams."""
    found = records
    for key, one in records.known.items():
        if one.kind != SKEW or one.text is None:
            continue
        statement = parse_one(one.text)
        assert isinstance(statement, CreateSkew)
        firsts = tuple(name for name in statement.firsts if name.text.lower() != stream.lower())
        seconds = tuple(name for name in statement.seconds if name.text.lower() != stream.lower())
        if (firsts, seconds) == (statement.firsts, statement.seconds):
            continue
        found = found.without(key)
        if firsts and (seconds or (not statement.seconds and len(firsts) > 1)):
            left = replace(statement, firsts=firsts, seconds=seconds)
            dropped = one.text.startswith("DROP")
            text = skew_text(left)
            found = found.having(
                _skew(f"no longer {_skewed(left)}", text.replace("CREATE", "DROP", 1).rstrip())
                if dropped
                else _skew(_skewed(left), text)
            )
    return found


def dropped_skew(definition: Definition) -> CreateSkew:
    """The DROP SKEW of bounds between streams."""
    statement = parse_one(definition.text or "")
    assert isinstance(statement, CreateSkew)
    return replace(statement, pairs=(), estimation=None)


def streams_of(definition: Definition) -> frozenset[str]:
    """The streams that a query's or a derived stream's text names, in lower case."""
    statement = None if definition.text is None else parse_one(definition.text)
    return (
        streams_named(statement.query) if isinstance(statement, CreateQuery | CreateStreamAs) else frozenset()
    )


def listed_by(definition: Definition) -> str | None:
    """The relation whose values a stream waits for by `PER column OF`, in lower case, or None."""
    # Most streams have no such clause, and need not be read for it.
    if definition.text is None or " PER " not in definition.text:
        return None
    match parse_one(definition.text):
        case CreateStream(time=time) | CreateRelation(changes=ChangesClause(stream=CreateStream(time=time))):
            per = time.per
            named = None if per is None or not isinstance(per.listed, ValuesOf) else per.listed.relation
            return None if named is None else named.text.lower()
        case _:
            return None


def has_reading(definition: Definition) -> bool:
    """Whether a definition may have a query in it, which the dialect says how to read."""
    return definition.kind in (CatalogKind.STREAM.value, CatalogKind.QUERY.value)


def catalog_text(definitions: Iterable[Definition]) -> str:
    """A script that defines everything again; what SQL cannot say is named in comments."""
    lines: list[str] = []
    dialect = INITIAL.value
    for one in definitions:
        if one.text is None:
            lines.append(f"-- {one.title}: {one.lacks}")
        else:
            if has_reading(one) and one.dialect != dialect:
                lines.append(f"SET dialect = '{one.dialect}';")
                dialect = one.dialect
            lines.append(f"{one.text};")
        for stream, hidden in one.hides.items():
            lines.append(
                f"-- {one.title} is older than {', '.join(hidden)} of {stream}, which its * leaves out"
            )
        lines += _comments(one)
        if one.paused:
            how = " KEEPING INPUT" if one.keeps_input else ""
            lines.append(f"ALTER QUERY {quoted_name(one.name)} PAUSE{how};")
    return "\n".join(lines)


def _comments(definition: Definition) -> Iterator[str]:
    """The COMMENT statements of what was said of something."""
    name = quoted_name(definition.name)
    if definition.comment is not None:
        yield f"COMMENT ON {definition.kind} {name} IS {quoted_text(definition.comment)};"
    for column, text in definition.columns.items():
        yield f"COMMENT ON COLUMN {name}.{quoted_name(column)} IS {quoted_text(text)};"


def _skew(streams: str, text: str | None = None) -> Definition:
    return Definition(SKEW, streams, text)


def _skewed(statement: CreateSkew) -> str:
    """Between which streams bounds are, as the statement says it."""
    bare = skew_text(replace(statement, pairs=(), estimation=None))
    return bare.removeprefix("CREATE SKEW ").rstrip()


def _placed(statement: ReadStatement, base: Path) -> ReadStatement:
    """The statement with a path that starts from no folder."""
    if statement.format not in FORMATS and not is_topic(statement.format, statement.options):
        return statement
    options = tuple(
        (name, _whole_path(value, base) if name in _PATHS else value) for name, value in statement.options
    )
    return replace(statement, options=options)


_PATHS: Final = ("path", "descriptor")
"""Options that name files."""


def _whole_path(path: str, base: Path) -> str:
    return path if is_whole(path) or is_remote(path) else os.path.abspath(base / path)


def _secret(statement: CreateStream | CreateRelation) -> str | None:
    return secret_option(statement.options)
