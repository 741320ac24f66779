-- Side input: every bid with the value that a table has for its auction.
-- As printed, as of the bid's time; the table is a relation that does not change.
SELECT B.auction, B.bidder, B.price, B.ts, S.value
FROM bid B JOIN side_input FOR SYSTEM_TIME AS OF B.ts AS S ON MOD(B.auction, 10000) = S.key;
