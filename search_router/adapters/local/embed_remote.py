"""Embedders that are HTTP servers: OpenAI's form, Ollama, Text Embeddings Inference, Voyage. Source text leaves this process.

Therefore none is used unless the configuration allows it, and every answer that had a part in it says where text was sent. A key is
read from the environment variable whose name is configured, when a request is made, and is in no error.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import numpy as np

from search_router.adapters.json_service import is_loopback
from search_router.adapters.local.embed_packages import check_vectors
from search_router.adapters.local.embed_protocol import Floats
from search_router.adapters.local.embed_text import PLAIN
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass

RETRIES: Final = 3
"""After 429 and 503, and after nothing else."""
MAX_WAIT_SECONDS: Final = 10.0
FIRST_WAIT_SECONDS: Final = 0.5
_RETRIED = frozenset({429, 503})
_REFUSED = frozenset({401, 403})
_BYTES_A_NUMBER = 40
_SPARE_BYTES = 1 << 20

Kind = Literal["document", "query"]
Body = dict[str, Any]


class HttpEmbedder:
    """One server and one model. Subclasses know the form of its requests and answers."""

    name: str = ""
    path: str = ""
    preprocessing = PLAIN
    local = False

    def __init__(self, settings: VectorsConfig) -> None:
        _check_settings(self.name, settings)
        import httpx2  # 60 ms; only who configures a server pays them

        self._http = httpx2
        self._settings = settings
        self.address = _address(settings.url)
        self.version = f"{settings.model}@{settings.url}"
        self.dimensions = settings.dimensions
        self._closed = threading.Event()
        self._client = httpx2.Client(timeout=settings.timeout_ms / 1000)

    def body(self, texts: Sequence[str], kind: Kind) -> Body:
        """The request for these texts."""
        raise NotImplementedError

    def rows(self, answer: Any) -> Any:
        """The vectors in an answer, in the order of the texts; KeyError, TypeError or ValueError for any other form."""
        raise NotImplementedError

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        batch = self._settings.batch
        parts = [self._embed(texts[first : first + batch], "document") for first in range(0, len(texts), batch)]
        return np.concatenate([np.zeros((0, self.dimensions), np.float32), *parts])

    def embed_query(self, text: str) -> Floats:
        return self._embed([text], "query")[0]

    def close(self) -> None:
        """End waits between retries, and the connections."""
        self._closed.set()
        self._client.close()

    def _embed(self, texts: Sequence[str], kind: Kind) -> Floats:
        sent = [text or " " for text in texts]  # servers refuse empty strings
        answer = self._ask(self.body(sent, kind), len(sent))
        try:
            found = np.asarray(self.rows(json.loads(answer)), np.float32)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise self._failure(FailureClass.PROTOCOL_ERROR, f"gave an answer of another form ({type(error).__name__})") from error
        return check_vectors(found, len(sent), self.dimensions, self.name)

    def _ask(self, body: Body, count: int) -> bytes:
        """The bytes of a good answer. 429 and 503 are asked again, a bounded number of times."""
        for attempt in range(RETRIES + 1):
            status, answer, wait = self._post(body, count)
            if status == 200:
                return answer
            if status in _REFUSED:
                named = f"vectors.api_key_env ({self._settings.api_key_env})" if self._settings.api_key_env else "vectors.api_key_env"
                raise self._failure(FailureClass.UNCONFIGURED, f"refused the credentials (HTTP {status})", f"Check {named}.")
            if status not in _RETRIED:
                raise self._failure(FailureClass.UNAVAILABLE, f"answered HTTP {status}", "Check vectors.url and vectors.model.")
            pause = min(MAX_WAIT_SECONDS, wait if wait is not None else FIRST_WAIT_SECONDS * 2**attempt)
            if attempt == RETRIES or self._closed.wait(pause):
                break
        raise self._failure(FailureClass.BUSY, f"is busy (HTTP 429 or 503, asked {RETRIES + 1} times)", "Ask again later.")

    def _post(self, body: Body, count: int) -> tuple[int, bytes, float | None]:
        """(status, body of a 200, seconds that the server asks to wait)."""
        most = count * self.dimensions * _BYTES_A_NUMBER + _SPARE_BYTES
        answer = bytearray()
        until = time.monotonic() + self._settings.timeout_ms / 1000  # the client's own limit is one between two pieces
        url = f"{self._settings.url.rstrip('/')}{self.path}"
        try:
            with self._client.stream("POST", url, json=body, headers=self._headers()) as response:
                if response.status_code == 200:
                    for part in response.iter_bytes():
                        answer += part
                        if len(answer) > most:
                            raise self._failure(FailureClass.PROTOCOL_ERROR, f"gave more than {most} bytes for {count} texts")
                        if time.monotonic() > until or self._closed.is_set():
                            raise self._failure(FailureClass.TIMEOUT, f"did not answer in {self._settings.timeout_ms} ms")
                return response.status_code, bytes(answer), _seconds(response.headers.get("retry-after"))
        except self._http.TimeoutException as error:
            raise self._failure(FailureClass.TIMEOUT, f"did not answer in {self._settings.timeout_ms} ms") from error
        except (self._http.HTTPError, RuntimeError) as error:  # RuntimeError: closed meanwhile
            raise self._failure(FailureClass.UNAVAILABLE, f"cannot be reached ({type(error).__name__})", "Check vectors.url.") from error

    def _headers(self) -> dict[str, str]:
        variable = self._settings.api_key_env
        if not variable:
            return {}
        value = os.environ.get(variable, "")
        if not value.isascii() or not value.isprintable() or not value:
            raise self._failure(FailureClass.UNCONFIGURED, f"needs a key, and the variable {variable} holds none", f"Set {variable}.")
        return {"Authorization": f"Bearer {value}"}

    def _failure(self, failure: FailureClass, what: str, remedy: str = "") -> ExpertError:
        return ExpertError(failure, f"The embedder {self.name} at {self.address} {what}.", remedy=remedy)


class OpenAiEmbedder(HttpEmbedder):
    """POST /embeddings, as OpenAI's API reference has it and many servers copy it; `url` ends in /v1."""

    name = "openai"
    path = "/embeddings"

    def body(self, texts: Sequence[str], kind: Kind) -> Body:
        return {"model": self._settings.model, "input": list(texts), "encoding_format": "float"}

    def rows(self, answer: Any) -> Any:
        return _by_index(answer["data"])


class VoyageEmbedder(HttpEmbedder):
    """POST /embeddings of Voyage AI: it is told whether a text is a document or a question; `url` ends in /v1."""

    name = "voyage"
    path = "/embeddings"

    def body(self, texts: Sequence[str], kind: Kind) -> Body:
        return {"model": self._settings.model, "input": list(texts), "input_type": kind, "truncation": True}

    def rows(self, answer: Any) -> Any:
        return _by_index(answer["data"])


class OllamaEmbedder(HttpEmbedder):
    """POST /api/embed of Ollama."""

    name = "ollama"
    path = "/api/embed"

    def body(self, texts: Sequence[str], kind: Kind) -> Body:
        return {"model": self._settings.model, "input": list(texts), "truncate": True}

    def rows(self, answer: Any) -> Any:
        return answer["embeddings"]


class TeiEmbedder(HttpEmbedder):
    """POST /embed of Hugging Face's Text Embeddings Inference, which serves one model."""

    name = "tei"
    path = "/embed"

    def body(self, texts: Sequence[str], kind: Kind) -> Body:
        return {"inputs": list(texts), "truncate": True, "normalize": True}

    def rows(self, answer: Any) -> Any:
        if not isinstance(answer, list):
            raise TypeError("no list")
        return cast("list[Any]", answer)


SERVERS: Final = {each.name: each for each in (OpenAiEmbedder, VoyageEmbedder, OllamaEmbedder, TeiEmbedder)}


def _by_index(data: list[Body]) -> list[Any]:
    if sorted(each["index"] for each in data) != list(range(len(data))):
        raise ValueError("the indexes are not 0 to n - 1")
    return [each["embedding"] for each in sorted(data, key=lambda each: each["index"])]


def _check_settings(name: str, settings: VectorsConfig) -> None:
    """Raise ExpertError `unconfigured` for what would send text unasked, send a key in the clear, or could not work."""
    parts = urlsplit(settings.url)
    problem = ""
    if not settings.allow_remote:
        problem = "sends source text to a server, which vectors.allow_remote does not allow"
    elif parts.scheme not in ("http", "https") or not parts.hostname:
        problem = "needs vectors.url, beginning with http:// or https://"
    elif parts.username or parts.password:
        problem = "has credentials in vectors.url; name a variable in vectors.api_key_env instead"
    elif parts.scheme == "http" and settings.api_key_env and not is_loopback(parts.hostname):
        problem = "would send its key unencrypted; use https"
    elif not settings.dimensions:
        problem = "needs vectors.dimensions, the length of the model's vectors"
    elif not settings.model and name != "tei":
        problem = "needs vectors.model"
    if problem:
        raise ExpertError(FailureClass.UNCONFIGURED, f"The embedder {name} {problem}.", remedy="Set it in the user's configuration file.")


def _address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")


def _seconds(header: str | None) -> float | None:
    """Seconds of a Retry-After header; None for a date or anything else."""
    return float(header) if header is not None and header.isascii() and header.isdecimal() and len(header) < 9 else None
