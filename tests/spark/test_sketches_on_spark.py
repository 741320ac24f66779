"""Sketches that are made here are read by Spark's own functions, and joined by them."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession

from headrace.reference.quantile_sketches import quantile, rank, sketch_of, unpacked

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("kind", "letter"), [("bigint", "q"), ("double", "d")])
@pytest.mark.parametrize("count", [0, 1, 2, 8, 9, 100, 1000, 4096, 100_000])
def test_spark_reads_sketches_of_quantiles(spark: SparkSession, kind: str, letter: str, count: int) -> None:
    draw = random.Random(count)
    values = [draw.randrange(-(10**6), 10**6) for _ in range(count)]
    for k in (8, 200):
        made = [
            sketch_of([one * (1 if letter == "q" else 0.5) for one in values[part::3]], letter, k)
            for part in range(3)
        ]
        data = sketch_of(made, letter)
        frame = spark.createDataFrame(
            [(bytearray(data), *map(bytearray, made))], "s binary, a binary, b binary, c binary"
        )
        ranks, places = [0.0, 0.1, 0.5, 0.77, 1.0], [-(10**6), -1000, 0, 250_000, 10**6]
        asked = [
            f"kll_sketch_get_n_{kind}(s)",
            f"kll_sketch_get_n_{kind}(kll_sketch_merge_{kind}(kll_sketch_merge_{kind}(a, b), c))",
        ]
        if count:
            asked += [f"kll_sketch_get_quantile_{kind}(s, {one}D)" for one in ranks]
            asked += [f"kll_sketch_get_rank_{kind}(s, CAST({one} AS {kind}))" for one in places]
        found = list(frame.selectExpr(*asked).first() or ())
        own = unpacked(data, letter).count
        wanted = [own, own]
        if count:
            wanted += [quantile(data, one, letter) for one in ranks] + [
                rank(data, one, letter) for one in places
            ]
        assert found == wanted, (k, asked)
