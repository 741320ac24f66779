"""A stream of Spark's that is timed by arrival: each batch gets the instant of the epoch that takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.time import ManualClock
from waiting import wait_for

pytestmark = pytest.mark.spark

PATIENCE = 120
BEGIN = 1_800_000_000_000_000


def test_batches_have_the_instants_of_their_epochs(spark: Any, tmp_path: Path) -> None:
    """Also where no column of the rows is read, of which Spark would hand over none."""
    for number in range(2):
        (tmp_path / f"{number}.json").write_text('{"v": 1}\n{"v": 2}\n')
    reader = spark.readStream.schema("v BIGINT").option("maxFilesPerTrigger", 1)
    with hr.connect(spark=spark, clock=ManualClock(BEGIN)) as db:
        db.stream("s", reader.json(str(tmp_path)), timestamp=hr.ByArrival())
        db.query("SELECT COUNT(*) AS n, MIN(arrival) AS at FROM s [NOW]", name="counts")
        db.start()
        wait_for(lambda: db.status.stream("s").rows >= 4)
        assert not db.problems
        assert db.stop().late == 0
        counts = db["counts"].stream().to_pylist()
    assert [row["n"] for row in counts] == [2, 2]
    assert all(row["ts"] == row["at"] for row in counts)
    # The clock stands still.
    first, second = (round(row["ts"].timestamp() * 1e6) - BEGIN for row in counts)
    assert 0 <= first < second < 10
