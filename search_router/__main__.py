"""`python -m search_router` is the command line."""

from __future__ import annotations

from search_router.cli import main

if __name__ == "__main__":
    main()
