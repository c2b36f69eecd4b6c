"""Embedders behind HTTP, against a local server in the documented forms (see embedding_server); no real product is asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from search_router.adapters.local.embed_protocol import embedder_key
from search_router.adapters.local.embed_remote import RETRIES, SERVERS, HttpEmbedder
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass
from tests.adapters.local.embedding_server import DIMENSIONS, EmbeddingServer, embedding_server, vector_of

KEY = "sk-very-secret-0123456789"
VARIABLE = "SEARCH_ROUTER_TEST_EMBEDDING_KEY"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture
def key() -> Iterator[str]:
    os.environ[VARIABLE] = KEY
    yield VARIABLE
    del os.environ[VARIABLE]


def settings_for(name: str, **more: object) -> VectorsConfig:
    base = {"embedder": name, "model": "m", "dimensions": DIMENSIONS, "allow_remote": True, "timeout_ms": 2000}
    return VectorsConfig.model_validate(base | more)


@contextmanager
def opened(name: str, server: EmbeddingServer, **more: object) -> Iterator[HttpEmbedder]:
    url = server.url + ("/v1" if name in ("openai", "voyage") else "")
    embedder = SERVERS[name](settings_for(name, url=url, **more))
    try:
        yield embedder
    finally:
        embedder.close()


def failure_of(embedder: HttpEmbedder) -> ExpertError:
    with pytest.raises(ExpertError) as caught:
        embedder.embed_query("where is it")
    assert KEY not in f"{caught.value} {caught.value.detail}" and "secret-in-body" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_every_form_gives_the_vectors_in_the_order_of_the_texts(server: EmbeddingServer, name: str) -> None:
    with opened(name, server, batch=2) as embedder:
        found = embedder.embed_documents(["parse the token", "open a socket", "", "close it", "jar"])
        assert found.shape == (5, DIMENSIONS) and found.dtype == np.float32
        assert np.allclose(found[1], vector_of("open a socket"), atol=1e-5)
        assert np.allclose(embedder.embed_query("jar"), vector_of("jar"), atol=1e-5)
        assert embedder.embed_documents([]).shape == (0, DIMENSIONS)
        assert not embedder.local
    assert [len(body.get("input", body.get("inputs", []))) for _, body, _ in server.requests] == [2, 2, 1, 1]
    assert all("authorization" not in headers for _, _, headers in server.requests)


def test_voyage_is_told_what_is_a_question(server: EmbeddingServer) -> None:
    with opened("voyage", server) as embedder:
        embedder.embed_documents(["a"])
        embedder.embed_query("b")
    assert [body["input_type"] for _, body, _ in server.requests] == ["document", "query"]


def test_the_key_comes_from_the_named_variable_and_is_in_no_error(server: EmbeddingServer, key: str) -> None:
    with opened("openai", server, api_key_env=key) as embedder:
        embedder.embed_query("a")
        assert server.requests[0][2]["authorization"] == f"Bearer {KEY}"
        server.script = [401]
        refused = failure_of(embedder)
        assert refused.failure is FailureClass.UNCONFIGURED and key in str(refused)
    with opened("openai", server, api_key_env="SEARCH_ROUTER_TEST_NO_SUCH_KEY") as embedder:
        assert failure_of(embedder).failure is FailureClass.UNCONFIGURED


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again_a_bounded_number_of_times(server: EmbeddingServer, status: int) -> None:
    with opened("ollama", server) as embedder:
        server.script = [status, status]
        assert embedder.embed_query("jar").shape == (DIMENSIONS,)
        assert len(server.requests) == 3
        server.script = [status] * 20
        assert failure_of(embedder).failure is FailureClass.BUSY
        assert len(server.requests) == 3 + 1 + RETRIES


@pytest.mark.parametrize("status", [400, 404, 500, 302])
def test_any_other_refusal_is_final(server: EmbeddingServer, status: int) -> None:
    with opened("tei", server) as embedder:
        server.script = [status] * 5
        assert failure_of(embedder).failure is FailureClass.UNAVAILABLE
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"no json",
        b"{}",
        b'{"embeddings": 7}',
        b'{"embeddings": [["x"]]}',
        b'{"embeddings": [[1, 2]]}',
        b'{"embeddings": []}',
        b"[" * 100_000,
    ],
    ids=lambda a: repr(a[:20]),
)
def test_an_answer_of_another_form_is_a_protocol_error(server: EmbeddingServer, answer: bytes) -> None:
    with opened("ollama", server) as embedder:
        server.script = [answer]
        assert failure_of(embedder).failure is FailureClass.PROTOCOL_ERROR


def test_another_length_of_vectors_is_an_error_that_says_both(server: EmbeddingServer) -> None:
    server.dimensions = 8
    with opened("tei", server) as embedder:
        assert "1x8 numbers instead of 1x16" in str(failure_of(embedder))


def test_numbers_that_are_not_finite_are_an_error(server: EmbeddingServer) -> None:
    with opened("tei", server) as embedder:
        server.script = [b"[[" + b",".join([b"NaN"] * DIMENSIONS) + b"]]"]
        assert failure_of(embedder).failure is FailureClass.PROTOCOL_ERROR


def test_an_endless_answer_is_cut_off(server: EmbeddingServer) -> None:
    with opened("tei", server) as embedder:
        server.script = [b" " * (3 << 20)]
        assert "more than" in str(failure_of(embedder))


def test_nobody_there_is_unavailable_and_a_closed_embedder_asks_nobody(server: EmbeddingServer) -> None:
    gone = SERVERS["ollama"](settings_for("ollama", url="http://127.0.0.1:9"))
    assert failure_of(gone).failure is FailureClass.UNAVAILABLE
    gone.close()
    with opened("ollama", server) as embedder:
        embedder.close()
        assert failure_of(embedder).failure is FailureClass.UNAVAILABLE
    assert server.requests == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"allow_remote": False}, "allow_remote"),
        ({"url": ""}, "vectors.url"),
        ({"url": "file:///etc/passwd"}, "vectors.url"),
        ({"url": "http://me:secret@127.0.0.1"}, "credentials in vectors.url"),
        ({"url": "http://example.org", "api_key_env": "K"}, "unencrypted"),
        ({"dimensions": 0}, "vectors.dimensions"),
        ({"model": ""}, "vectors.model"),
    ],
)
def test_what_is_not_allowed_or_cannot_work_is_refused_before_anything_is_sent(more: dict[str, object], said: str) -> None:
    with pytest.raises(ExpertError) as caught:
        SERVERS["openai"](settings_for("openai", **({"url": "http://127.0.0.1:9"} | more)))
    assert caught.value.failure is FailureClass.UNCONFIGURED
    assert said in str(caught.value) and "secret" not in str(caught.value)


def test_model_and_server_are_in_the_name_of_the_vectors(server: EmbeddingServer) -> None:
    with opened("ollama", server) as one, opened("ollama", server, model="n") as other, opened("tei", server) as third:
        assert len({embedder_key(one), embedder_key(other), embedder_key(third)}) == 3
