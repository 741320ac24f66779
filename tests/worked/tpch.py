"""Tables and questions in the manner of TPC-H: a shop's parts, suppliers, customers and orders.

The tables are small and random, with the values that the questions ask for; every row has an instant, from
which on it is in its table for ever. The questions are in SQL that DuckDB takes as well; those with LIMIT are
ordered by what has no ties.
"""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

MONEY: Final = pa.decimal128(12, 2)
LAST: Final = 60
"""The last instant of the rows."""

_TYPES: Final = {"k": pa.int64(), "s": pa.string(), "d": pa.date32(), "m": MONEY}
_COLUMNS: Final = {
    "region": "k r_regionkey, s r_name",
    "nation": "k n_nationkey, s n_name, k n_regionkey",
    "supplier": "k s_suppkey, s s_name, s s_address, k s_nationkey, s s_phone, m s_acctbal, s s_comment",
    "customer": "k c_custkey, s c_name, s c_address, k c_nationkey, s c_phone, m c_acctbal, s c_mktsegment, "
    "s c_comment",
    "part": "k p_partkey, s p_name, s p_mfgr, s p_brand, s p_type, k p_size, s p_container, m p_retailprice",
    "partsupp": "k ps_partkey, k ps_suppkey, k ps_availqty, m ps_supplycost",
    "orders": "k o_orderkey, k o_custkey, s o_orderstatus, m o_totalprice, d o_orderdate, s o_orderpriority, "
    "k o_shippriority, s o_comment",
    "lineitem": "k l_orderkey, k l_partkey, k l_suppkey, k l_linenumber, m l_quantity, m l_extendedprice, "
    "m l_discount, m l_tax, s l_returnflag, s l_linestatus, d l_shipdate, d l_commitdate, d l_receiptdate, "
    "s l_shipinstruct, s l_shipmode",
}
TABLES: Final = {
    name: pa.schema(
        [(column[2:], _TYPES[column[0]]) for column in columns.split(", ")] + [("at", pa.int64())]
    )
    for name, columns in _COLUMNS.items()
}
"""The schemas of the tables; `at` is the instant."""

_NATIONS: Final = {
    "AFRICA": ("ALGERIA", "KENYA"),
    "AMERICA": ("BRAZIL", "CANADA"),
    "ASIA": ("CHINA", "INDIA"),
    "EUROPE": ("FRANCE", "GERMANY"),
    "MIDDLE EAST": ("IRAN", "SAUDI ARABIA"),
}


def tables(seed: int) -> dict[str, pa.Table]:
    """Random rows of every table."""
    chance = random.Random(seed)
    pick = chance.choice
    nations = [nation for listed in _NATIONS.values() for nation in listed]

    def money(most: int) -> Decimal:
        return Decimal(chance.randrange(100, most * 100)) / 100

    def day(first: str, days: int) -> date:
        return date.fromisoformat(first) + timedelta(chance.randrange(days))

    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    rows["region"] = list(enumerate(_NATIONS))
    rows["nation"] = [(key, name, key // 2) for key, name in enumerate(nations)]
    for key in range(12):
        rows["supplier"].append(
            (key, f"Supplier {key}", f"street {key}", key % 10, f"{10 + key % 10}-{key}", money(9000),
             pick(("good", "Customer Complaints", "fine")))
        )  # fmt: skip
    for key in range(30):
        rows["customer"].append(
            (key, f"Customer {key}", f"road {key}", key % 10, f"{pick((13, 31, 23, 29, 30, 18, 17))}-{key}",
             money(9000) - 1000, pick(("BUILDING", "AUTOMOBILE", "MACHINERY")), pick(("quick", "slow")))
        )  # fmt: skip
    for key in range(40):
        rows["part"].append(
            (key, f"{pick(('forest', 'green', 'red'))} {pick(('green', 'blue'))} part", "maker",
             pick(("Brand#12", "Brand#23", "Brand#34", "Brand#45")),
             pick(("PROMO BRUSHED COPPER", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN", "LARGE BRASS")),
             pick((1, 3, 5, 9, 14, 15, 23, 36, 45, 49)),
             pick(("SM CASE", "MED BOX", "MED BAG", "LG PACK", "SM PKG")), money(1000))
        )  # fmt: skip
        rows["partsupp"] += [
            (key, (key + other) % 12, chance.randrange(1, 500), money(500)) for other in (0, 5)
        ]
    for key in range(150):
        begun = day("1993-01-01", 5 * 365)
        rows["orders"].append(
            (key, chance.randrange(25), pick("FOP"), money(90000), begun,
             pick(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")), 0,
             pick(("fine", "special packages requests", "big")))
        )  # fmt: skip
        for number in range(1, chance.randrange(2, 7)):
            part = chance.randrange(40)
            shipped = begun + timedelta(chance.randrange(1, 90))
            due = begun + timedelta(chance.randrange(20, 80))
            rows["lineitem"].append(
                (key, part, (part + pick((0, 5))) % 12, number, Decimal(pick((1, 5, 12, 18, 24, 30, 45))),
                 money(9000), Decimal(chance.randrange(0, 11)) / 100, Decimal(chance.randrange(0, 9)) / 100,
                 pick("ARN"), pick("OF"), shipped, due, shipped + timedelta(chance.randrange(1, 30)),
                 pick(("DELIVER IN PERSON", "NONE")), pick(("AIR", "AIR REG", "MAIL", "SHIP", "TRUCK")))
            )  # fmt: skip
    return {name: _timed(listed, TABLES[name], chance) for name, listed in rows.items()}


def _timed(rows: list[tuple[Any, ...]], schema: pa.Schema, chance: random.Random) -> pa.Table:
    """The rows at random instants, in their order; those of the smallest tables are there early."""
    most = 5 if len(rows) <= 12 else LAST
    times = sorted(chance.randrange(most + 1) for _ in rows)
    listed = [dict(zip(schema.names, (*row, at), strict=True)) for row, at in zip(rows, times, strict=True)]
    return pa.Table.from_pylist(listed, schema)


def queries() -> dict[int, str]:
    """The questions by number."""
    text = Path(__file__).with_suffix(".sql").read_text()
    return {
        int(number): query.strip() for number, query in re.findall(r"^-- (\d+)\n(.*?);", text, re.S | re.M)
    }
