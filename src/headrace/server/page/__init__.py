"""The page that the server shows, as files; `headrace.server.routes.page` serves them."""
