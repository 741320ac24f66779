"""What several threads do to an endless run at once is what they do one after the other, in some order."""

from __future__ import annotations

from pathlib import Path

import pytest

from how_many import how_many
from interleaving import Interleaving, one_after_another


@pytest.mark.parametrize("seed", range(how_many(4, 12)))
def test_calls_of_many_threads_answer_as_in_the_order_of_their_commits(seed: int, tmp_path: Path) -> None:
    run = Interleaving(seed, tmp_path / "together")
    answers, epochs = run.run()
    assert answers == one_after_another(run.texts, epochs, tmp_path / "apart")
