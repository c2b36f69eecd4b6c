"""A machine of the test's own: a home, a project and an environment, in a temporary directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from search_router.clients.catalog import BY_ID, Client, Scope, Surroundings
from search_router.clients.setup import Order

COMMAND = ("/opt/bin/search-router",)


@dataclass(frozen=True, slots=True)
class Machine:
    here: Surroundings
    state: Path

    @classmethod
    def make(cls, folder: Path, platform: str = "linux", **environ: str) -> Machine:
        home, project = folder / "home", folder / "project"
        home.mkdir(exist_ok=True)
        project.mkdir(exist_ok=True)
        return cls(Surroundings(platform, home, project, environ), folder / "state")

    def order(self, scope: Scope = Scope.USER, **more: object) -> Order:
        return Order(**{"scope": scope, "command": COMMAND, "roots": (self.here.project,), **more})

    def file(self, client: str, scope: Scope = Scope.USER) -> Path:
        found = BY_ID[client]
        path = found.user(self.here) if scope is Scope.USER else found.project and found.project(self.here)
        assert path
        return path

    def put(self, client: str, text: str | bytes) -> Path:
        path = self.file(client)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


def known(client: str) -> Client:
    return BY_ID[client]
