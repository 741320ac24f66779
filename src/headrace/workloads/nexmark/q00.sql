-- Pass through: every bid.
-- As printed.
SELECT auction, bidder, price, ts, extra
FROM bid;
