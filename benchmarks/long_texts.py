"""Long texts under the clock: from a text to the graph that is run, beside Spark's way to a physical plan."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from headrace.language.binding.binder import bind
from headrace.language.catalog import Catalog, StreamInfo
from headrace.language.parsing.parser import parse_one
from headrace.language.statements.statements import Select
from headrace.lowering.lower import lower
from headrace.optimizer import optimize
from headrace.schema import BIGINT, TIMESTAMP, Field, Schema
from headrace.time import TimeDomain


def _in(count: int) -> str:
    return f"SELECT price FROM bid WHERE auction IN ({', '.join(map(str, range(count)))})"


def _union(count: int) -> str:
    return " UNION ALL ".join(f"SELECT price FROM bid WHERE auction = {auction}" for auction in range(count))


TEXTS: Final = {
    "IN with 100,000 values": _in(100_000),
    "UNION ALL of 500 SELECTs": _union(500),
    "UNION ALL of 5,000 SELECTs": _union(5_000),
}

_COLUMNS = Schema((Field("ts", TIMESTAMP), Field("auction", BIGINT), Field("price", BIGINT)))
_CATALOG = Catalog().define(StreamInfo("bid", _COLUMNS, "ts", TimeDomain.TIMESTAMP))


def measure(spark: SparkSession, text: str, runs: int) -> tuple[float, float | None]:
    """The median seconds that a text takes here and in Spark, each after one that warms up.

    None for Spark where the text is too deep for the stack of its parser or its analyzer.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True
    spark.range(1).selectExpr("id AS auction", "id AS price").createOrReplaceTempView("bid")
    here = _median(partial(_plan, text), runs)
    try:
        return here, _median(partial(_plan_in_spark, spark, text), runs)
    except ParseException:
        return here, None
    except Py4JJavaError as error:
        if "StackOverflowError" not in str(error.java_exception):
            raise
        return here, None


def _median(work: Callable[[], object], runs: int) -> float:
    seconds = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def _plan(text: str) -> object:
    statement = parse_one(text)
    assert isinstance(statement, Select)
    return lower({"q": optimize(bind(statement.query, _CATALOG))})


def _plan_in_spark(spark: SparkSession, text: str) -> object:
    return spark.sql(text)._jdf.queryExecution().executedPlan()
