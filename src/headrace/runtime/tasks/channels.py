"""Exchanges as their producers see them: what travels, and to which bucket."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.elements import Batch, Int64Array, concat
from headrace.lowering.node import Exchange, Node, Spread
from headrace.operators.before_exchange import Reduction, reduction_for
from headrace.operators.contract import Report, evaluate_all
from headrace.operators.state.keys import bucket_rows, hash_rows, normalise, order_by


class Channel:
    """An exchange as its producer sees it.

    Args:
        number: the exchange's, in the graph.
        producer: the node whose elements travel.
        exchange: how they are reduced and spread.
    """

    def __init__(self, number: int, producer: Node, exchange: Exchange) -> None:
        self.number = number
        self.producer = producer
        self.exchange = exchange
        reduced_for = exchange.reduced_for
        self._reduction: Reduction | None = None if reduced_for is None else reduction_for(reduced_for)

    def prepare(self, batch: Batch, report: Report) -> Batch:
        """A batch in the form in which it travels."""
        # Small batches are reduced one by one: their groups stay in the processor's cache.
        return batch if self._reduction is None else self._reduction.reduce(batch, report)

    def joined(self, batches: list[Batch]) -> Batch:
        """Prepared batches as one."""
        if self._reduction is None:
            return concat(self.producer.plan.schema, batches)
        batch = concat(self._reduction.schema, batches)
        return self._reduction.reduce_again(batch) if len(batches) > 1 else batch

    def by_bucket(self, batch: Batch, buckets: int, report: Report) -> Iterator[tuple[int, Batch]]:
        """The elements of each bucket that has some, where they are not copied to every bucket.

        Args:
            batch: prepared elements.
            buckets: how many buckets there are.
            report: receives the elements for which a key's expression fails.
        """
        batch, hashes = self._hashes(batch, report)
        exchange = self.exchange
        if buckets == 1 or (not exchange.keys and exchange.spread is Spread.KEY):
            if len(batch):
                yield int(bucket_rows(hashes[:1], buckets)[0]), batch
            return
        yield from parts_by_bucket(batch, hashes, buckets)

    def _hashes(self, batch: Batch, report: Report) -> tuple[Batch, Int64Array]:
        """The elements that have a bucket, and the hashes that decide it."""
        if self._reduction is not None:
            columns = self._reduction.keys(batch)
        elif self.exchange.spread is Spread.ROW:
            columns = [normalise(column) for column in batch.payload.columns]
        else:
            batch, columns = evaluate_all(self.exchange.keys, batch, report)
            columns = [normalise(column) for column in columns]
        return batch, hash_rows(columns, len(batch))


def parts_by_bucket(batch: Batch, hashes: Int64Array, buckets: int) -> Iterator[tuple[int, Batch]]:
    """The elements of each bucket that has some.

    Args:
        batch: n elements.
        hashes: int64[n], that of what each is spread by.
        buckets: how many buckets there are.
    """
    codes = bucket_rows(hashes, buckets)
    order = order_by(codes, np.zeros(len(codes), dtype=np.int64), buckets)
    bounds = np.searchsorted(codes[order], np.arange(buckets + 1))
    routed = batch.take(order)
    for bucket in range(buckets):
        start, end = int(bounds[bucket]), int(bounds[bucket + 1])
        if end > start:
            yield bucket, routed.slice(start, end - start)
