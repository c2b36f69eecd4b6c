"""The bundle's entry point: serves over stdio what the directories named on the command line hold."""

from __future__ import annotations

import sys


def main() -> None:
    roots = [word for directory in sys.argv[1:] for word in ("--root", directory)]
    sys.argv[1:] = ["serve", *roots]
    from search_router.__main__ import main as command_line

    command_line()


if __name__ == "__main__":
    main()
