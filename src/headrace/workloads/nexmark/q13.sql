-- Side input: every bid with the value that a table has for its auction.
-- As printed, without the clause that says when: the table is a relation that does not change.
SELECT B.auction, B.bidder, B.price, B.ts, S.value
FROM bid B JOIN side_input S ON MOD(B.auction, 10000) = S.key;
