"""What makes vectors of text: the section `vectors`, and the same settings in the block of an expert that has an embedder of its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from search_router.config.section import Section


class VectorsConfig(Section):
    """What makes vectors of text. Only the packaged, user, environment and flag layers may set it: some of them send source text away."""

    embedder: Literal["lsa", "wordllama", "model2vec", "sentence-transformers", "openai", "ollama", "tei", "voyage", "none"]
    """`lsa` is made of the code itself; `none` switches vectors off."""
    model: str = ""
    """A folder (model2vec, sentence-transformers), or the name by which a server knows the model."""
    url: str = ""
    """Of a server, such as http://127.0.0.1:11434; for openai and voyage up to and with /v1."""
    api_key_env: str = Field(default="", pattern=r"^[A-Z_][A-Z0-9_]*$|^$")
    """Name of the environment variable that holds the server's key. Never the key."""
    dimensions: int = Field(default=0, ge=0, le=16_384)
    """Length of a server's vectors; another length is an error."""
    batch: int = Field(default=64, ge=1, le=2048)
    """Texts in one request."""
    timeout_ms: int = Field(default=20_000, ge=100, le=120_000)
    """For one request to a server."""
    allow_remote: bool = False
    """Whether source text and questions may be sent to a server at all."""
