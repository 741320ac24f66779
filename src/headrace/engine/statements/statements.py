"""Statements, carried out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Final, assert_never

from headrace.engine.access.policy import Policy
from headrace.engine.catalog.claims import differs, with_columns, with_derived
from headrace.engine.catalog.definitions import RESULT
from headrace.engine.catalog.query_changes import only
from headrace.engine.catalog.stream_changes import adding_columns, with_bounds, with_time
from headrace.engine.catalog.texts import definition_of, query_definition, skew_definition
from headrace.engine.explain.analyze import analyzed, check_bounded, run_alone
from headrace.engine.explain.shared import shared_by, users_of
from headrace.engine.inputs.changes import declared_changes
from headrace.engine.inputs.declared import declared
from headrace.engine.inputs.inputs import Input
from headrace.engine.inputs.relations import RelationTable, declared_relation, with_values
from headrace.engine.planning.silence import place_of
from headrace.engine.query.query import Query, explain_plan, with_notes
from headrace.engine.run.core import Core
from headrace.engine.shown.display import PlanText
from headrace.engine.statements.alter import alter, alteration_text
from headrace.engine.statements.cost import cost_text
from headrace.engine.statements.declaring import check_pipe, warn_of_topics
from headrace.engine.statements.describe import told_of
from headrace.engine.statements.refresh import refreshed_text
from headrace.engine.statements.reoptimize import reoptimized
from headrace.engine.statements.replace import replaced, replacement_text
from headrace.engine.statements.replace_stream import Replacing, changes_to
from headrace.engine.statements.replay import replayed
from headrace.engine.statements.set import setting_rows
from headrace.engine.statements.show import show
from headrace.engine.statements.sink import create_sink, drop_sink
from headrace.engine.statements.tunings import known_tunings, still_answering
from headrace.errors import LanguageError, Position, UserError
from headrace.language.binding.binder import derive
from headrace.language.parsing.pieces import Piece
from headrace.language.statements.catalog import (
    CatalogKind,
    Comment,
    Describe,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SetKeep,
    SetOption,
    SetPriority,
    SetWindow,
    ShowCreate,
)
from headrace.language.statements.sinks import CreateSink, DropSink
from headrace.language.statements.statements import (
    AskWhy,
    Conditional,
    CreateQuery,
    CreateStreamAs,
    DropQuery,
    DropRelation,
    DropStream,
    Explain,
    ExplainAlter,
    ExplainAnalyze,
    ExplainCost,
    ExplainReplace,
    ExplainShared,
    RefreshRelation,
    Reoptimize,
    Replay,
    Select,
    SetConsistency,
    SetDialect,
    Show,
    Statement,
)
from headrace.language.statements.streams import (
    AddColumns,
    AlterStream,
    CreateRelation,
    CreateSkew,
    CreateStream,
    TimeClauses,
)
from headrace.language.syntax import Name
from headrace.language.syntax import QuerySyntax as Syntax
from headrace.optimizer.decisions import Decisions
from headrace.runtime.journal.definition import Definition
from headrace.schema import Schema


def carry_out(core: Core, statement: Statement | Piece, base: Path, policy: Policy) -> Query | str | None:
    """Carry out a statement.

    Args:
        core: the database.
        statement: what to do.
        base: the folder that relative paths start from.
        policy: what the statement may reach.

    Returns:
        A query for CREATE QUERY and SELECT, the text of EXPLAIN, SHOW and WHY, None for others.

    Raises:
        PolicyError: the statement asks for more than the policy allows.
        UserError: the statement is wrong, or an input cannot be read.
    """
    _check_definition(statement, policy)
    match statement:
        case CreateStream() | CreateRelation() | CreateStreamAs() | CreateSink() | SetDialect():
            _define(core, statement, base, policy)
        case AddColumns() | AlterStream() | CreateSkew():
            _alter_stream(core, statement, policy)
        case ShowCreate() | Describe() | ExplainReplace() | ExplainAlter():
            return PlanText(_told(core, statement, policy))
        case PauseQuery() | ResumeQuery() | RenameQuery() | SetConsistency() | SetKeep() | SetWindow():
            return alter(core, statement, policy)
        case Comment() | SetOption() | SetPriority():
            return alter(core, statement, policy)
        case Reoptimize() | RefreshRelation() | Replay():
            return PlanText(_asked(core, statement, policy))
        case CreateQuery(name=name):
            return register(core, name.text, statement, policy)
        case Select() | Piece():
            return register_text(core, None, statement, policy)
        case Explain() | ExplainAnalyze() | ExplainCost() | ExplainShared() | Show() | AskWhy():
            return _text(core, statement, policy)
        case DropStream() | DropRelation() | DropQuery() | DropSink():
            return _drop(core, statement, policy)
        case Conditional():
            return _carry_out_if(core, statement, base, policy)
        case _:
            assert_never(statement)
    return None


def _asked(core: Core, statement: Reoptimize | RefreshRelation | Replay, policy: Policy) -> str:
    """The report of a run that was asked to look once more at plans, a relation or dead letters."""
    match statement:
        case Reoptimize(query=name, position=position):
            policy.check_change("ALTER QUERY", position)
            return reoptimized(core, name)
        case RefreshRelation(relation=name, position=position):
            policy.check_change("REFRESH RELATION", position)
            return refreshed_text(core, name)
        case Replay(position=position):
            policy.check_change("REPLAY", position)
            return replayed(core, statement, policy)
        case _:
            assert_never(statement)


def _carry_out_if(core: Core, statement: Conditional, base: Path, policy: Policy) -> Query | str | None:
    """Carry out a statement if there is, or is not, what it names; the query that is there if not."""
    inner, kind, name = statement.statement, statement.kind, statement.name.text
    _check_definition(inner, policy)
    if statement.exists:
        policy.check_change(f"DROP {kind.value}", inner.position)
    core.make_waiting()
    # A relation may have the name that is said to be a stream's, which is refused as ever.
    kinds = _OF_ONE_SPACE if statement.exists and kind in _OF_ONE_SPACE else (kind,)
    if any(core.definitions.has(one, name) for one in kinds) is statement.exists:
        try:
            return carry_out(core, inner, base, policy)
        except LanguageError:
            # Or somebody else has done it meanwhile.
            if any(core.definitions.has(one, name) for one in kinds) is statement.exists:
                raise
    with core.lock:
        core.definitions = core.definitions.claiming(kind, name)
    return core.definitions.find_query(name) if kind is CatalogKind.QUERY else None


_OF_ONE_SPACE: Final = (CatalogKind.STREAM, CatalogKind.RELATION)
"""Kinds of which no two things have one name."""


def _check_definition(statement: Statement | Piece, policy: Policy) -> None:
    """Refuse a statement that defines something where the policy only lets it ask."""
    match statement:
        case CreateStream() | CreateStreamAs():
            policy.check_definition("CREATE STREAM", statement.position)
        case CreateRelation():
            policy.check_definition("CREATE RELATION", statement.position)
        case CreateQuery() | Piece():
            policy.check_definition("defining a query", statement.position)
        case CreateSink():
            policy.check_definition("CREATE SINK", statement.position)
        case Select(query=query):
            policy.check_definition("defining a query", place_of(query))


def _told(
    core: Core, statement: ShowCreate | Describe | ExplainReplace | ExplainAlter, policy: Policy
) -> str:
    """What there is to say of something that is defined, or of what would replace it."""
    if isinstance(statement, ExplainReplace):
        return replacement_text(core, statement.made, policy)
    if isinstance(statement, ExplainAlter):
        return alteration_text(core, statement, policy)
    return told_of(core.definitions, statement, core.known_status, policy)


class CombinedChange(Enum):
    """What several statements in a row do by one change; none of them depends on the others."""

    COMES = "a query is added, from now on"
    GOES = "a query is dropped"


def as_one(core: Core, move: CombinedChange | None) -> AbstractContextManager[None]:
    """Within it, what several statements do in a row is one change; nothing where each acts alone."""
    return nullcontext() if move is None else core.together(come=move is CombinedChange.COMES)


def move_of(statement: Statement | Piece) -> CombinedChange | None:
    """What a statement does by one change with those like it beside it, or None where it acts alone."""
    match statement:
        case CreateQuery(warm=False, start=None, replaces=False) | Select() | Piece():
            return CombinedChange.COMES
        case DropQuery():
            return CombinedChange.GOES
        case _:
            return None


def register(core: Core, name: str, made: CreateQuery, policy: Policy) -> Query:
    """Take in the query of CREATE QUERY, in the place of the one of its name if it says OR REPLACE.

    Args:
        core: the database.
        name: that of the query, whatever the statement says.
        made: the statement.
        policy: what it may reach.

    Raises:
        UserError: as `Core.register` does, or the one of its name cannot be replaced.
    """
    made = replace(made, name=Name(name, made.name.position))
    if made.replaces and (other := replaced(core, made, policy)) is not None:
        return other
    defaults = core.definitions.catalog.defaults

    def given(name: str) -> Definition:
        return definition_of(made, Path(), policy, defaults)

    return core.register(
        name, made.query, made.position, policy,
        warm=made.warm, heartbeats=made.heartbeats, consistency=made.consistency, start=made.start,
        loss=made.loss, priority=made.priority, given=given,
    )  # fmt: skip


def register_text(core: Core, name: str | None, made: Select | Piece, policy: Policy) -> Query:
    """Take in the query of a SELECT, or of a text that may be a CREATE QUERY.

    Args:
        core: the database.
        name: that of the query; the text's if None, or one that is made.
        made: the query.
        policy: what it may reach.

    Raises:
        UserError: as `Core.register` does.
    """
    defaults = core.definitions.catalog.defaults
    match made:
        case Select(query=query, text=text):
            asked: Syntax | Piece = query
            position = None
        case Piece(name=own, body=text):
            asked, name, position = made, name or own, made.position
        case _:
            assert_never(made)
    return core.register(
        name, asked, position, policy, given=lambda name: query_definition(name, text, policy, defaults)
    )


def _define(
    core: Core,
    statement: CreateStream | CreateRelation | CreateStreamAs | CreateSink | SetDialect,
    base: Path,
    policy: Policy,
) -> None:
    defaults = core.definitions.catalog.defaults
    match statement:
        case CreateStream(replaces=True) | CreateRelation(replaces=True) | CreateStreamAs(replaces=True):
            _replace(core, statement, base, policy)
        case CreateStream(time=time):
            check_pipe(core, statement, base, policy)
            listed = replace(statement, time=_listed(core, time, policy))
            given = definition_of(statement, base, policy, defaults)
            known = core.known_columns(given, statement.columns)
            stream = declared(listed, base, policy, core.read_stream, known=known)
            _take_in(core, stream, given, statement.position)
        case CreateRelation():
            check_pipe(core, statement, base, policy)
            given = definition_of(statement, base, policy, defaults)
            table = _relation(core, statement, base, policy, core.known_columns(given, statement.columns))
            _take_in(core, table, given, statement.position)
        case CreateStreamAs():
            with core.lock:
                _derive(core, statement, policy)
        case CreateSink():
            create_sink(core, statement, base, policy)
        case SetDialect(defaults=defaults, position=position, quotes_names=quotes_names):
            policy.check_change("SET dialect", position)
            with core.lock:
                core.definitions = core.definitions.with_defaults(defaults, quotes_names)
        case _:
            assert_never(statement)


def _replace(core: Core, statement: Replacing, base: Path, policy: Policy) -> None:
    """Let a stream or a relation take the place of the one of its name, if there is one."""
    with core.lock:
        before = core.definitions
        given = definition_of(statement, base, policy, before.catalog.defaults)
        changes = changes_to(core, statement, given, policy)
        for change in changes or ():
            _alter_stream(core, change, policy)
        if changes is not None:
            core.definitions = core.definitions.claiming(CatalogKind(given.kind), given.name)
            return
        if given.key in before.records.known:
            core.drop(CatalogKind(given.kind), given.name, statement.position)
        try:
            _define(core, replace(statement, replaces=False), base, policy)
        except UserError:
            # The other one stays if this one cannot be made.
            core.change(before)
            raise


def _take_in(core: Core, made: Input | RelationTable, given: Definition, position: Position) -> None:
    core.take_in(made, given, position)
    if isinstance(made, Input) and not core.is_making and not core.is_stored(given):
        warn_of_topics(made, position)


def _derive(core: Core, statement: CreateStreamAs, policy: Policy) -> None:
    known, query, position = core.definitions, statement.query, statement.position
    given = definition_of(statement, Path(), policy, known.catalog.defaults)
    stored = core.is_stored(given)
    catalog = core.catalog_of(given if stored or core.is_making else None)
    entry = derive(statement.name.text, query, policy.visible(catalog))
    if stored:
        core.definitions = with_derived(known, entry, given, position)
    else:
        core.check_new_name(given, position)
        core.change(core.claiming(known.with_derived(entry, query, position).recording(given), given))


def _relation(
    core: Core, statement: CreateRelation, base: Path, policy: Policy, known: Schema | None
) -> Input | RelationTable:
    changes = statement.changes
    if changes is None:
        return declared_relation(statement, base, policy, core.folders, core.read_frame, known=known)
    stream = replace(changes.stream, time=_listed(core, changes.stream.time, policy))
    return declared_changes(
        statement, replace(changes, stream=stream), base, policy, core.read_stream, known=known
    )


def _text(
    core: Core,
    statement: Explain | ExplainAnalyze | ExplainCost | ExplainShared | Show | AskWhy,
    policy: Policy,
) -> str:
    """What a statement asks of streams, queries and plans, as text."""
    catalog = policy.visible(core.definitions.catalog)
    match statement:
        case Explain(query=query, stage=stage):
            found = core.compiled(query, policy)
            notes = (*found.notes, *core.silence(found.plan, place_of(query)))
            return PlanText(
                with_notes(explain_plan(found.plan, found.decisions or Decisions(), stage), notes)
            )
        case ExplainCost():
            return PlanText(cost_text(core, statement, policy))
        case ExplainShared():
            return _shared(core, statement, policy)
        case ExplainAnalyze():
            return _analyzed(core, statement, policy)
        case AskWhy(query=name, position=position):
            policy.check_change("WHY", position)
            return PlanText(str(core.why_of(name.text, name.position)))
        case Show():
            return show(
                statement,
                core.definitions,
                catalog.functions,
                core.known_status,
                setting_rows(core),
                known_tunings(core),
                still_answering(core),
            )
        case _:
            assert_never(statement)


def _shared(core: Core, statement: ExplainShared, policy: Policy) -> str:
    """The operators that queries have in common: of the run that goes on, or if all started together."""
    policy.check_change("EXPLAIN SHARED", statement.position)
    if statement.query is None and core.running:
        return PlanText(users_of(core.status.graph, core.started.run.reading.queries.name_of))
    plans = {query.name: core.definitions.plans[query.id] for query in core.definitions.answered.values()}
    if statement.query is not None:
        plans[RESULT] = core.compiled(statement.query, policy).optimized
    if not plans:
        raise LanguageError(
            "there is no query", position=statement.position, hint="define one with CREATE QUERY first"
        )
    return PlanText(shared_by(core.definitions, plans))


def _analyzed(core: Core, statement: ExplainAnalyze, policy: Policy) -> str:
    """The plan of a query with the numbers of the run that answers it, or of a run of its own."""
    position = statement.position
    match statement.subject:
        case Name() as name:
            policy.check_change("EXPLAIN ANALYZE of a query by its name", position)
            known = core.definitions.answered_query(name.text, name.position)
            return PlanText(analyzed(core.status, known.name))
        case query:
            if core.running:
                raise LanguageError(
                    "EXPLAIN ANALYZE runs its query alone, and a run is going on",
                    position=position,
                    hint="define the query, and then write EXPLAIN ANALYZE with its name",
                )
            found = core.compiled(query, policy)
            alone = only(core.definitions, Query(core, RESULT, RESULT, found.plan), found.optimized)
            check_bounded(alone, found.plan, position)
            return PlanText(run_alone(core.runner(), core.settings, alone))


def _alter_stream(core: Core, statement: AddColumns | AlterStream | CreateSkew, policy: Policy) -> None:
    match statement:
        case AddColumns(position=position):
            policy.check_change("ALTER STREAM", position)
            with core.lock:
                known = with_columns(core.definitions, statement)
                if known is not None:
                    core.definitions = known
                else:
                    core.change(adding_columns(core.definitions, statement))
        case AlterStream(position=position, time=time):
            policy.check_change("ALTER STREAM", position)
            with core.lock:
                listed = replace(statement, time=_listed(core, time, policy))
                core.change(with_time(core.definitions, listed, time))
        case CreateSkew(position=position):
            policy.check_change("CREATE SKEW", position)
            with core.lock:
                given = skew_definition(statement)
                if core.is_stored(given) and core.definitions.records.known[given.key].text != given.text:
                    raise differs(core.definitions, given, position)
                core.change(core.claiming(with_bounds(core.definitions, statement), given))
        case _:
            assert_never(statement)


def _listed(core: Core, clauses: TimeClauses, policy: Policy) -> TimeClauses:
    """The clauses of a stream with values in the place of the relation that has them."""
    catalog = policy.visible(core.definitions.catalog)
    return with_values(clauses, catalog, core.definitions.relations)


def _drop(
    core: Core, statement: DropStream | DropRelation | DropQuery | DropSink, policy: Policy
) -> str | None:
    name, position = statement.name, statement.position
    match statement:
        case DropStream():
            policy.check_change("DROP STREAM", position)
            core.drop(CatalogKind.STREAM, name.text, name.position, cascade=statement.cascade)
        case DropRelation():
            policy.check_change("DROP RELATION", position)
            core.drop(CatalogKind.RELATION, name.text, name.position, cascade=statement.cascade)
        case DropQuery():
            policy.check_change("DROP QUERY", position)
            core.drop(CatalogKind.QUERY, name.text, name.position, cascade=statement.cascade)
        case DropSink():
            problem = drop_sink(core, statement, policy)
            return None if problem is None else PlanText(problem)
        case _:
            assert_never(statement)
    return None
