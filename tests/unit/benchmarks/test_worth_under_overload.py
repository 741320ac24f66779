"""Under overload answers are worth more where rows are left out by what they are worth."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.runtime.driver.facts.capacity import HEADROOM
from overload import POLICIES, QUERIES, Costs, by_share, of_sales, run, sales

COSTS = Costs(4e-7, np.array([0.01, 0.3, 1.0]), np.array([2e-7, 1.1e-6, 4e-6]))


@pytest.mark.parametrize("times", [2, 3, 5])
def test_sales_that_are_worth_most_are_worth_more_than_as_many_of_all(times: int) -> None:
    _, values = sales(20_000)
    rate = HEADROOM / (COSTS.rest + COSTS.of(1.0))
    found = {
        name: run(POLICIES[name], times * rate, COSTS, (known,)) for name, known in of_sales(values).items()
    }
    assert found["by utility"].behind < 1
    assert found["by utility"].utility > 1.3 * found["uniform"].utility
    assert found["uniform"].utility > found["all rows"].utility


@pytest.mark.parametrize("times", [2, 3, 5])
def test_shares_by_utility_are_worth_no_less_than_the_same_share_of_all(times: int) -> None:
    rate = HEADROOM / (COSTS.rest + len(QUERIES) * COSTS.of(1.0))
    found = {name: run(policy, times * rate, COSTS, by_share()) for name, policy in POLICIES.items()}
    assert found["by utility"].utility >= found["uniform"].utility > found["all rows"].utility
