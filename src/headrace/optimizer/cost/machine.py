"""How long work takes: constants that were fitted from measured seconds, and the machine they are from.

`python benchmarks/costs.py --fit` measures them anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Final

from headrace.optimizer.cost.work import Work, WorkKind


@dataclass(frozen=True)
class Constants:
    """How long one kind of work takes (seconds).

    Attributes:
        taken, given, kept: for a row that is taken; that is yielded; that is kept from one epoch to the next.
        epoch: for an epoch.
    """

    taken: float = 0.0
    given: float = 0.0
    kept: float = 0.0
    epoch: float = 0.0


@dataclass(frozen=True)
class Machine:
    """What a machine takes.

    Attributes:
        name: the machine, its software, and the day of the measurement.
        constants: by kind of work.
    """

    name: str
    constants: Mapping[WorkKind, Constants]

    def seconds(self, works: Iterable[Work]) -> float:
        """How much processor time some work takes (seconds)."""
        return sum(map(self._seconds, works))

    def _seconds(self, work: Work) -> float:
        each = self.constants[work.kind]
        rows = work.taken * each.taken + work.given * each.given + work.kept * each.kept
        return rows + work.epochs * each.epoch

    def written(self) -> str:
        """The constants as text, in nanoseconds with three digits."""
        constants = {
            kind.value: {name: float(f"{value * 1e9:.3g}") for name, value in asdict(each).items() if value}
            for kind, each in self.constants.items()
        }
        return json.dumps({"machine": self.name, "nanoseconds": constants}, indent=2) + "\n"

    @classmethod
    def read(cls, text: str) -> Machine:
        """The constants in a text that `written` has made."""
        found = json.loads(text)
        constants = {
            WorkKind(kind): Constants(**{name: value / 1e9 for name, value in each.items()})
            for kind, each in found["nanoseconds"].items()
        }
        return cls(found["machine"], constants)


CONSTANTS: Final = files("headrace.optimizer.cost") / "seconds.json"
"""The file of the constants."""
MACHINE: Final = Machine.read(CONSTANTS.read_text())
"""The constants that come with Headrace."""
