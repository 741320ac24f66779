-- Local item suggestion: who in Oregon, Idaho or California sells in category 10, and what?
-- As printed.
SELECT P.name, P.city, P.state, A.id
FROM auction A
INNER JOIN person P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
