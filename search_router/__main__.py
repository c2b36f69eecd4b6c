"""The command line, as `python -m search_router` and as the installed `search-router`."""

from __future__ import annotations

from search_router.collector import collector_paused


def main() -> None:
    """Import the command line and run it."""
    with collector_paused():
        from search_router.cli import main as command_line
    command_line()


if __name__ == "__main__":
    main()
