"""DECIMALs of more than 38 digits in files, expressions, keys, sums, state and answers."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headrace
from headrace.errors import PlanError
from headrace.runtime.spark.types import check_digits

EXACT = Context(prec=200)
NUMBERS = [
    Decimal("12345678901234567890123456789012345678901234567890.0123456789"),
    Decimal("-99999999999999999999999999999999999999999999999999.9999999999"),
    Decimal("0.0000000001"),
    None,
]
INSTANTS = [f"2026-01-01T00:00:0{second}Z" for second in range(len(NUMBERS))]


def parquet(folder: Path) -> str:
    """The numbers as a Parquet file."""
    moments = pa.array(range(0, 4_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    pq.write_table(
        pa.table({"ts": moments, "x": pa.array(NUMBERS, pa.decimal256(60, 10))}), folder / "n.parquet"
    )
    return f"parquet OPTIONS (path '{folder}/n.parquet')"


def csv(folder: Path) -> str:
    """As texts without quotes."""
    lines = [
        f"{at},{'' if one is None else format(one, 'f')}\n" for at, one in zip(INSTANTS, NUMBERS, strict=True)
    ]
    (folder / "n.csv").write_text("ts,x\n" + "".join(lines))
    return f"csv OPTIONS (path '{folder}/n.csv')"


def json(folder: Path) -> str:
    """As numbers of JSON."""
    texts = ["null" if one is None else format(one, "f") for one in NUMBERS]
    lines = [f'{{"ts": "{at}", "x": {text}}}\n' for at, text in zip(INSTANTS, texts, strict=True)]
    (folder / "n.json").write_text("".join(lines))
    return f"json OPTIONS (path '{folder}/n.json')"


@pytest.mark.parametrize("write", [parquet, csv, json])
def test_sums_keys_and_values(write, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with headrace.connect("inline") as db:
        db.execute(
            f"CREATE STREAM n (ts TIMESTAMP, x DECIMAL(60, 10)) FROM {write(tmp_path)} TIMESTAMP BY ts"
        )
        query = db.query(
            "SELECT SUM(x) AS total, MIN(x) AS least, COUNT(DISTINCT x) AS n, AVG(x) AS mean,"
            " ARRAY_AGG(x) AS all_of FROM n WINDOW(RANGE UNBOUNDED)"
        )
        keyed = db.query("SELECT x, COUNT(*) AS n FROM n WINDOW(RANGE UNBOUNDED) GROUP BY x")
        joined = db.query("SELECT a.x * 2 AS double FROM n a, n WINDOW(RANGE UNBOUNDED) b WHERE a.x = b.x")
        db.run()
        (last,) = query.history().filter(pa.compute.field("valid_to").is_null()).to_pylist()
        known = [one for one in NUMBERS if one is not None]
        total = EXACT.add(EXACT.add(known[0], known[1]), known[2])
        assert str(query.schema).startswith("(total DECIMAL(70, 10), least DECIMAL(60, 10)")
        assert (last["total"], last["least"], last["n"]) == (total, known[1], 3)
        assert last["mean"] == float(EXACT.divide(total, 3))
        assert last["all_of"] == sorted(known)
        assert sorted(map(str, keyed.history()["x"].to_pylist())) == sorted(map(str, NUMBERS))
        assert sorted(joined.history()["double"].to_pylist()) == sorted(
            EXACT.multiply(2, one) for one in known
        )


def test_spark_refuses_them_by_name() -> None:
    wide = pa.struct([("inner", pa.list_(pa.decimal256(39, 2)))])
    with pytest.raises(PlanError, match=r"Spark has no DECIMAL\(39, 2\), which the column `a b` has"):
        check_digits(pa.schema([("n", pa.decimal128(38, 2)), ("a b", wide)]))
