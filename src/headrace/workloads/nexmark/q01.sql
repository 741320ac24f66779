-- Currency conversion: every bid in euros.
-- As printed.
SELECT auction, bidder, 0.908 * price AS price, ts, extra
FROM bid;
