"""Between Spark's types and errors, and ours."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from headrace.errors import PlanError
from headrace.nested import innermost
from headrace.runtime.sources.rows.widening import readable_schema, warn_left_out
from headrace.schema import DIGITS, Schema, quote, sql_type

SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""What Spark raises; an exception that PySpark does not know, as of an unknown format, is the JVM's own."""


def reason_of(error: Exception) -> str:
    """The first line of what one of `SPARK_ERRORS` says."""
    told = error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error
    return str(told).partition("\n")[0]


def schema_of(frame: DataFrame) -> Schema:
    """The columns of a data frame whose types a stream can have, widened.

    The others are left out with a warning, also those that Spark hands over to nobody, such as INTERVALs of
    months.

    Raises:
        SourceError: two columns have the same name except for case.
    """
    known, lost = list[pa.Field](), dict[str, str]()
    for field in frame.schema:
        try:
            known += to_arrow_schema(StructType([field]), timezone="UTC")
        except PySparkTypeError:
            lost[field.name] = field.dataType.simpleString()
    warn_left_out("the data frame", lost)
    return readable_schema(pa.schema(known), "the data frame")


def check_digits(schema: pa.Schema) -> None:
    """Refuse columns that Spark cannot have: DECIMALs of more than 38 digits.

    Raises:
        PlanError: a column is one, or has one in it.
    """
    for column in schema:
        wide = next(filter(pa.types.is_decimal256, innermost(column.type)), None)
        if wide is not None:
            raise PlanError(
                f"Spark has no {sql_type(wide)}, which the column {quote(column.name)} has",
                hint=f"its DECIMALs have {DIGITS} digits; CAST the column to one of them, DOUBLE or STRING",
            )


def struct_of(schema: Schema) -> StructType:
    """The same columns as Spark declares them.

    Raises:
        PlanError: Spark does not have the type of one.
    """
    check_digits(schema.arrow())
    struct: StructType = from_arrow_schema(schema.arrow())
    return struct
