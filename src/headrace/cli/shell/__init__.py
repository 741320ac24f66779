"""`headrace shell`: statements, questions and answers at a prompt."""
