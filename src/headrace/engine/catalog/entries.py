"""An immutable mapping that can be extended, changed and shortened at little cost."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Slot(Generic[T]):
    """The place of an entry in the order.

    Attributes:
        key: the entry's.
        since: the first version that has it.
        until: the first one that lacks it again; None while none does.
        entries: what it is, from which version on.
    """

    key: str
    since: int
    until: int | None
    entries: list[tuple[int, T]]

    def is_in(self, version: int) -> bool:
        """Whether a version has it."""
        return self.since <= version and (self.until is None or version < self.until)

    def entry(self, version: int) -> T:
        """What it is in a version that has it."""
        return next(entry for since, entry in reversed(self.entries) if since <= version)


@dataclass(eq=False, slots=True)
class _Versions(Generic[T]):
    """What mappings share that came from each other, one by one.

    Attributes:
        slots: the places, in order.
        latest: the newest version.
        found: the places of a key, of which each version has one at most.
    """

    slots: list[_Slot[T]] = field(default_factory=list)
    latest: int = 0
    found: dict[str, list[_Slot[T]]] = field(default_factory=dict)

    def append(self, key: str, entry: T) -> None:
        """A place more, in the newest version."""
        slot = _Slot(key, self.latest, None, [(self.latest, entry)])
        self.slots.append(slot)
        self.found.setdefault(key, []).append(slot)


class Entries(Mapping[str, T]):
    """An immutable mapping that keeps the order in which its entries were added.

    A mapping that was made from another one by one step shares what it holds with that, which sees only its
    own version; so n steps, one after the other, take time in proportion to n. A second step from the same
    mapping copies it, and so does one from a mapping most of whose shared entries are gone.

    Args:
        entries: what it holds at first.
    """

    def __init__(self, entries: Mapping[str, T] | None = None) -> None:
        self._versions: _Versions[T] = _Versions()
        self._version = 0
        self._count = 0
        self._known: dict[str, T] | None = None
        self._step: Callable[[], dict[str, T]] | None = None
        for key, entry in (entries or {}).items():
            self._versions.append(key, entry)
            self._count += 1

    def __getitem__(self, key: str) -> T:
        slot = self._slot(key)
        if slot is None:
            raise KeyError(key)
        return slot.entry(self._version)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._slot(key) is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Entries):
            return self is other or (len(self) == len(other) and self.whole == other.whole)
        return super().__eq__(other)

    def __iter__(self) -> Iterator[str]:
        yield from self.whole

    def __len__(self) -> int:
        return self._count

    def values(self) -> ValuesView[T]:
        """Its entries, in order."""
        return _Values(self)

    def items(self) -> ItemsView[str, T]:
        """Both, in order."""
        return _Items(self)

    def adding(self, key: str, entry: T) -> Entries[T]:
        """The mapping with one entry more, whose key it does not hold yet."""
        assert key not in self
        new = self._next(self._count + 1)
        new._versions.append(key, entry)
        new._step = self._step_to(key, entry)
        return new

    def replacing(self, key: str, entry: T) -> Entries[T]:
        """The mapping with another entry in the place of one that it holds."""
        assert key in self
        new = self._next(self._count)
        slot = new._slot(key)
        assert slot is not None
        slot.entries.append((new._version, entry))
        new._step = self._step_to(key, entry)
        return new

    def renaming(self, key: str, other: str) -> Entries[T]:
        """The mapping with another key in the place of one that it may hold."""
        return Entries({other if known == key else known: entry for known, entry in self.items()})

    def without(self, key: str) -> Entries[T]:
        """The mapping without one entry, if it holds that."""
        if key not in self:
            return self
        new = self._next(self._count - 1)
        slot = new._slot(key)
        assert slot is not None
        slot.until = new._version
        new._step = None if self._known is None else partial(_less, self._known, key)
        return new

    def _slot(self, key: str) -> _Slot[T] | None:
        slots = self._versions.found.get(key, ())
        return next((slot for slot in slots if slot.is_in(self._version)), None)

    @property
    def whole(self) -> dict[str, T]:
        """The same as a dictionary, which is made once it is looked through."""
        if self._known is None:
            self._known = self._from_slots() if self._step is None else self._step()
            self._step = None
        return self._known

    def _from_slots(self) -> dict[str, T]:
        version = self._version
        return {slot.key: slot.entry(version) for slot in self._versions.slots if slot.is_in(version)}

    def _step_to(self, key: str, entry: T) -> Callable[[], dict[str, T]] | None:
        """Makes the dictionary of the next mapping from that of this one, if it is known."""
        return None if self._known is None else partial(_more, self._known, key, entry)

    def _next(self, count: int) -> Entries[T]:
        """The version after this one, which holds so many entries once its step has been made."""
        mapping = self
        if self._version < self._versions.latest or len(self._versions.slots) > 2 * self._count + 16:
            mapping = Entries(self)
        new: Entries[T] = Entries.__new__(Entries)
        new._versions = mapping._versions
        new._versions.latest += 1
        new._version, new._count = new._versions.latest, count
        new._known = new._step = None
        return new


def _more(known: dict[str, T], key: str, entry: T) -> dict[str, T]:
    return {**known, key: entry}


def _less(known: dict[str, T], key: str) -> dict[str, T]:
    return {name: entry for name, entry in known.items() if name != key}


class _Values(ValuesView[T]):
    _mapping: Entries[T]

    def __iter__(self) -> Iterator[T]:
        yield from self._mapping.whole.values()


class _Items(ItemsView[str, T]):
    _mapping: Entries[T]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        yield from self._mapping.whole.items()
