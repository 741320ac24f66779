"""NEXMark: an auction site as streams of persons, auctions, bids and closings.

The schema and the proportions follow Tucker, Tufte, Papadimos and Maier, *NEXMark: A Benchmark for Queries
over Data Streams* (2002), with the hot sellers, bidders and auctions of its later descendants in Apache Beam
and Flink. Krämer's thesis measures PIPES with it (section 14.1).

Everything is a function of (seed, event number), so any slice can be generated anywhere:

- In each block of 50 events, event 0 is a person, events 1 to 3 are auctions, the other 46 are bids. Ids
  count from 1000 in order of appearance.
- Event n happens at `start + n * 1_000_000 // rate`. Events *arrive* in the order of their numbers; with a
  disorder d, the timestamp of each is moved back by a random amount in [0, d] microseconds, so a stream is
  never more than d behind its largest timestamp.
- Half of the bids go to the hot auction, the last one whose number is a multiple of 100; the others are
  spread over the 100 last auctions. Three quarters of the auctions and bids come from the hot seller and the
  hot bidder, the first and the second of the last hundred persons; the others from the 1000 last persons.
- Auction a, opened by event n, closes at event `n + life(a)`, where life is 2,000 to 64,000 events, spread
  evenly over the powers of two in between. It `expires` when that event happens. Since no bid goes to an
  auction that opened more than 1,750 events ago, none comes after the closing.
- A bid's `url` is that of its page; where its channel is not one of the four hot ones, nine of ten have the
  channel's number as `channel_id`. `extra` is what fills a row up: random small letters.
- The fourth table, `closed`, has a row for every closing whose event number is below the number of events;
  its timestamp is the auction's `expires`, without disorder, so that it is always in order.
"""

from headrace.workloads.nexmark.columns import TABLES
from headrace.workloads.nexmark.events import FIRST_ID, MAX_LIFE, MIN_LIFE, Nexmark
from headrace.workloads.nexmark.generator import counts, generate

__all__ = ["FIRST_ID", "MAX_LIFE", "MIN_LIFE", "TABLES", "Nexmark", "counts", "generate"]
