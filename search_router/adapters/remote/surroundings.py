"""What a remote expert is given of our environment, and how `{env:NAME}` is read. Never SEARCH_ROUTER_*: those are our own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from search_router.adapters.remote.template import fill, placeholders_in
from search_router.errors import ExpertError, FailureClass

INHERITED = frozenset(
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES TZ TMPDIR TEMP TMP XDG_CACHE_HOME XDG_CONFIG_HOME "
    "XDG_DATA_HOME XDG_RUNTIME_DIR SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS".split()
)
"""What a program needs to run at all. Anything else must be named in `pass_env`: a stranger's server gets no other service's keys."""
OURS = "SEARCH_ROUTER_"


def inherited_names(pass_env: Sequence[str]) -> frozenset[str]:
    """Names of the variables that a child gets."""
    return INHERITED | {name for name in pass_env if not name.startswith(OURS)}


def missing_variables(names: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """Those that are not set or empty."""
    return [name for name in names if not environ.get(name)]


def with_environment(values: Mapping[str, Any], template: Any, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The values, and those of the `{env:NAME}` placeholders in a template that are set."""
    names = [name for name in placeholders_in(template) if name.startswith("env:")]
    return {**values, **{name: environ[name[4:]] for name in names if environ.get(name[4:]) and not name[4:].startswith(OURS)}}


def fill_texts(template: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    """A table of texts (environment, headers) filled in. Raises ExpertError `unconfigured` for a variable that is not set."""
    known = with_environment(values, template)
    return {name: str(fill(text, known)) for name, text in template.items()}


def find_program(program: str, cwd: Path | None = None) -> str | None:
    """Where a program is: a path as it is (relative to `cwd`), a name on PATH. None when it is not there or not executable."""
    if "/" in program:
        path = Path(program) if cwd is None else cwd / program
        return str(path) if os.access(path, os.X_OK) and path.is_file() else None
    return shutil.which(program)


def require_variables(names: Sequence[str]) -> None:
    """Raises ExpertError `unconfigured` that names each variable that is not set."""
    if missing := missing_variables(names):
        listed = ", ".join(missing)
        raise ExpertError(FailureClass.UNCONFIGURED, f"Not set in the environment: {listed}.", remedy=f"Set {listed} and start again.")
