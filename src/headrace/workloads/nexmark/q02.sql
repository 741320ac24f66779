-- Selection: the bids on every 123rd auction.
-- As printed.
SELECT auction, price
FROM bid
WHERE MOD(auction, 123) = 0;
