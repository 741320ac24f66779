"""What state comes to, counted as it changes and all at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.state.runs import RunPart, RunRef
from headrace.runtime.journal.held_state import HeldState, StateSizes
from headrace.runtime.tasks.messages import Manifest, StateKey

PARTS = st.builds(
    lambda file, place: RunPart(f"segments/{file}", 64 * place, 10 + place, 0),
    st.integers(0, 3),
    st.integers(0, 3),
)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[StateKey, Manifest]]:
    """Changes of the manifests of three operators, some of which have parts in common; rows only go."""
    left: dict[RunPart, int] = {}
    found: list[dict[StateKey, Manifest]] = []
    for _ in range(draw(st.integers(1, 8))):
        change: dict[StateKey, Manifest] = {}
        for operator in draw(st.sets(st.integers(0, 2), min_size=1)):
            runs = []
            for part in draw(st.lists(PARTS, max_size=4, unique=True)):
                left.setdefault(part, draw(st.integers(1, 9)))
                runs.append(RunRef(part, left[part], 0, 1, 1))
            change[f"operator{operator}", 0] = {"area": tuple(runs)}
        found.append(change)
    return found


@given(histories())
def test_sizes_follow_changes(changes: list[dict[StateKey, Manifest]]) -> None:
    state = HeldState()
    for change in changes:
        before = dict(state.sizes.files)
        # An epoch that is not committed has counted as well.
        state.changed(change)
        after = state.changed(change)
        expected = StateSizes.of(after.values())
        assert (after.sizes.rows, after.sizes.size) == (expected.rows, expected.size)
        assert after.sizes.files == expected.files
        assert dict(state.sizes.files) == before
        state = after


def test_a_part_of_which_fewer_rows_count_is_counted_so() -> None:
    part = RunPart("segments/a", 0, 10, 0)
    state = HeldState().changed({("operator", 0): {"area": (RunRef(part, 9, 0, 1, 1),)}})
    state = state.changed({("operator", 0): {"area": (RunRef(part, 4, 0, 1, 1),)}})
    assert (state.sizes.rows, state.sizes.size) == (4, 10)
    assert state.changed({("operator", 0): {}}).sizes.rows == 0
