"""Questions that are asked once, over what has been committed."""
