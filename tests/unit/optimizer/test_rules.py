"""Each rewrite rule: the text of a plan before it, and of the plan after it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from auctions import CATALOG, plan_of
from headrace.algebra.explain import explain
from headrace.algebra.nodes import Coalesce, Plan, Project, Rstream, Sample, Source, inputs_of
from headrace.algebra.properties import sources_of, walk
from headrace.language.printer import to_sql
from headrace.optimizer import RULES, optimize, rewrites
from headrace.optimizer.joins.aggregate_before_join import aggregate_before_join
from headrace.optimizer.joins.connect_joins import connect_joins
from headrace.optimizer.joins.distinct_before_join import distinct_before_join
from headrace.optimizer.joins.equalities_into_join import equalities_into_join
from headrace.optimizer.joins.simplify_outer_join import simplify_outer_join
from headrace.optimizer.pushdown.pull_window_above_union import pull_window_above_union
from headrace.optimizer.pushdown.push_filter_below_join import push_filter_below_join
from headrace.optimizer.pushdown.push_filter_below_project import push_filter_below_project
from headrace.optimizer.pushdown.push_filter_below_row_window import push_filter_below_row_window
from headrace.optimizer.pushdown.push_filter_below_semi_join import push_filter_below_semi_join
from headrace.optimizer.pushdown.push_filter_below_stream import push_filter_below_stream
from headrace.optimizer.pushdown.push_filter_below_union import push_filter_below_union
from headrace.optimizer.pushdown.push_filter_below_window import push_filter_below_window
from headrace.optimizer.pushdown.push_project_below_row_window import push_project_below_row_window
from headrace.optimizer.rule import Rewrite, everywhere
from headrace.optimizer.simplify.distinct_before_aggregate import distinct_before_aggregate
from headrace.optimizer.simplify.distinct_before_groups import distinct_before_groups
from headrace.optimizer.simplify.distinct_before_union import distinct_before_union
from headrace.optimizer.simplify.distinct_once import distinct_once
from headrace.optimizer.simplify.filter_from_case import filter_from_case
from headrace.optimizer.simplify.fold_constants import fold_constants
from headrace.optimizer.simplify.forget_rows_left_out import forget_rows_left_out
from headrace.optimizer.simplify.merge_filters import merge_filters
from headrace.optimizer.simplify.merge_project_into_aggregate import merge_project_into_aggregate
from headrace.optimizer.simplify.merge_projects import merge_projects
from headrace.optimizer.simplify.remove_now_window import remove_now_window
from headrace.optimizer.simplify.remove_trivial_project import remove_trivial_project
from headrace.optimizer.simplify.remove_trivial_top_k import remove_trivial_top_k
from headrace.optimizer.simplify.remove_unbounded_window import remove_unbounded_window

CASES = [
    (
        distinct_before_aggregate,
        "SELECT COUNT(DISTINCT at) AS n, AVG(DISTINCT at) AS mean FROM tick [RANGE 9] WHERE id > 3",
        """SELECT COUNT(value) AS n, AVG(value) AS mean
           FROM (SELECT at AS value FROM tick [RANGE 9] WHERE id > 3 GROUP BY at)""",
    ),
    (
        distinct_before_groups,
        """SELECT kind, id + 1 AS value, COUNT(DISTINCT at) AS n, AVG(DISTINCT at) AS mean FROM tick [RANGE 9]
           GROUP BY kind, id + 1""",
        """SELECT kind, value, COUNT(value_2) AS n, AVG(value_2) AS mean
           FROM (SELECT kind, id + 1 AS value, at AS value_2 FROM tick [RANGE 9] GROUP BY kind, id + 1, at)
           GROUP BY kind, value""",
    ),
    (
        simplify_outer_join,
        "SELECT * FROM tick a LEFT JOIN tick b ON a.id = b.id WHERE b.at > 1",
        "SELECT * FROM tick a JOIN tick b ON a.id = b.id WHERE b.at > 1",
    ),
    (
        simplify_outer_join,
        "SELECT * FROM tick a FULL JOIN tick b ON a.id = b.id WHERE a.at + 1 = 2",
        "SELECT * FROM tick a LEFT JOIN tick b ON a.id = b.id WHERE a.at + 1 = 2",
    ),
    (
        simplify_outer_join,
        "SELECT * FROM tick a RIGHT JOIN tick b ON a.id = b.id WHERE a.kind IS NOT NULL AND b.at = 1",
        "SELECT * FROM tick a JOIN tick b ON a.id = b.id WHERE a.kind IS NOT NULL AND b.at = 1",
    ),
    (
        push_filter_below_semi_join,
        "SELECT * FROM tick a LEFT JOIN tick b ON a.id = b.id WHERE a.at > 1 AND b.at IS NULL",
        """SELECT * FROM (SELECT * FROM tick WHERE at > 1) a LEFT JOIN tick b ON a.id = b.id
           WHERE b.at IS NULL""",
    ),
    (
        push_filter_below_semi_join,
        "SELECT * FROM tick a ANTI JOIN tick b ON a.id = b.id WHERE a.at > 1",
        "SELECT * FROM (SELECT * FROM tick WHERE at > 1) a ANTI JOIN tick b ON a.id = b.id",
    ),
    (
        push_filter_below_stream,
        "SELECT * FROM ISTREAM(SELECT id, COUNT(*) AS n FROM tick [RANGE 5] GROUP BY id) WHERE n > 1",
        "ISTREAM(SELECT * FROM (SELECT id, COUNT(*) AS n FROM tick [RANGE 5] GROUP BY id) WHERE n > 1)",
    ),
    (
        push_filter_below_union,
        "SELECT * FROM (SELECT id AS x FROM tick EXCEPT SELECT at FROM tick) WHERE x > 1",
        """SELECT * FROM (SELECT id AS x FROM tick) WHERE x > 1
           EXCEPT SELECT * FROM (SELECT at FROM tick) WHERE at > 1""",
    ),
    (
        merge_filters,
        "SELECT * FROM (SELECT * FROM tick WHERE id > 1) WHERE kind = 'a'",
        "SELECT * FROM tick WHERE id > 1 AND kind = 'a'",
    ),
    (
        push_filter_below_project,
        "SELECT * FROM (SELECT kind AS k, id * 2e0 AS d FROM tick) WHERE k = 'a' AND d > 10e0",
        "SELECT kind AS k, id * 2e0 AS d FROM tick WHERE kind = 'a' AND id * 2e0 > 10e0",
    ),
    (
        push_filter_below_project,  # id * 2 can overflow, and is not computed twice
        "SELECT * FROM (SELECT kind AS k, id * 2 AS d FROM tick) WHERE d > 10 AND k = 'a'",
        "SELECT * FROM (SELECT kind AS k, id * 2 AS d FROM tick WHERE kind = 'a') WHERE d > 10",
    ),
    (
        push_filter_below_window,
        "SELECT * FROM tick [RANGE 10 SLIDE 5] WHERE id > 1",
        "SELECT * FROM (SELECT * FROM tick WHERE id > 1) [RANGE 10 SLIDE 5]",
    ),
    (
        push_filter_below_union,
        "SELECT * FROM (SELECT id AS x FROM tick UNION ALL SELECT at FROM tick) WHERE x > 1",
        """SELECT * FROM (SELECT id AS x FROM tick) WHERE x > 1
           UNION ALL SELECT * FROM (SELECT at FROM tick) WHERE at > 1""",
    ),
    (
        push_filter_below_join,
        "SELECT * FROM tick a, tick b WHERE a.id > 1 AND b.kind = 'x' AND a.at = b.at AND 1 = 2",
        """SELECT * FROM (SELECT * FROM tick WHERE id > 1) a, (SELECT * FROM tick WHERE kind = 'x') b
           WHERE a.at = b.at AND 1 = 2""",
    ),
    (
        push_filter_below_join,
        "SELECT * FROM tick a JOIN tick b ON a.id > 1 AND b.kind = 'x' AND a.at < b.at",
        """SELECT * FROM (SELECT * FROM tick WHERE id > 1) a
           JOIN (SELECT * FROM tick WHERE kind = 'x') b ON a.at < b.at""",
    ),
    (
        equalities_into_join,
        "SELECT * FROM tick a, tick b WHERE b.id = a.id AND a.price < b.price AND a.kind = b.kind",
        "SELECT * FROM tick a JOIN tick b ON a.id = b.id AND a.price < b.price AND a.kind = b.kind",
    ),
    (
        equalities_into_join,  # with the casts to the common type; a condition of one side stays
        "SELECT * FROM tick a, tick b WHERE a.id = b.price AND a.id > 1 AND a.id + b.id = 7",
        "SELECT * FROM tick a JOIN tick b ON a.id = b.price AND a.id + b.id = 7 WHERE a.id > 1",
    ),
    (
        connect_joins,
        "SELECT * FROM tick a JOIN tick b ON TRUE JOIN tick c ON a.id = c.id AND c.at = b.at",
        """SELECT a.*, b.*, c.* FROM tick a JOIN tick c ON a.id = c.id JOIN tick b ON c.at = b.at""",
    ),
    (
        pull_window_above_union,
        "SELECT id AS x FROM tick [RANGE 10 SLIDE 5] UNION ALL SELECT at FROM tick [RANGE 10 SLIDE 5]",
        "SELECT * FROM (SELECT id AS x FROM tick UNION ALL SELECT at FROM tick) [RANGE 10 SLIDE 5]",
    ),
    (
        aggregate_before_join,
        """SELECT a.id, b.kind, MAX(a.price) AS m, COUNT(*) AS n, COUNT(a.at) FILTER (WHERE a.at > 3) AS o
           FROM tick a JOIN tick b ON a.id = b.id GROUP BY a.id, b.kind""",
        """SELECT a.id, b.kind, MAX(a.m) AS m, SUM(a.n) AS n, SUM(a.o) AS o
           FROM (SELECT id, MAX(price) AS m, COUNT(*) AS n, COUNT(at) FILTER (WHERE at > 3) AS o FROM tick
           GROUP BY id) a JOIN tick b ON a.id = b.id GROUP BY a.id, b.kind""",
    ),
    (
        distinct_before_join,
        "SELECT DISTINCT a.kind, b.price FROM tick a JOIN tick b ON a.id = b.id",
        """SELECT DISTINCT a.kind, b.price FROM (SELECT DISTINCT id, kind FROM tick) a
           JOIN (SELECT DISTINCT id, price FROM tick) b ON a.id = b.id""",
    ),
    (
        distinct_before_join,
        "SELECT DISTINCT a.kind, a.id, b.id FROM tick a JOIN tick b ON a.id = b.id",
        """SELECT a.kind, a.id, b.id FROM (SELECT DISTINCT id, kind FROM tick) a
           JOIN (SELECT DISTINCT id FROM tick) b ON a.id = b.id""",
    ),
    (
        distinct_before_union,
        "SELECT kind FROM tick [RANGE 9] UNION SELECT kind FROM tick [RANGE 5] GROUP BY kind",
        "SELECT DISTINCT kind FROM tick [RANGE 9] UNION SELECT kind FROM tick [RANGE 5] GROUP BY kind",
    ),
    (
        distinct_before_union,
        """SELECT DISTINCT * FROM (SELECT kind FROM tick [RANGE 9] UNION ALL (SELECT kind FROM tick [RANGE 7]
           UNION ALL SELECT kind FROM tick [RANGE 5]))""",
        """SELECT DISTINCT * FROM (SELECT DISTINCT kind FROM tick [RANGE 9] UNION ALL (
           SELECT DISTINCT * FROM (SELECT DISTINCT kind FROM tick [RANGE 7] UNION ALL
           SELECT DISTINCT kind FROM tick [RANGE 5])))""",
    ),
    (
        distinct_once,
        """SELECT id + 1 FROM (SELECT id FROM tick [RANGE 9] UNION SELECT at FROM tick [RANGE 5]) WHERE id > 2
           UNION SELECT DISTINCT id FROM tick""",
        """SELECT id + 1 FROM (SELECT id FROM tick [RANGE 9] UNION ALL SELECT at FROM tick [RANGE 5])
           WHERE id > 2 UNION SELECT id FROM tick""",
    ),
    (
        distinct_once,
        "SELECT DISTINCT id FROM (SELECT DISTINCT id, kind FROM tick [RANGE 9]) WHERE kind = 'a'",
        "SELECT DISTINCT id FROM (SELECT id, kind FROM tick [RANGE 9]) WHERE kind = 'a'",
    ),
    (
        merge_projects,
        "SELECT UPPER(k) AS u, d FROM (SELECT kind AS k, id + 1 AS d, at FROM tick)",
        "SELECT UPPER(kind) AS u, id + 1 AS d FROM tick",
    ),
    (
        remove_trivial_top_k,
        "SELECT id FROM (SELECT id, kind FROM tick ORDER BY kind) ORDER BY id DESC LIMIT ALL",
        "SELECT id FROM (SELECT id, kind FROM tick)",
    ),
    (
        remove_trivial_project,
        "SELECT * FROM (SELECT k AS id FROM (SELECT id AS k FROM tick))",
        "SELECT k AS id FROM (SELECT id AS k FROM tick)",
    ),
    (
        push_filter_below_window,
        "SELECT * FROM tick [RANGE 10] GRANULARITY(5) WHERE id > 1",
        "SELECT * FROM (SELECT * FROM tick [RANGE 10] WHERE id > 1) GRANULARITY(5)",
    ),
    (
        push_filter_below_row_window,
        "SELECT * FROM tick [PARTITION BY kind, id ROWS 10] WHERE kind = 'a' AND at > 5 AND id + 1 > 2",
        """SELECT * FROM (SELECT * FROM tick WHERE kind = 'a' AND id + 1 > 2) [PARTITION BY kind, id ROWS 10]
           WHERE at > 5""",
    ),
    (
        push_filter_below_row_window,
        """SELECT * FROM GAP_FILL(TABLE tick PARTITION BY kind, DESCRIPTOR(at), 2, 6, 'NULL')
           WHERE kind = 'a' AND at > 5""",
        """SELECT * FROM GAP_FILL(TABLE (SELECT * FROM tick WHERE kind = 'a') PARTITION BY kind,
           DESCRIPTOR(at), 2, 6, 'NULL') WHERE at > 5""",
    ),
    (
        push_filter_below_row_window,
        """SELECT * FROM (SELECT kind, id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY id DESC) AS count
           FROM (SELECT kind, id FROM tick)) WHERE kind = 'a' AND id > 1 AND count < 3""",
        """SELECT * FROM (SELECT kind, id, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY id DESC) AS count
           FROM (SELECT * FROM (SELECT kind, id FROM tick) WHERE kind = 'a')) WHERE id > 1 AND count < 3""",
    ),
    (
        push_project_below_row_window,  # at is constant in a partition
        "SELECT at, id AS i, kind, kind || 'x' AS k FROM tick [PARTITION BY at ROWS 10]",
        "SELECT * FROM (SELECT at, id AS i, kind, kind || 'x' AS k FROM tick) [PARTITION BY at ROWS 10]",
    ),
    (
        push_project_below_row_window,
        "SELECT id, id = 1 AS one FROM tick [ROWS 10 SLIDE 2]",
        "SELECT * FROM (SELECT id, id = 1 AS one FROM tick) [ROWS 10 SLIDE 2]",
    ),
    (remove_now_window, "SELECT * FROM tick [RANGE 1]", "SELECT * FROM tick"),
    (
        remove_unbounded_window,  # as the thesis prints it, in 15.1.1
        "SELECT Istream(id, kind) FROM tick [Range Unbounded] WHERE id > 1",
        "SELECT id, kind FROM tick [Now] WHERE id > 1",
    ),
    (
        remove_unbounded_window,
        "ISTREAM(SELECT id FROM tick [UNBOUNDED] UNION ALL SELECT at FROM tick [UNBOUNDED])",
        "SELECT id FROM tick UNION ALL SELECT at FROM tick",
    ),
    (
        push_filter_below_window,
        "SELECT * FROM TUMBLE(tick, 5) WHERE id > 1 AND window_start > at",
        "SELECT * FROM TUMBLE((SELECT * FROM tick WHERE id > 1), 5) WHERE window_start > at",
    ),
    (remove_now_window, "SELECT * FROM tick [RANGE 1 SLIDE 1]", "SELECT * FROM tick"),
    (
        fold_constants,
        "SELECT id * (2 + 3), UPPER('a') || kind, SUM(id) FROM tick WHERE 1 = 1 AND id > 9 + 0 GROUP BY 1, 2",
        "SELECT id * 5, 'A' || kind, SUM(id) FROM tick WHERE id > 9 GROUP BY 1, 2",
    ),
    (fold_constants, "SELECT * FROM tick WHERE NOT FALSE", "SELECT * FROM tick"),
    (
        filter_from_case,
        "SELECT SUM(CASE WHEN id > 1 THEN at END), COUNT(CASE kind WHEN 'a' THEN 1 END) FROM tick",
        "SELECT SUM(at) FILTER (WHERE id > 1), COUNT(*) FILTER (WHERE kind = 'a') FROM tick",
    ),
    (
        filter_from_case,
        "SELECT COUNT(DISTINCT IF(id > 1, at, NULL)), AVG(IF(id > 1, at, NULL)), COUNT('x') FROM tick",
        "SELECT COUNT(DISTINCT at) FILTER (WHERE id > 1), AVG(at) FILTER (WHERE id > 1), COUNT(*) FROM tick",
    ),
    (
        merge_project_into_aggregate,
        "SELECT k, MAX(p) AS m FROM (SELECT kind AS k, at * 2e0 AS p FROM tick [RANGE 5]) GROUP BY k",
        "SELECT kind AS k, MAX(at * 2e0) AS m FROM tick [RANGE 5] GROUP BY kind",
    ),
    (
        fold_constants,
        "SELECT * FROM tick a JOIN tick b ON 1 + 1 = 2 AND a.id < b.id + (3 - 1)",
        "SELECT * FROM tick a JOIN tick b ON a.id < b.id + 2",
    ),
]


@pytest.mark.parametrize(("rewrite", "before", "after"), CASES)
def test_before_and_after(rewrite: Rewrite, before: str, after: str) -> None:
    rewritten = everywhere(rewrite).rewrite(plan_of(before))
    expected = plan_of(after)
    assert explain(rewritten) == explain(expected)
    assert rewritten.schema.arrow().types == expected.schema.arrow().types
    assert rewritten.schema == plan_of(before).schema


UNCHANGED = [
    (
        simplify_outer_join,
        "SELECT * FROM tick a LEFT JOIN tick b USING (id) WHERE b.at IS NULL OR b.at = 1",
    ),
    (simplify_outer_join, "SELECT * FROM tick a LEFT JOIN tick b ON a.id = b.id WHERE COALESCE(b.at, 0) = 0"),
    (push_filter_below_semi_join, "SELECT * FROM tick a FULL JOIN tick b ON a.id = b.id WHERE a.at > 1"),
    (merge_projects, "SELECT d + d AS e FROM (SELECT id * 2e0 AS d FROM tick)"),
    (merge_projects, "SELECT k FROM (SELECT kind AS k, id / 0 AS failing FROM tick)"),
    (
        merge_projects,
        "SELECT IF(k = 'a', failing, 0e0) AS x FROM (SELECT kind AS k, id / 0 AS failing FROM tick)",
    ),
    (push_filter_below_project, "SELECT * FROM (SELECT id / 0 AS failing FROM tick) WHERE failing > 1"),
    (remove_trivial_top_k, "SELECT id FROM tick ORDER BY id LIMIT ALL OFFSET 1"),
    (remove_trivial_top_k, "SELECT id FROM tick LIMIT 3"),
    (remove_trivial_top_k, "SELECT id, ROW_NUMBER() OVER (ORDER BY kind) AS n FROM tick"),
    (remove_trivial_project, "SELECT id AS x FROM (SELECT id FROM tick)"),
    (remove_trivial_project, "SELECT kind, id FROM (SELECT id, kind FROM tick)"),
    (remove_now_window, "SELECT * FROM tick [RANGE 1 SLIDE 2]"),
    (remove_now_window, "SELECT * FROM tick [RANGE 2]"),
    (remove_unbounded_window, "ISTREAM(SELECT id FROM tick [RANGE 2])"),
    (remove_unbounded_window, "ISTREAM(SELECT id FROM tick [RANGE UNBOUNDED SLIDE 2])"),
    (remove_unbounded_window, "ISTREAM(SELECT DISTINCT id FROM tick [RANGE UNBOUNDED])"),
    (remove_unbounded_window, "DSTREAM(SELECT id FROM tick [RANGE UNBOUNDED])"),
    (remove_unbounded_window, "ISTREAM(SELECT id FROM tick [UNBOUNDED] UNION ALL SELECT id FROM tick)"),
    (remove_unbounded_window, "ISTREAM(SELECT a.id FROM tick [UNBOUNDED] a, tick [UNBOUNDED] b)"),
    (equalities_into_join, "SELECT * FROM tick a, tick b WHERE a.id = 1 AND 1 = 2"),
    (connect_joins, "SELECT * FROM tick a JOIN tick b ON TRUE JOIN tick c ON a.id < c.id"),
    (connect_joins, "SELECT * FROM tick a JOIN tick b ON a.id = b.id JOIN tick c ON a.id = c.id"),
    (
        pull_window_above_union,
        "SELECT id FROM tick [RANGE 10] UNION ALL SELECT at FROM tick [RANGE 10 SLIDE 5]",
    ),
    (pull_window_above_union, "SELECT id FROM tick [RANGE 10] UNION ALL SELECT at FROM tick"),
    (aggregate_before_join, "SELECT SUM(a.at), MAX(a.at) FROM tick a JOIN tick b ON a.id = b.id"),
    (aggregate_before_join, "SELECT MAX(a.at), MAX(b.at) FROM tick a JOIN tick b ON a.id = b.id"),
    (distinct_before_aggregate, "SELECT kind, COUNT(DISTINCT at) FROM tick [RANGE 9] GROUP BY kind"),
    (distinct_before_groups, "SELECT COUNT(DISTINCT at) FROM tick [RANGE 9]"),
    (distinct_before_groups, "SELECT kind, COUNT(DISTINCT at), MAX(id) FROM tick [RANGE 9] GROUP BY kind"),
    (distinct_before_groups, "SELECT kind, COUNT(at) FROM tick [RANGE 9] GROUP BY kind"),
    (distinct_before_aggregate, "SELECT COUNT(DISTINCT at), COUNT(*) FROM tick [RANGE 9]"),
    (distinct_before_aggregate, "SELECT COUNT(DISTINCT at), COUNT(DISTINCT id) FROM tick [RANGE 9]"),
    (distinct_before_aggregate, "SELECT COUNT(DISTINCT id, at) FROM tick [RANGE 9]"),
    (distinct_before_aggregate, "SELECT COUNT(DISTINCT at) FILTER (WHERE id > 1) FROM tick [RANGE 9]"),
    (distinct_before_aggregate, "SELECT ARRAY_AGG(DISTINCT at) FROM tick [RANGE 9]"),
    (distinct_before_aggregate, "SELECT COUNT(DISTINCT at) FROM tick [RANGE 9] EMIT EMPTY"),
    (aggregate_before_join, "SELECT COUNT(DISTINCT a.at) FROM tick a JOIN tick b ON a.id = b.id"),
    (  # 0 and -0 are in one group
        aggregate_before_join,
        """SELECT CAST(a.x AS STRING), MAX(a.at) FROM (SELECT id * 1e0 AS x, at FROM tick) a JOIN tick b
           ON a.x = b.at GROUP BY CAST(a.x AS STRING)""",
    ),
    (fold_constants, "SELECT 1 / 0, MOD(1, 0), id + 1 FROM tick"),
    (push_filter_below_row_window, "SELECT * FROM tick [ROWS 10] WHERE id > 1"),
    (
        push_filter_below_row_window,
        "SELECT * FROM GAP_FILL(TABLE tick PARTITION BY kind, DESCRIPTOR(at), 2, 6, 'LAST') WHERE id > 1",
    ),
    (push_filter_below_row_window, "SELECT * FROM (SELECT id FROM tick ORDER BY id LIMIT 3) WHERE id > 1"),
    (push_filter_below_row_window, "SELECT * FROM tick [PARTITION BY kind ROWS 10] WHERE id > 1"),
    (
        push_filter_below_row_window,
        "SELECT * FROM (SELECT id * 1e0 AS x FROM tick) [PARTITION BY x ROWS 1] WHERE x > 1",
    ),
    (forget_rows_left_out, "SELECT * FROM tick [PARTITION BY kind ROWS 1] WHERE id > 1"),
    (
        forget_rows_left_out,
        "SELECT * FROM (SELECT kind, at > 5 AS late FROM tick) [PARTITION BY kind ROWS 2] WHERE late",
    ),
    (push_project_below_row_window, "SELECT kind FROM tick [ROWS 10]"),
    (distinct_before_union, "SELECT id FROM tick [RANGE 9] UNION ALL SELECT at FROM tick [RANGE 5]"),
    (distinct_before_union, "SELECT 2e0 * id FROM tick [RANGE 9] UNION SELECT 1e0 FROM tick [RANGE 5]"),
    (distinct_once, "SELECT DISTINCT COUNT(*) FROM (SELECT DISTINCT id FROM tick [RANGE 9])"),
    (distinct_once, "SELECT x FROM (SELECT DISTINCT 2e0 * id AS x FROM tick) UNION SELECT 1e0 FROM tick"),
    (push_project_below_row_window, "SELECT id, price FROM tick [ROWS 10]"),
    (push_project_below_row_window, "SELECT id, kind FROM tick [PARTITION BY at ROWS 10]"),
    (push_project_below_row_window, "SELECT id, 10 / id AS part FROM tick [ROWS 10]"),
    (push_filter_below_window, "SELECT * FROM ISTREAM(tick [RANGE 2]) WHERE id > 1"),
    (filter_from_case, "SELECT SUM(CASE WHEN id > 1 THEN at ELSE 0 END) FROM tick"),
    (filter_from_case, "SELECT SUM(CASE WHEN id > 1 THEN at WHEN id < 0 THEN id END) FROM tick"),
    (filter_from_case, "SELECT FIRST(CASE WHEN id > 1 THEN at END ORDER BY at) FROM tick"),
    (filter_from_case, "SELECT ARRAY_AGG(CASE WHEN id > 1 THEN at END) FROM tick"),
    (filter_from_case, "SELECT COUNT(DISTINCT 1), COUNT(NULL), COUNT(id) FROM tick"),
    (merge_project_into_aggregate, "SELECT SUM(a + b) FROM (SELECT id AS a, at / 2 AS b FROM tick)"),
    (
        merge_project_into_aggregate,
        "SELECT SUM(a), MAX(a) FROM (SELECT at * 2e0 AS a FROM tick [RANGE 5])",
    ),
    (
        merge_project_into_aggregate,
        "SELECT SUM(a) FROM (SELECT id AS a FROM tick [RANGE 5] WHERE at > 3)",
    ),
]


@pytest.mark.parametrize(("rewrite", "text"), UNCHANGED)
def test_where_a_rule_does_not_hold(rewrite: Rewrite, text: str) -> None:
    plan = plan_of(text)
    assert everywhere(rewrite).rewrite(plan) is plan


def read_columns(plan: Plan) -> dict[str, set[tuple[str, ...]]]:
    """The columns that are read of every stream."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for source in sources_of(plan):
        found.setdefault(source.name, set()).add(source.schema.names)
    return found


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT kind FROM tick WHERE id > 1", {"tick": {("id", "kind")}}),
        ("SELECT COUNT(*) FROM tick", {"tick": {()}}),
        ("SELECT 1 FROM tick", {"tick": {()}}),
        ("SELECT DISTINCT kind FROM (SELECT * FROM tick)", {"tick": {("kind",)}}),
        ("SELECT kind FROM (SELECT DISTINCT * FROM tick)", {"tick": {("id", "kind", "price", "at")}}),
        ("SELECT kind FROM ISTREAM(tick [RANGE 2])", {"tick": {("id", "kind", "price", "at")}}),
        (
            "SELECT kind FROM (SELECT kind, SUM(id) s, MAX(price) FROM tick GROUP BY kind)",
            {"tick": {("id", "kind")}},
        ),
        ("SELECT kind FROM (SELECT kind, id / 0 AS failing FROM tick)", {"tick": {("id", "kind")}}),
        (
            "SELECT O.sellerID FROM OpenAuction O [RANGE 5 HOURS], ClosedAuction C WHERE O.itemID = C.itemID",
            {"OpenAuction": {("itemID", "sellerID")}, "ClosedAuction": {("itemID",)}},
        ),
        (
            "SELECT x FROM (SELECT id AS x, kind FROM tick WHERE at > 1 UNION ALL SELECT at, kind FROM tick)",
            {"tick": {("id", "at"), ("at",)}},
        ),
    ],
)
def test_columns_not_needed_are_never_read(text: str, columns: dict[str, set[tuple[str, ...]]]) -> None:
    plan = plan_of(text)
    optimized = optimize(plan)
    assert read_columns(optimized) == columns
    assert optimized.schema == plan.schema


GROUPS = "SELECT kind, COUNT(*) AS n, MIN(price) AS least FROM tick [RANGE 9] GROUP BY kind"
FREQUENT = f"(SELECT kind FROM ({GROUPS}) WHERE n > 3) f"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT t.id FROM tick [RANGE 5] t, {FREQUENT} WHERE t.kind = f.kind",
        f"SELECT t.id FROM tick [RANGE 5] t, {FREQUENT} WHERE t.kind < f.kind",
        f"SELECT t.id FROM tick [RANGE 5] t LEFT JOIN {FREQUENT} ON t.kind = f.kind",
        f"SELECT t.id FROM tick [RANGE 5] t SEMI JOIN {FREQUENT} ON t.kind < f.kind",
        f"SELECT f.kind FROM {FREQUENT} SEMI JOIN tick t ON t.kind = f.kind",
        f"SELECT t.id FROM tick t, ({GROUPS}) f WHERE t.kind = f.kind AND f.n > 3",
        f"SELECT t.id, f.m FROM tick t, (SELECT kind, n DIV 10 AS m FROM ({GROUPS})) f WHERE t.kind = f.kind",
        f"SELECT t.id, f.m FROM tick t, (SELECT kind, n > 3 AS m FROM ({GROUPS})) f WHERE t.kind = f.kind",
        "SELECT t.id FROM tick t, (SELECT 1 AS one FROM tick [RANGE 9] HAVING COUNT(*) > 3) f",
    ],
)
def test_rows_of_groups_that_go_on_are_coalesced_below_a_join(text: str) -> None:
    plan = plan_of(text)
    (coalesced,) = (node for node in walk(optimize(plan)) if isinstance(node, Coalesce))
    assert isinstance(coalesced.input, Project)
    assert rewrites(plan)[-1][0] == "coalesce_below_join"
    assert plan_of(to_sql(optimize(plan))).schema == plan.schema


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT kind FROM {FREQUENT}",
        f"SELECT t.id, f.n FROM tick t, ({GROUPS}) f WHERE t.kind = f.kind",
        f"SELECT t.id, f.m FROM tick t, (SELECT kind, 2e0 * n AS m FROM ({GROUPS})) f WHERE t.kind = f.kind",
        f"SELECT t.id FROM tick [RANGE 5] t SEMI JOIN {FREQUENT} ON t.kind = f.kind",
        f"SELECT t.id FROM tick [RANGE 5] t, {FREQUENT} WHERE t.kind = f.kind".replace("9", "9 SLIDE 9"),
        f"SELECT t.id FROM tick [RANGE 5] t, {FREQUENT} WHERE t.kind = f.kind".replace("RANGE 9", "NOW"),
        f"SELECT t.id FROM tick t, (SELECT n FROM ({GROUPS})) f WHERE t.id = f.n",
    ],
    ids=["no join", "results kept", "one to one", "semi-join", "tumbling", "chronons", "without the keys"],
)
def test_where_coalescing_does_not_pay(text: str) -> None:
    assert not any(isinstance(node, Coalesce) for node in walk(optimize(plan_of(text))))


def test_what_only_a_filter_needs_goes_no_further() -> None:
    plan = optimize(plan_of("SELECT a.id FROM tick a [RANGE 5], tick b WHERE a.at = b.at AND a.kind = 'x'"))
    assert explain(plan).splitlines() == [
        "Project id  [chronon]",
        "  Join ON at = at_2  [chronon]",
        "    TimeWindow RANGE 5",
        "      Project id, at  [chronon]",
        "        Filter kind = 'x'  [chronon]",
        "          Source tick (id, kind, at) by at  [chronon]",
        "    Source tick (at) by at  [chronon]",
    ]


def test_closing_price() -> None:
    text = """
        SELECT itemID, sellerID, MAX(price) AS price FROM (
            SELECT P.itemID, P.price, O.sellerID AS sellerID
            FROM ((SELECT itemID, bid_price AS price FROM Bid WINDOW(RANGE 2 DAYS))
                  UNION ALL (SELECT itemID, start_price AS price FROM OpenAuction WINDOW(RANGE 2 DAYS))) P,
              ClosedAuction C, OpenAuction O WINDOW(RANGE 2 DAYS)
            WHERE P.itemID = C.itemID AND C.itemID = O.itemID) GROUP BY itemID, sellerID
        """
    assert explain(optimize(plan_of(text))).splitlines() == [
        "Aggregate BY itemID, sellerID: MAX(price) AS price  [chronon]",
        "  Project itemID, price, sellerID  [chronon]",
        "    Join ON itemID_2 = itemID_3  [chronon]",
        "      Join ON itemID = itemID_2  [chronon]",
        "        TimeWindow RANGE 2 DAYS",
        "          Union of 2  [chronon]",
        "            Project itemID, bid_price AS price  [chronon]",
        "              Source Bid (itemID, bid_price) by ts  [chronon]",
        "            Project itemID, start_price AS price  [chronon]",
        "              Source OpenAuction (itemID, start_price) by ts  [chronon]",
        "        Source ClosedAuction (itemID) by ts  [chronon]",
        "      TimeWindow RANGE 2 DAYS",
        "        Source OpenAuction (itemID, sellerID) by ts  [chronon]",
    ]


def test_rewrites_are_shown_by_name_and_end_in_the_optimized_plan() -> None:
    plan = plan_of("SELECT a.id FROM tick a, tick b WHERE a.at = b.at AND a.kind = 'x'")
    steps = rewrites(plan)
    assert [name for name, _ in steps] == ["push_filter_below_join", "equalities_into_join", "prune_columns"]
    assert steps[-1][1] == optimize(plan)
    assert {name for name, _ in steps} <= {rule.name for rule in RULES}
    assert rewrites(optimize(plan)) == []
    assert optimize(plan_of("SELECT * FROM tick")) == plan_of("SELECT * FROM tick")


def test_optimized_plans_still_share_their_subplans_by_value() -> None:
    first = optimize(plan_of("SELECT kind, COUNT(*) FROM tick [RANGE 60] WHERE id > 1 GROUP BY kind"))
    second = optimize(
        plan_of("SELECT kind, COUNT(*) FROM tick [RANGE 60] WHERE id > 1 GROUP BY kind HAVING kind = 'a'")
    )
    assert first in set(walk(second))
    assert all(isinstance(node, Source) or inputs_of(node) for node in walk(first))
    assert CATALOG.find("tick") is not None


@pytest.mark.parametrize(
    ("condition", "limit", "offset", "rest"),
    [
        ("n <= 3", 3, 0, ""),
        ("3 >= n AND id > 1", 3, 0, "id > 1"),
        ("n < 3 AND n > 1", 1, 1, ""),
        ("n >= 2", None, 1, ""),
        ("n = 2", 1, 1, ""),
        ("n = 0", 0, 0, ""),
        ("n > 5 AND n < 3", 0, 5, ""),
        ("n <= 3 AND n + 1 > id", 3, 0, "n + 1 > id"),
    ],
)
def test_conditions_on_a_place_are_a_limit(condition: str, limit: int | None, offset: int, rest: str) -> None:
    rows = "(SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) AS n FROM (SELECT id FROM tick [RANGE 9]))"
    plan = plan_of(f"SELECT * FROM {rows} WHERE {condition}")
    pushed = everywhere(push_filter_below_project).rewrite(plan)
    found = optimize(pushed)
    expected = plan_of(f"SELECT * FROM {rows}" + (f" WHERE {rest}" if rest else ""))
    assert explain(found).replace(_limits(limit, offset), "TopK") == explain(optimize(expected))
    assert "limit_from_row_number" in [name for name, _ in rewrites(plan)]


def test_conditions_on_a_rank_are_a_limit() -> None:
    rows = "(SELECT id, RANK() OVER (ORDER BY kind DESC) AS n FROM tick [RANGE 9])"
    found = explain(optimize(plan_of(f"SELECT id, n FROM {rows} WHERE n > 1 AND n <= 3")))
    assert "TopK LIMIT 2 OFFSET 1 ORDER BY kind DESC: RANK() AS" in found
    found = explain(optimize(plan_of(f"SELECT id FROM {rows} WHERE n = 1")))
    assert "TopK LIMIT 1 ORDER BY kind DESC: RANK()" in found


def _limits(limit: int | None, offset: int) -> str:
    parts = [
        "TopK",
        *([] if limit is None else [f"LIMIT {limit}"]),
        *([f"OFFSET {offset}"] if offset else []),
    ]
    return " ".join(parts)


@pytest.mark.parametrize("condition", ["n + 1 <= 3", "n <= id", "n <= 3 OR id = 1", "n < 2.5", "n <> 1"])
def test_other_conditions_on_a_place_are_none(condition: str) -> None:
    rows = "(SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) AS n FROM (SELECT id FROM tick [RANGE 9]))"
    names = [name for name, _ in rewrites(plan_of(f"SELECT * FROM {rows} WHERE {condition}"))]
    assert "limit_from_row_number" not in names


def test_a_place_that_nobody_reads_is_not_counted() -> None:
    rows = "(SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) AS n FROM tick [RANGE 9])"
    assert "TopK" not in explain(optimize(plan_of(f"SELECT id FROM {rows}")))
    assert "ROW_NUMBER" not in explain(optimize(plan_of(f"SELECT id FROM {rows} WHERE n <= 2")))


def test_rules_that_undo_each_other_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(plan: Plan) -> Plan:
        return plan.input if isinstance(plan, Rstream) else plan

    def more(plan: Plan) -> Plan:
        if isinstance(plan, Sample) and plan.percent < 30:
            return Sample(plan.input, plan.percent + 10)
        return plan

    def few(plan: Plan) -> Plan:
        if isinstance(plan, Sample) and plan.percent == 30:
            return Sample(plan.input, Decimal(10))
        return plan

    monkeypatch.setattr("headrace.optimizer.RULES", tuple(map(everywhere, (start, more, few))))
    with pytest.raises(AssertionError, match=r"^these rules undo each other: few, more$"):
        rewrites(Rstream(Sample(plan_of("SELECT * FROM tick"), Decimal(10))))


def test_a_window_of_the_last_row_leaves_out_what_is_not_live() -> None:
    """The node has no text of its own: it prints as the filter and the window."""
    flagged = "(SELECT id, kind, at > 5 AS late FROM tick) [PARTITION BY kind ROWS 1]"
    rewritten = everywhere(forget_rows_left_out).rewrite(
        plan_of(f"SELECT * FROM {flagged} WHERE late AND id > 1")
    )
    lines = [line.strip() for line in explain(rewritten).splitlines()]
    assert lines[0].startswith("Filter id > 1")
    assert lines[1].startswith("RowWindow PARTITION BY kind ROWS 1 WHERE late")
    expected = plan_of(f"SELECT * FROM (SELECT * FROM {flagged} WHERE late) WHERE id > 1")
    assert explain(plan_of(to_sql(rewritten))) == explain(expected)


_BY = "SESSION(tick PARTITION BY kind, DESCRIPTOR(at), 5) GROUP BY kind, window_start, window_end"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT kind, COUNT(*) AS n, MIN(id) AS a, MAX(at) AS b FROM {_BY}",
        f"SELECT kind, AVG(price) AS n FROM {_BY.replace(' GROUP', ' WHERE id > 3 AND at < 9 GROUP')}",
        f"SELECT window_end, kind, LAST(id ORDER BY at) AS l FROM {_BY}, id",
        "SELECT SUM(id) AS n FROM SESSION(tick, 5)",
    ],
)
def test_sessions_are_added_up_while_they_go_on(text: str) -> None:
    """The node has no text of its own: it prints as the aggregate and the sessions."""
    plan = optimize(plan_of(text))
    assert [type(node).__name__ for node in walk(plan) if "Session" in type(node).__name__] == [
        "SessionAggregate"
    ]
    assert optimize(plan_of(to_sql(plan))) == plan


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT MEDIAN(id) AS n FROM {_BY}",
        f"SELECT COUNT(DISTINCT id) AS n FROM {_BY}",
        f"SELECT SUM(at - window_start) AS n FROM {_BY}",
        f"SELECT COUNT(*) AS n FROM {_BY.replace(' GROUP', ' WHERE window_end > 3 GROUP')}",
        f"SELECT MAX(10 DIV id) AS n FROM {_BY}",
        f"SELECT COUNT(*) AS n FROM {_BY.replace('BY kind, window', 'BY window')}",
    ],
)
def test_sessions_are_not_added_up_where_that_takes_their_bounds_or_all_their_rows(text: str) -> None:
    assert "OF SESSIONS" not in explain(optimize(plan_of(text)))
