"""SET: how runs go on from the next epoch on, kept with the definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from headrace.byte_sizes import format_bytes
from headrace.core_counts import format_cores
from headrace.engine.access.policy import Policy
from headrace.engine.run.core import Core
from headrace.engine.run.execution import Settings
from headrace.engine.run.machine import check_cores, check_machine
from headrace.errors import LanguageError, UserError
from headrace.language.statements.catalog import Option, SetOption
from headrace.runtime.driver.settings import DEFAULT_EPOCH_BYTES, DEFAULT_EPOCH_TIMEOUT, Managing
from headrace.runtime.journal.definition import SETTING, Definition, key_of
from headrace.scheduling.policies import USUAL_POLICY
from headrace.time import TimeDomain, format_length

_UNSAID: Final = {
    Option.EPOCH_ROWS: "as many as rows have been read",
    Option.EPOCH_BYTES: str(DEFAULT_EPOCH_BYTES),
    Option.RETAIN_EPOCHS: "all",
    Option.MAX_DEAD_LETTERS: "any number",
    Option.REOPTIMIZE_EVERY: "never",
    Option.EPOCH_TIMEOUT: f"{DEFAULT_EPOCH_TIMEOUT:g}",
    Option.MEMORY_LIMIT: "none",
    Option.PROCESSING_LIMIT: "none",
    Option.MANAGER: "act with a limit",
    Option.LATENCY_BOUND: "none",
    Option.SHEDDER: "act with a latency_bound",
    Option.SCHEDULING: USUAL_POLICY,
}
"""What holds where nothing is said."""
_QUOTED: Final = (Option.MANAGER, Option.LATENCY_BOUND, Option.SHEDDER, Option.SCHEDULING)
"""Options whose values are texts."""
_ATTRIBUTES: Final = {Option.RETAIN_EPOCHS: "retain"}
"""The attributes of `RunSettings` that have other names than the options."""
_LIMITS: Final = (Option.MEMORY_LIMIT, Option.PROCESSING_LIMIT)
"""The limits that a manager keeps to."""


def set_option(core: Core, statement: SetOption, policy: Policy) -> None:
    """Carry out SET: runs go on in this way from the next epoch on, and those of later starts.

    What a store has set holds where `connect` was not given the argument of the name.

    Args:
        core: the database.
        statement: what to set.
        policy: what it may reach.

    Raises:
        PolicyError: the policy does not allow it.
        LanguageError: there are more dead letters already, or the machine has not so much memory or so many
            cores, or the queries need more.
        StoreError: it cannot be written; nothing has changed then.
    """
    option, value = statement.option, statement.value
    policy.check_change(f"SET {option.value}", statement.position)
    with core.lock:
        _check_dead_letters(core, statement)
        _check_limits(core, statement)
        shown = f"'{_shown(option, value)}'" if option in _QUOTED else f"{value}"
        text = f"SET {option.value} = {shown}"
        key = key_of(SETTING, option.value)
        if value is None:
            core.set(with_option(core.settings, option, None), key, None)
        else:
            core.set(with_option(core.settings, option, value), key, Definition(SETTING, option.value, text))


def _check_dead_letters(core: Core, statement: SetOption) -> None:
    if statement.option is not Option.MAX_DEAD_LETTERS or not isinstance(statement.value, int):
        return
    if not core.running:
        return
    known = core.started.run.totals.dead_letters
    if known > statement.value:
        raise LanguageError(
            f"there are {known:,} dead letters already, more than {statement.value:,}",
            position=statement.position,
            hint=f"write SET max_dead_letters = {known}, or more",
        )


def _check_limits(core: Core, statement: SetOption) -> None:
    """See that the machine has what a limit allows, and that those that are kept do for the queries."""
    option, value = statement.option, statement.value
    if option not in (*_LIMITS, Option.MANAGER):
        return
    known, wanted = core.settings.run, with_option(core.settings, option, value).run
    begins = wanted.managing is Managing.ACT and known.managing is not Managing.ACT
    # One that is kept already is not looked at again.
    looked_at = wanted
    if not begins and option is not Option.MEMORY_LIMIT:
        looked_at = replace(looked_at, memory_limit=None)
    if not begins and option is not Option.PROCESSING_LIMIT:
        looked_at = replace(looked_at, processing_limit=None)
    try:
        if not core.is_making:
            if option is Option.MEMORY_LIMIT and wanted.memory_limit is not None:
                check_machine(wanted.memory_limit, core.settings.machine)
            if option is Option.PROCESSING_LIMIT and wanted.processing_limit is not None:
                check_cores(wanted.processing_limit, wanted.cores)
        if looked_at.has_limits and wanted.managing is Managing.ACT and core.execution is not None:
            core.execution.check_limits(looked_at)
    except UserError as error:
        raise LanguageError(error.message, position=statement.position, hint=error.hint) from None


def with_option(settings: Settings, option: Option, value: float | str | None) -> Settings:
    """Settings in which one of them is another.

    Args:
        settings: all of them.
        option: which one.
        value: the number, or the word; None for what holds if nothing is said.
    """
    if option is Option.MAX_DEAD_LETTERS:
        assert not isinstance(value, str | float)
        return replace(settings, max_dead_letters=value)
    said: object = value
    if option in (Option.MANAGER, Option.SHEDDER):
        said = None if value is None else Managing(value)
    elif option is Option.EPOCH_BYTES:
        said = value or DEFAULT_EPOCH_BYTES
    changed: dict[str, Any] = {_ATTRIBUTES.get(option, option.value): said}
    return replace(settings, run=replace(settings.run, **changed))


def setting_rows(core: Core) -> list[tuple[str, ...]]:
    """What holds now, per option: its name, its value, and who has said it."""
    known = core.definitions.records.known
    rows: list[tuple[str, ...]] = []
    for option in Option:
        value = _value(core.settings, option)
        shown = _UNSAID[option] if value is None else _shown(option, value)
        if option.value in core.settings.given:
            said = "connect"
        else:
            said = "SET" if key_of(SETTING, option.value) in known else "default"
        rows.append((option.value, shown, said))
    return rows


def _shown(option: Option, value: float | str | None) -> str:
    """A value as people read it."""
    if isinstance(value, int) and option is Option.MEMORY_LIMIT:
        return format_bytes(float(value))
    if isinstance(value, int | float) and option is Option.PROCESSING_LIMIT:
        return format_cores(value)
    if isinstance(value, int) and option is Option.LATENCY_BOUND:
        return format_length(value, TimeDomain.TIMESTAMP)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _value(settings: Settings, option: Option) -> float | str | None:
    if option is Option.MAX_DEAD_LETTERS:
        return settings.max_dead_letters
    if option is Option.EPOCH_TIMEOUT:
        return settings.run.timeout
    found: float | str | Managing | None = getattr(settings.run, _ATTRIBUTES.get(option, option.value))
    return found.value if isinstance(found, Managing) else found
