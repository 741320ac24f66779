"""Why a query has no output, or no newer one."""
