"""SELECT: its list, GROUP BY, HAVING and LIMIT."""
