"""The passes of an epoch over its input: one, or two where splits had to know the rows before them.

Whether a row is late depends on the rows before it, and a task does not know those of the splits before its
own. So it judges by what it knows: the stream's heartbeat at the start of the epoch and the rows of its own
split. Almost always that is enough; it is not where a row is too late for a row of an earlier split and not
for those of its own. The arrival summaries show it. Then nothing of the first pass is kept, and in a second
one each split knows the largest timestamp before it (decision 0018).
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.errors import SourceError
from headrace.runtime.tasks.messages import EpochWork, TaskReport, kept_parts
from headrace.runtime.tasks.runner import Runner


def run_passes(runner: Runner, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
    """Run an epoch until every row has been judged by all rows before it; the reports of the last pass.

    Args:
        runner: where it runs.
        work: the epoch.
        frames: Spark data frames with the rows of streams that no source is read for.

    Raises:
        UserError: what stopped a task.
        SourceError: an input is not the same in both passes.
    """
    reports = _run(runner, work, frames)
    if _misjudged(work, reports):
        _discard(work, reports)
        reports = _run(runner, work.knowing(report.arrivals for report in reports), frames)
        for name in _misjudged(work, reports):
            raise SourceError(f"the input of {name} has changed while it was read", hint="run again")
    return reports


def _run(runner: Runner, work: EpochWork, frames: Mapping[str, object]) -> list[TaskReport]:
    reports = runner.run_epoch(work, frames)
    for report in reports:
        if report.error is not None:
            raise report.error
    return reports


def _misjudged(work: EpochWork, reports: list[TaskReport]) -> list[str]:
    """The streams with a row that was judged wrongly for want of those before it."""
    arrivals = work.joined(report.arrivals for report in reports)
    return [name for name, seen in arrivals.items() if not seen.is_certain]


def _discard(work: EpochWork, reports: list[TaskReport]) -> None:
    """Remove what a pass has written: only level 0 has, since further levels do nothing in such a pass."""
    known = (stream.values for stream in work.streams.values() if stream.values is not None)
    old = {run for values in known for run in values.runs}
    for report in reports:
        runs = (run for point in report.values.values() for run in point.runs if run not in old)
        refs = (*report.results, *([report.dead_letters] if report.dead_letters is not None else ()))
        parts = (*(ref.part for ref in refs), *(run.part for run in runs), *kept_parts(report))
        for name in {part.segment for part in parts}:
            work.store.delete(name)
