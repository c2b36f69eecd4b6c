"""The console: what an operator sees of a router over HTTP, as pages and as JSON. A front door: it only translates."""
