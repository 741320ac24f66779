"""COMMENT ON and ALTER QUERY: what is said of something, and whether a query goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from headrace.engine.access.policy import Policy
from headrace.engine.catalog.definitions import Definitions
from headrace.engine.catalog.query_changes import pausing, resuming, with_level
from headrace.engine.query.query import Query
from headrace.engine.run.core import Core
from headrace.engine.shown.display import PlanText
from headrace.engine.shown.status import instant_text
from headrace.engine.statements.describe import found, schema_of
from headrace.engine.statements.keep import explain_kept, kept
from headrace.engine.statements.keep_values import explain_values_kept, values_kept
from headrace.engine.statements.priority import explain_prioritised, prioritised
from headrace.engine.statements.reoptimize import explain_reoptimized
from headrace.engine.statements.replace import memory_lines, rows_text
from headrace.engine.statements.resize import explain_resized, resized
from headrace.engine.statements.running import check_going_on
from headrace.engine.statements.set import set_option
from headrace.errors import LanguageError
from headrace.language.statements.catalog import (
    CatalogKind,
    Comment,
    PauseQuery,
    RenameQuery,
    ResumeQuery,
    SetKeep,
    SetOption,
    SetPriority,
    SetWindow,
)
from headrace.language.statements.statements import ExplainAlter, Reoptimize, SetConsistency
from headrace.language.syntax import Name
from headrace.runtime.driver.change.beginning.boundary import Beginning
from headrace.runtime.driver.change.migration.exchange import require_no_exchange
from headrace.suggestions import did_you_mean
from headrace.time import BEGINNING, INFINITY, TimeDomain, format_instant


def alter(
    core: Core,
    statement: Comment
    | PauseQuery
    | RenameQuery
    | ResumeQuery
    | SetConsistency
    | SetKeep
    | SetOption
    | SetPriority
    | SetWindow,
    policy: Policy,
) -> PlanText | None:
    """Carry out COMMENT ON, ALTER QUERY, or SET.

    Args:
        core: the database.
        statement: what to do.
        policy: what it may reach.

    Returns:
        What there is to say about it, or None.

    Raises:
        PolicyError: the policy does not allow it.
        LanguageError: there is no such thing, or it cannot be done.
        UserError: the change cannot be carried out.
    """
    match statement:
        case Comment():
            policy.check_change("COMMENT ON", statement.position)
            _comment(core, statement)
            return None
        case RenameQuery(query=name, to=to):
            policy.check_change("ALTER QUERY", statement.position)
            core.rename(name, to)
            return None
        case PauseQuery():
            policy.check_change("ALTER QUERY", statement.position)
            return PlanText(_pause(core, statement))
        case ResumeQuery():
            policy.check_change("ALTER QUERY", statement.position)
            return PlanText(_resume(core, statement))
        case SetConsistency():
            policy.check_change("ALTER QUERY", statement.position)
            _set_consistency(core, statement)
            return None
        case SetWindow():
            policy.check_change("ALTER QUERY", statement.position)
            return PlanText(resized(core, statement))
        case SetKeep():
            policy.check_change("ALTER QUERY", statement.position)
            return PlanText(values_kept(core, statement) if statement.is_utility else kept(core, statement))
        case SetPriority():
            policy.check_change("ALTER QUERY", statement.position)
            return PlanText(prioritised(core, statement))
        case SetOption():
            set_option(core, statement, policy)
            return None
        case _:
            assert_never(statement)


def alteration_text(core: Core, statement: ExplainAlter, policy: Policy) -> str:
    """The effect that ALTER QUERY would have; nothing is done.

    Args:
        core: the database.
        statement: with the change.
        policy: what it may reach.

    Raises:
        PolicyError: the policy does not allow the change.
        LanguageError: there is no such query, or the change cannot be made.
        UserError: the change cannot be carried out.
    """
    policy.check_change("EXPLAIN ALTER QUERY", statement.position)
    with core.lock:
        match statement.change:
            case SetConsistency() as change:
                return _explain_level(core, change)
            case PauseQuery() as change:
                return _explain_pause(core, change)
            case ResumeQuery() as change:
                return _explain_resume(core, change)
            case SetKeep() as change:
                return explain_values_kept(core, change) if change.is_utility else explain_kept(core, change)
            case SetWindow() as change:
                return explain_resized(core, change)
            case SetPriority() as change:
                return explain_prioritised(core, change)
            case RenameQuery(query=name, to=to):
                return _explain_rename(core, name, to)
            case Reoptimize(query=name):
                return explain_reoptimized(core, name)
            case _:
                assert_never(statement.change)


def _explain_rename(core: Core, name: Name, to: Name) -> str:
    query, _ = core.renamed(name, to)
    if query.name == to.text:
        return f"{query.name} has this name already"
    return f"{query.name} would be called {to.text}; its answer, sinks and subscriptions would go on"


def _set_consistency(core: Core, statement: SetConsistency) -> None:
    with core.near_present(statement.query.text), core.lock:
        core.change(_leveled(core, statement)[1])


def _leveled(core: Core, statement: SetConsistency) -> tuple[Query, Definitions]:
    """A query, and what is defined with it at another level.

    Raises:
        LanguageError: it is paused, or has failed, or cannot be at that level.
    """
    core.make_waiting()
    name, known = statement.query, core.definitions
    query = known.query_named(name.text, name.position)
    if known.is_paused(query):
        raise LanguageError(
            f"the query {query.name} is paused",
            position=name.position,
            hint=f"write ALTER QUERY {query.name} RESUME first",
        )
    check_going_on(core, query, name.position)
    return query, with_level(known, query, statement.consistency)


def _explain_level(core: Core, statement: SetConsistency) -> str:
    query, defined = _leveled(core, statement)
    if defined.queries[query.id].plan == core.definitions.queries[query.id].plan:
        return f"{query.name} is at this level already; nothing changes"
    if not core.running:
        return f"{query.name} is at that level from the next run on"
    require_no_exchange(core.started.run.reading.queries, query.id)
    return f"{query.name} goes on at that level; all operators keep their state, and what is final stays"


def _comment(core: Core, statement: Comment) -> None:
    with core.lock:
        known = core.definitions
        # A sink has no columns of its own, and may be called like its query.
        among = [kind for kind in CatalogKind if kind is not CatalogKind.SINK or statement.column is None]
        record = found(known, statement.kind, statement.name, among)
        if statement.column is None:
            changed = replace(record, comment=statement.text)
        else:
            schema, column = schema_of(known, record), statement.column
            if schema is None or schema.find(column.text) is None:
                names = () if schema is None else schema.names
                raise LanguageError(
                    f"{record.name} has no column {column.text}",
                    position=column.position,
                    hint=did_you_mean(column.text, names) or f"it has {', '.join(names)}",
                )
            others = {name: said for name, said in record.columns.items() if name != column.text.lower()}
            said = {} if statement.text is None else {column.text.lower(): statement.text}
            changed = replace(record, columns={**others, **said})
        core.change(replace(known, records=known.records.changed(record.key, changed)))


def _pause(core: Core, statement: PauseQuery) -> str:
    with core.near_present(statement.query.text), core.lock:
        query = _to_pause(core, statement)
        core.change(pausing(core.definitions, query, keeps_input=statement.keeps_input))
        start = core.paused_at(query)
    return f"{query.name} is paused{_pause_text(query, statement, start)}"


def _explain_pause(core: Core, statement: PauseQuery) -> str:
    query = _to_pause(core, statement)
    if statement.keeps_input:
        core.started.check_keeping(query)
    start = query.heartbeat if core.running else None
    text = f"{query.name} would be paused{_pause_text(query, statement, start)}"
    ends = start not in (None, BEGINNING, INFINITY)
    return f"{text}; what it has said of later instants is taken back" if ends else text


def _to_pause(core: Core, statement: PauseQuery) -> Query:
    """The query that is to be paused.

    Raises:
        LanguageError: it cannot be.
    """
    name, known = statement.query, core.definitions
    query = known.query_named(name.text, name.position)
    if known.is_paused(query):
        raise LanguageError(f"the query {query.name} is paused already", position=name.position)
    check_going_on(core, query, name.position)
    if statement.keeps_input and not core.running:
        raise LanguageError(
            f"{query.name} cannot keep its input: no endless run is going on",
            position=statement.position,
            hint="call start() first, or leave out KEEPING INPUT",
        )
    return query


def _pause_text(query: Query, statement: PauseQuery, start: int | None) -> str:
    """The words for a paused query whose answer is final up to an instant; None before a run has it."""
    if start is None:
        return " when the next run begins"
    if start in (BEGINNING, INFINITY):
        return f"; {'nothing' if start == BEGINNING else 'all'} of its answer is final"
    kept = ", and the rows that come are kept" if statement.keeps_input else ""
    return f"; its answer ends before {format_instant(start, query.domain)}{kept}"


def _explain_resume(core: Core, statement: ResumeQuery) -> str:
    core.make_waiting()
    name, known = statement.query, core.definitions
    query = known.query_named(name.text, name.position)
    if core.running and core.has_failed(query):
        return f"{query.name} has failed; it would go on as a query that is paused now, and then resumed"
    if not known.is_paused(query):
        raise LanguageError(f"the query {query.name} is not paused", position=name.position)
    before = core.paused_at(query)
    if before is None or not core.running:
        return f"{query.name} would be resumed when the next run begins"
    defined = resuming(known, query)
    begins = core.started.beginning_of(query, defined)
    return "\n".join((*memory_lines(core, defined), _resume_text(query, before, begins)))


def _resume_text(query: Query, before: int, begins: Beginning) -> str:
    """The words for a query that would go on; up to which instant it is final, and how it would begin."""
    at, exact = begins.boundary.at, begins.boundary.exact
    if at == INFINITY:
        return f"{query.name} would be resumed; all of its answer is final"
    by = f", over {rows_text(begins.rows)}" if begins.rows is not None else ""
    if begins.windows:
        by = f", with what larger windows hold: {', '.join(begins.windows)}"
    missing = _missing_text(before, at, exact, query.domain)
    return f"{query.name} would be resumed{by}{missing}"


def _resume(core: Core, statement: ResumeQuery) -> str:
    name = statement.query
    with core.lock:
        core.make_waiting()
        known = core.definitions
        query = known.query_named(name.text, name.position)
        if core.running and core.has_failed(query):
            # It goes on as one that has been paused since then.
            core.change(pausing(known, query))
            known = core.definitions
        if not known.is_paused(query):
            raise LanguageError(f"the query {query.name} is not paused", position=name.position)
        before = core.paused_at(query)

    def made() -> Definitions:
        now = core.definitions
        if not now.is_paused(query):
            raise LanguageError(f"the query {query.name} is not paused", position=name.position)
        return resuming(now, query)

    core.change_when_ready(made, query.name)
    start = core.warm_start(query)
    if before is None or start is None:
        return f"{query.name} is resumed when the next run begins"
    resumed = f"{query.name} is resumed, over the rows since epoch {start.since}"
    lacks = core.gaps(query)[-1:]
    exact = next((gap.exact for gap in lacks if gap.exact is not None), start.answers_from)
    return f"{resumed}{_missing_text(before, start.answers_from, exact, query.domain)}"


def _missing_text(before: int, begins: int, exact: int, domain: TimeDomain) -> str:
    """The words for what the answer of a query lacks that was resumed.

    Args:
        before: up to where it was final (instant).
        begins: from where on it goes on (instant).
        exact: from where on it is exact (instant).
        domain: of the instants.
    """
    if before >= begins:
        missing = "" if exact > begins else "; it lacks no instant"
    else:
        last = instant_text(begins, domain)
        first = "" if before == BEGINNING else f"from {format_instant(before, domain)} "
        missing = f"; it says nothing about the instants {first}to before {last}"
    return f"{missing}{_text_of_exact(exact, begins, domain)}"


def _text_of_exact(exact: int, begins: int, domain: TimeDomain) -> str:
    """What is said of an answer that begins at an instant, and is exact from another one on."""
    if exact <= begins:
        return ""
    if exact == INFINITY:
        return "; rows from before that its windows reach back to are missing"
    return f"; it is exact from {format_instant(exact, domain)} on, since rows from before are missing"
