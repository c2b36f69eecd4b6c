"""Where the router keeps its own things. Finding the places creates nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from search_router.config.schema import ReceiptsConfig
from search_router.errors import WorkspaceError

APPLICATION = "search-router"


@dataclass(frozen=True, slots=True)
class StatePaths:
    """Absolute paths of the state.

    Home, receipt log directory, private key file, cache directory, the user's configuration file; the directory of checkpoint files, the
    private key that signs them, and the file of pinned key ids.
    """

    home: Path
    receipts: Path
    key: Path
    cache: Path
    user_config: Path
    checkpoints: Path
    checkpoint_key: Path
    pins: Path


def find_user_file(environ: Mapping[str, str], named: Path | None) -> tuple[Path, bool]:
    """The user's file, and whether it was named (by the caller, or by SEARCH_ROUTER_CONFIG) and so must exist."""
    if named is not None:
        return absolute(str(named)), True
    if text := environ.get("SEARCH_ROUTER_CONFIG"):
        return absolute(text), True
    import platformdirs  # milliseconds that a start with everything named does not need

    return Path(platformdirs.user_config_dir(APPLICATION, appauthor=False)) / "config.toml", False


def find_home(environ: Mapping[str, str]) -> Path:
    """The directory of the router's own things: SEARCH_ROUTER_HOME, or the user's data directory."""
    if named := environ.get("SEARCH_ROUTER_HOME"):
        return absolute(named)
    import platformdirs  # see above

    return Path(platformdirs.user_data_dir(APPLICATION, appauthor=False))


def find_state_paths(receipts: ReceiptsConfig, environ: Mapping[str, str], user_file: Path) -> StatePaths:
    """All places. Empty variables count as unset.

    Relative paths are below home when they come from the configuration, below the working directory when from a variable.
    """
    home = find_home(environ)
    if environ.get("SEARCH_ROUTER_HOME"):
        cache = home / "cache"
    else:
        import platformdirs  # see above

        cache = Path(platformdirs.user_cache_dir(APPLICATION, appauthor=False))
    named_key = environ.get("SEARCH_ROUTER_KEY")
    return StatePaths(
        home=home,
        receipts=absolute(receipts.directory or "receipts", home),
        key=absolute(named_key) if named_key else absolute(receipts.key or "keys/receipt-ed25519.pem", home),
        cache=cache,
        user_config=user_file,
        checkpoints=absolute(receipts.checkpoints or "checkpoints", home),
        checkpoint_key=absolute(receipts.checkpoint_key or "keys/checkpoint-ed25519.pem", home),
        pins=home / "pinned-keys.txt",
    )


def absolute(text: str, base: Path | None = None) -> Path:
    """The path with `~` expanded, without `..`, and below `base` (default: the working directory) when it is relative.

    A `~name` of no known user is a plain name, as in a shell. Raises WorkspaceError when the working directory is gone.
    """
    path = Path(text)
    with contextlib.suppress(RuntimeError):
        path = path.expanduser()
    try:
        return Path(os.path.abspath(base / path if base else path))  # noqa: PTH100 - resolve() would follow links
    except FileNotFoundError as error:
        raise WorkspaceError(
            f"The working directory is gone, so {text!r} names nothing.", remedy="Change to a directory that exists."
        ) from error
