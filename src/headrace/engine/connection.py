"""The door to Headrace: a new database, with what it runs on."""

from __future__ import annotations

import importlib
import math
import operator
import os
from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Literal, SupportsIndex

from headrace.byte_sizes import bytes_of
from headrace.engine.access.policy import Policy
from headrace.engine.database import Database
from headrace.engine.run.execution import Settings
from headrace.engine.run.machine import check_cores, check_machine, machine_cores, machine_memory
from headrace.errors import UserError
from headrace.language.defaults import INITIAL, Defaults
from headrace.runtime.driver.settings import DEFAULT_EPOCH_BYTES, Managing, RunSettings
from headrace.runtime.tasks.inline import UNDIVIDED, InlineRunner
from headrace.runtime.tasks.runner import Runner
from headrace.time import INFINITY, MICROSECONDS, Clock, SystemClock, parse_duration

_OTHERS: Final = (
    "reoptimize_every", "epoch_timeout", "memory_limit", "manager", "latency_bound", "shedder",
    "processing_limit",
)  # fmt: skip
"""Arguments beside numbers that SET can change."""

_NUMBERS: Final = ("threads", "buckets", "epoch_rows", "epoch_bytes", "retain_epochs", "max_dead_letters")
"""The arguments that are whole numbers."""

RunnerName = Literal["spark", "inline"]
WayName = Literal["advise", "act", "off"]


def connect(
    runner: RunnerName = "spark",
    storage: str | Path | None = None,
    spark: Any = None,
    *,
    master: str | None = None,
    threads: int | None = None,
    buckets: int | None = None,
    epoch_rows: int | None = None,
    epoch_bytes: int | None = None,
    keep_results: bool = True,
    retain_epochs: int | None = None,
    max_dead_letters: int | None = None,
    reoptimize_every: float | None = None,
    epoch_timeout: float | None = None,
    memory_limit: str | int | None = None,
    processing_limit: float | None = None,
    manager: WayName | None = None,
    latency_bound: str | float | None = None,
    shedder: WayName | None = None,
    dialect: str | None = None,
    policy: Policy | None = None,
    clock: Clock | None = None,
) -> Database:
    """A new database.

    Args:
        runner: `spark`, or `inline` for this process without Spark.
        storage: a folder that makes runs durable: started again on it, a run goes on where its last commit
            was. It must be one that all machines share. None for a temporary folder.
        spark: an existing Spark session; without one, a local one is started when it is first needed.
        master: the Spark master to start, if not all cores of this machine.
        threads: how many threads do the work of the runner `inline`. If None, one for each core, and one
            for small epochs, whose rows are pushed. Code of users runs in one at a time.
        buckets: over how many buckets state is spread; as many as tasks can run at once if None. A durable
            store keeps the number it was made with.
        epoch_rows: about how many rows an epoch takes; if None, 500,000 at first, and more as more have
            been read of streams that end.
        epoch_bytes: about how many bytes of rows an epoch takes, as far as their sizes are known before they
            are read; 256 MiB if None. An epoch ends at whichever limit it reaches first.
        keep_results: False computes everything and stores no results, for measurements.
        retain_epochs: of how many of the last epochs results are kept; of all if None.
        max_dead_letters: how many rows may be dead letters; an epoch with more is not committed, and the
            run ends with an error. Any number if None.
        reoptimize_every: how often running queries are looked at for a better order of their joins (seconds
            of wall-clock time, at least); None leaves that to `ALTER QUERY name REOPTIMIZE`.
        epoch_timeout: so long an operator of a query may work in an epoch (seconds); a query with one that
            takes longer ends, and the others go on. 600 if None; 30 in `headrace serve`.
        memory_limit: how many bytes of state there may be while a run is endless, as a number or as a text
            such as `2 GB`. Windows within bounds become shorter where there would be more. Any number if
            None.
        processing_limit: how much processor time queries may need while a run is endless, at the rates that
            come, in cores (1.5). Windows within bounds become shorter where they would need more. Any number
            if None.
        manager: `act` does what keeps to the limits, `advise` only says what it would do, `off` does nothing.
            If None, it acts where there is one.
        latency_bound: for how long rows may wait while a run is endless, in seconds or as a text such as
            `2 seconds`. Where they would wait longer, rows of queries that bear loss are left out. For any
            time if None.
        shedder: `act` leaves rows out, `advise` only says which share it would keep, `off` does nothing. If
            None, it acts where there is a bound.
        dialect: how texts are read where they leave something out: `sql`, which holds if None, `pipes` or
            `cql`. `SET dialect` changes it for the statements that follow.
        clock: wall-clock time, for tests such as `ManualClock`; the machine's if None.
        policy: what SQL may reach where `execute` and `query` are given no other; `Policy.open()` if None.

    Raises:
        UserError: an argument makes no sense.
    """
    counts = (threads, buckets, epoch_rows, epoch_bytes, retain_epochs, max_dead_letters)
    numbers = dict(zip(_NUMBERS, counts, strict=True))
    _check_numbers(numbers)
    _check_choices(runner, dialect, threads)
    inline = runner == "inline"
    _check_seconds("reoptimize_every", reoptimize_every, "never")
    _check_seconds("epoch_timeout", epoch_timeout, "600")
    others = (reoptimize_every, epoch_timeout, memory_limit, manager, latency_bound, shedder)
    make = partial(_inline_runner, threads) if inline else partial(_spark_runner, spark, master)
    machine = machine_memory() if inline or (master or "local").startswith("local") else None
    cores = _cores(threads, inline, master)
    run = RunSettings(
        *(epoch_rows, epoch_bytes or DEFAULT_EPOCH_BYTES, buckets, keep_results, retain_epochs),
        clock=clock or SystemClock(),
        reoptimize_every=reoptimize_every,
        epoch_timeout=epoch_timeout,
        memory_limit=_limit(memory_limit, machine),
        processing_limit=_time_limit(processing_limit, cores),
        cores=cores,
        manager=_managing("manager", manager),
        latency_bound=_latency(latency_bound),
        shedder=_managing("shedder", shedder),
    )
    given = _given({**dict(zip(_OTHERS, (*others, processing_limit), strict=True)), **numbers})
    settings = Settings(_folder(storage), run, max_dead_letters, given, Defaults(dialect or INITIAL), machine)
    return Database(make, settings, policy or Policy.open())


def _folder(storage: str | Path | None) -> Path | None:
    """The folder of a durable store."""
    return None if storage is None else Path(storage).absolute()


def _given(arguments: Mapping[str, object]) -> frozenset[str]:
    """The names of the arguments that somebody has given."""
    return frozenset(name for name, value in arguments.items() if value is not None)


def _limit(given: str | int | None, machine: int | None) -> int | None:
    """A limit of memory in bytes."""
    if given is None:
        return None
    if isinstance(given, str):
        size = bytes_of(given)
    else:
        size = int(given) if isinstance(given, Integral) and not isinstance(given, bool) else None
    if size is None or size < 1:
        raise UserError(
            f"memory_limit is not a size of memory: {given!r}",
            hint="give a number of bytes, or a text such as '2 GB'",
        )
    check_machine(size, machine)
    return size


def _cores(threads: int | None, inline: bool, master: str | None) -> int | None:
    """On how many cores runs work; None where that is not this machine's affair."""
    if inline:
        return min(threads or machine_cores(), machine_cores())
    return machine_cores() if (master or "local").startswith("local") else None


def _time_limit(given: float | None, cores: int | None) -> float | None:
    """A limit of processor time in cores."""
    if given is None:
        return None
    is_number = isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given)
    if not is_number or given <= 0:
        raise UserError(
            f"processing_limit is not a number of cores above 0: {given!r}", hint="give a number such as 1.5"
        )
    check_cores(given, cores)
    return float(given)


def _latency(given: str | float | None) -> int | None:
    """A bound of latency in microseconds."""
    if given is None:
        return None
    second = MICROSECONDS["SECOND"]
    if isinstance(given, str):
        found = parse_duration(given)
        length = found.length if found.unit is not None else 0
    else:
        is_number = isinstance(given, Real) and not isinstance(given, bool) and math.isfinite(given)
        length = round(given * second) if is_number else 0
    if not 0 < length < INFINITY:
        raise UserError(
            f"latency_bound is not for how long rows may wait: {given!r}",
            hint="give a number of seconds, or a text such as '2 seconds'",
        )
    return length


def _managing(name: str, given: str | None) -> Managing | None:
    ways = [way.value for way in Managing]
    if given is not None and given not in ways:
        known = ", ".join(map(repr, ways))
        raise UserError(f"the {name} cannot be {given!r}", hint=f"give one of {known}, or None")
    return None if given is None else Managing(given)


def _check_numbers(numbers: Mapping[str, int | None]) -> None:
    for name, value in numbers.items():
        least = 0 if name == "max_dead_letters" else 1
        if value is not None and (not isinstance(value, SupportsIndex) or operator.index(value) < least):
            raise UserError(f"{name} must be at least {least}, not {value!r}", hint="give a whole number")


def _check_choices(runner: str, dialect: str | None, threads: int | None) -> None:
    if runner not in ("spark", "inline"):
        raise UserError(f"there is no runner {runner}", hint="use 'spark' or 'inline'")
    if threads is not None and runner != "inline":
        hint = f"use the runner inline, or the master local[{threads}] for so many tasks of Spark's"
        raise UserError("threads are of the runner inline", hint=hint)
    readings = [reading.value for reading in Defaults]
    if dialect is not None and dialect not in readings:
        known = ", ".join(map(repr, readings))
        raise UserError(f"there is no dialect {dialect!r}", hint=f"the dialects are {known}")


def _check_seconds(name: str, value: float | None, default: str) -> None:
    if value is not None and not (isinstance(value, Real) and value > 0):
        message = f"{name} must be more than 0, not {value!r}"
        raise UserError(message, hint=f"give a number of seconds, or None for {default}")


def _inline_runner(threads: int | None) -> InlineRunner:
    return InlineRunner(undivided=UNDIVIDED, threads=threads or machine_cores(), spare=threads is None)


def _check_java() -> None:
    """Refuse a JAVA_HOME without a Java, of which Spark's scripts say little."""
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home, "bin", "java").exists():
        raise UserError(
            f"JAVA_HOME is {home}, and there is no bin/java in it",
            hint="set it to the folder of a JDK 17 or later, or use the runner inline",
        )


def _spark_runner(session: Any, master: str | None) -> Runner:
    if session is None:
        _check_java()
    # Imported when it is needed: explaining a query should not wait for Spark to load.
    module = importlib.import_module("headrace.runtime.spark.runner")
    runner: Runner = module.SparkRunner(session, master)
    return runner
