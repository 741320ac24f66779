"""The systems that are compared: how each is started, and what it is given to do."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Final

import structured_streaming
from peer import QUERIES

FOLDER: Final = Path(__file__).parents[1] / ".peers"
"""Where `scripts/setup_peers.sh` puts what is needed, and the rows are."""

_FLINK: Final = FOLDER / "flink"
_PATHWAY: Final = FOLDER / "pathway"


@dataclass(frozen=True)
class Load:
    """How often a query runs on a system, and over what.

    Attributes:
        part: of the files, the first 1/part; where a system is so slow that all would take minutes.
        runs: how many are counted.
        warm_ups: runs over a quarter of that part, which are not counted.
    """

    part: int = 1
    runs: int = 3
    warm_ups: int = 2


@dataclass(frozen=True)
class System:
    """A system that is measured.

    Attributes:
        title: its name.
        command: starts the process that measures a query.
        load: of queries that are not in `loads`.
        loads: of the others.
        queries: those that it can say.
        variables: of the process's environment.
        last_windows: whether it answers for windows that end after the last bid.
    """

    title: str
    command: Sequence[str]
    load: Load = Load()
    loads: Mapping[str, Load] = field(default_factory=dict)
    queries: Sequence[str] = QUERIES
    variables: Mapping[str, str] = field(default_factory=dict)
    last_windows: bool = True


def _script(name: str, *arguments: str) -> Sequence[str]:
    return (sys.executable, str(Path(__file__).with_name(f"{name}.py")), *arguments)


SYSTEMS: Final[Mapping[str, System]] = {
    "duckdb": System("DuckDB, batch", _script("peer_duckdb"), loads={"hop": Load(4), "100 counts": Load(4)}),
    "headrace": System("Headrace on Spark", _script("peer_headrace", "spark")),
    "inline": System("Headrace, one process", _script("peer_headrace", "inline")),
    # One long run, since part of the time of every run is for starting a cluster.
    "flink": System(
        "Flink",
        (str(_FLINK / "bin" / "python"), str(Path(__file__).with_name("peer_flink.py"))),
        Load(runs=1, warm_ups=1),
        {"hop": Load(10, 1, 1)},
        variables={"JAVA_HOME": str(FOLDER / "jdk")},
    ),
    "pathway": System(
        "Pathway",
        (str(_PATHWAY / "bin" / "python"), str(Path(__file__).with_name("peer_pathway.py"))),
        Load(10, 1, 1),
        {"100 counts": Load(40, 1, 1)},
        # A hop over the few rows of the compared answer does not end within the time for a query.
        tuple(query for query in QUERIES if query not in ("over", "hop")),
    ),
    "streaming": System(
        "Structured Streaming",
        _script("structured_streaming"),
        Load(4, 2),
        {
            "join": Load(10, 2),
            "10 counts": Load(20, 2),
            "hop": Load(40, 2),
            "100 counts": Load(80, 1, 1),
        },
        structured_streaming.QUERIES,
        last_windows=False,
    ),
}
"""The systems, by name; the answer of the first that has one is what the others' are compared with."""


def versions() -> str:
    """The versions of the systems, as text."""
    found = [f"Spark {version('pyspark')}", f"DuckDB {version('duckdb')}"]
    for pathway in _PATHWAY.glob("lib/python*/site-packages/pathway-*.dist-info"):
        found.append(f"Pathway {pathway.name.removeprefix('pathway-').removesuffix('.dist-info')}")
    for flink in _FLINK.glob("lib/python*/site-packages/apache_flink-*.dist-info"):
        number = flink.name.removeprefix("apache_flink-").removesuffix(".dist-info")
        found.append(f"Flink {number} through PyFlink")
    return ", ".join(found)
