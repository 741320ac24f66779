-- Local item suggestion: who in Oregon, Idaho or California sells in category 10, and what?
-- As printed, with the windows that a join without windows means there.
SELECT P.name, P.city, P.state, A.id
FROM auction A WINDOW(RANGE UNBOUNDED)
INNER JOIN person P WINDOW(RANGE UNBOUNDED) ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
