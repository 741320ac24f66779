"""How TIMESTAMPs and DATEs are written in texts, if not as in ISO 8601 and UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.elements import BoolArray
from headrace.errors import HeadraceError, SourceError
from headrace.expressions.evaluation.calendar import utc_of
from headrace.expressions.evaluation.parsing import parse_written
from headrace.expressions.functions.time_rules import check_zone
from headrace.expressions.patterns import reading
from headrace.runtime.sources.rows.values import BLANKS, ZONED, parse_texts
from headrace.schema import DATE, TIMESTAMP, Schema

OPTIONS: Final = ("timestamp_format", "date_format", "time_zone")
"""The options that say it."""

SYNONYMS: Final[Mapping[str, str]] = MappingProxyType(
    {"timestampformat": "timestamp_format", "dateformat": "date_format", "timezone": "time_zone"}
)
"""What Spark calls them."""


@dataclass(frozen=True)
class WrittenTimes:
    """How times are written.

    Attributes:
        timestamp: the regular expression of a TIMESTAMP, as `patterns.reading` makes it; None for ISO 8601.
        date: the same of a DATE.
        zone: the time zone of TIMESTAMPs that are written without an offset.
    """

    timestamp: str | None = None
    date: str | None = None
    zone: str = "UTC"

    def parse(
        self, texts: pa.StringArray, dtype: pa.DataType, *, trim: bool = False, null: str | None = None
    ) -> tuple[pa.Array, BoolArray]:
        """Texts as values of a column type; as `parse_texts` but for TIMESTAMPs and DATEs."""
        pattern = self.timestamp if dtype == TIMESTAMP else self.date if dtype == DATE else None
        is_local = dtype == TIMESTAMP and self.zone != "UTC"
        if pattern is None:
            values, bad = parse_texts(texts, dtype, trim=trim, null=null)
            zoned = pc.match_substring_regex(pc.utf8_trim(texts, BLANKS), ZONED) if is_local else None
        else:
            if null is not None:
                texts = pc.if_else(pc.equal(texts, null), None, texts)
            moments, bad = parse_written(pc.utf8_trim(texts, BLANKS) if trim else texts, pattern)
            values = (
                moments if dtype == TIMESTAMP else moments.cast(pa.timestamp("us")).cast(DATE, safe=False)
            )
            zoned = pa.repeat("(?P<zone_hour>" in pattern, len(texts))
        if not is_local or zoned is None:
            return values, bad
        there = np.asarray(values.is_valid())
        local = np.asarray(values.cast(pa.int64()).fill_null(0))
        moved = pa.array(utc_of(local, self.zone), pa.int64(), mask=~there).cast(TIMESTAMP)
        return pc.if_else(zoned, values, moved), bad


ISO: Final = WrittenTimes()


def times_of(options: Mapping[str, str], declared: Schema | None) -> WrittenTimes:
    """How times are written, as options say it.

    Args:
        options: of a source, by our names.
        declared: its columns, or None where their types are inferred.

    Raises:
        SourceError: a pattern or a zone is not known, or nobody says which columns are times.
    """
    given = [name for name in OPTIONS if name in options]
    if given and declared is None:
        raise SourceError(
            f"the option {given[0]} is for columns that are declared",
            hint="write the columns: CREATE STREAM s (ts TIMESTAMP, ...) FROM ...",
        )
    zone = options.get("time_zone", "UTC")
    try:
        check_zone(zone)
    except HeadraceError as error:
        raise SourceError(f"the option time_zone: {error.message}", hint=error.hint) from None
    return WrittenTimes(_pattern(options, "timestamp_format"), _pattern(options, "date_format"), zone)


def _pattern(options: Mapping[str, str], name: str) -> str | None:
    if name not in options:
        return None
    try:
        return reading(options[name])
    except ValueError as error:
        raise SourceError(
            f"the option {name} is '{options[name]}', and has {error}",
            hint="write a pattern such as 'dd/MM/yyyy HH:mm:ss', with the letters of TO_TIMESTAMP",
        ) from None
