"""A whole state directory of receipts for the tests: logs, keys, checkpoints, and what a client received; and the command line on it."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from click.testing import CliRunner

from search_router.cli import main
from search_router.receipts.checkpointer import CheckpointPlan
from search_router.receipts.keys import SigningKey, load_or_create_key
from search_router.receipts.log import log_path
from search_router.receipts.rotate import Rotated, rotate_key
from search_router.receipts.store import ReceiptStore, Stored, open_store
from search_router.schema import Answer
from tests.receipts.samples import make_answer, make_payload, now_us, sqlite_files


@dataclass(frozen=True)
class Ended:
    code: int
    output: str
    errors: str

    @property
    def verdicts(self) -> list[Any]:
        return json.loads(self.output)


@dataclass(frozen=True)
class StateDirectory:
    """A state directory with the default layout."""

    home: Path

    @property
    def receipts(self) -> Path:
        return self.home / "receipts"

    @property
    def key_path(self) -> Path:
        return self.home / "keys" / "receipt-ed25519.pem"

    @property
    def key(self) -> SigningKey:
        return load_or_create_key(self.key_path)

    @property
    def checkpoints(self) -> Path:
        return self.home / "checkpoints"

    @property
    def pins(self) -> Path:
        return self.home / "pinned-keys.txt"

    def plan(self, every_receipts: int = 1000, every_seconds: float = 3600) -> CheckpointPlan:
        return CheckpointPlan(
            self.checkpoints, load_or_create_key(self.home / "keys" / "checkpoint-ed25519.pem"), every_receipts, every_seconds
        )

    def log(self) -> Path:
        """The only log."""
        (path,) = sqlite_files(self.receipts)
        return path

    def checkpoint_file(self) -> Path:
        return self.checkpoints / f"{self.log().stem}.txt"

    def copy(self, target: Path) -> StateDirectory:
        shutil.copytree(self.home, target)
        return StateDirectory(target)

    @contextlib.asynccontextmanager
    async def opened(self, *, checkpoints: bool = True, **plan: Any) -> AsyncGenerator[ReceiptStore]:
        async with open_store(
            self.receipts,
            self.key,
            clock=now_us,
            nonce=lambda: secrets.token_hex(16),
            checkpoints=self.plan(**plan) if checkpoints else None,
        ) as store:
            yield store

    def append(self, count: int, *, checkpoints: bool = True, answer: Answer | None = None) -> list[Stored]:
        """Open the store, append, and stop cleanly, which makes a checkpoint."""

        async def write() -> list[Stored]:
            async with self.opened(checkpoints=checkpoints) as store:
                return [await store.append(make_payload(self.key, answer)) for _ in range(count)]

        return anyio.run(write)

    def rotate(self) -> Rotated:
        return rotate_key(self.receipts, self.key_path, self.pins, clock=now_us, nonce=lambda: secrets.token_hex(16))

    def run(self, *arguments: str | Path) -> Ended:
        """`search-router receipts …` on this state directory, in this process."""
        environ = {"SEARCH_ROUTER_HOME": str(self.home), "SEARCH_ROUTER_KEY": ""}
        with contextlib.chdir(self.home):  # where there is no project file
            ended = CliRunner().invoke(main, ["receipts", *map(str, arguments)], env=environ)
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        return Ended(ended.exit_code, ended.stdout, ended.stderr)


def client_line(stored: Stored, answer: Answer | None = None) -> dict[str, Any]:
    """What a client got: the answer of the samples with its receipt."""
    answer = answer or make_answer(1)
    receipt = {"id": stored.id, "seq": stored.seq, "log": stored.log, "keyid": stored.keyid, "envelope": stored.envelope_dict()}
    return answer.model_dump(mode="json", by_alias=True, exclude={"receipt"}) | {"receipt": receipt}


def write_client_log(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def log_of(state: StateDirectory, stored: Stored) -> Path:
    return log_path(state.receipts, stored.log)
