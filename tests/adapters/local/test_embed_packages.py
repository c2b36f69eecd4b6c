"""Embedders that are packages: what is missing is said with the line that installs it; those that are installed here are really run."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.embed_choice import load_embedder
from search_router.adapters.local.embed_protocol import unit_rows
from search_router.adapters.local.embed_text import MAX_CHARACTERS, chunk_texts, path_text, split_words
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass

PACKAGES = {"wordllama": "wordllama", "model2vec": "model2vec", "sentence-transformers": "sentence_transformers"}


def settings_for(name: str, model: Path) -> VectorsConfig:
    return VectorsConfig.model_validate({"embedder": name, "model": str(model)})


def is_missing(name: str) -> bool:
    return importlib.util.find_spec(PACKAGES[name]) is None


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_missing_package_is_unconfigured_with_the_line_that_installs_it(tmp_path: Path, name: str) -> None:
    if not is_missing(name):
        pytest.skip(f"{name} is installed")
    with pytest.raises(ExpertError) as caught:
        load_embedder(settings_for(name, tmp_path))
    assert caught.value.failure is FailureClass.UNCONFIGURED
    assert "pip install" in str(caught.value) and name in str(caught.value)


@pytest.mark.parametrize("name", ["model2vec", "sentence-transformers"])
def test_a_model_is_a_folder_and_is_never_downloaded(name: str) -> None:
    with pytest.raises(ExpertError) as caught:
        load_embedder(settings_for(name, Path("minishlab/potion-base-8M")))
    assert caught.value.failure is FailureClass.UNCONFIGURED and "vectors.model" in str(caught.value)


def test_without_an_embedder_none_is_loaded() -> None:
    with pytest.raises(ExpertError, match="No embedder"):
        load_embedder(VectorsConfig(embedder="none"))


@pytest.mark.skipif(is_missing("wordllama"), reason="wordllama is not installed")
def test_wordllama_runs_offline_from_its_wheel() -> None:
    embedder = load_embedder(VectorsConfig(embedder="wordllama"))
    rows = unit_rows(embedder.embed_documents(["parseJsonDocument(text)", "openNetworkSocket(host)", ""]))
    query = unit_rows(embedder.embed_query("how is JSON parsed"))
    assert rows.shape == (3, embedder.dimensions) and embedder.local
    assert rows[0] @ query > rows[1] @ query + 0.1


@pytest.mark.skipif(is_missing("model2vec"), reason="model2vec is not installed")
def test_a_model2vec_folder_is_loaded(tmp_path: Path) -> None:
    from model2vec import StaticModel  # pyright: ignore[reportMissingImports] - an extra
    from tokenizers import Tokenizer, models, pre_tokenizers  # pyright: ignore[reportMissingImports] - an extra

    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1, "cookie": 2, "jar": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    StaticModel(np.eye(4, 8, dtype=np.float32), tokenizer).save_pretrained(str(tmp_path / "model"))
    embedder = load_embedder(settings_for("model2vec", tmp_path / "model"))
    cookie, jar = embedder.embed_documents(["cookie", "cookieJar"])
    assert embedder.dimensions == 8 and len(embedder.version) == 64
    assert unit_rows(cookie) @ unit_rows(jar) == pytest.approx(0.5**0.5, abs=1e-3)
    (tmp_path / "model" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ExpertError) as caught:
        load_embedder(settings_for("model2vec", tmp_path / "model"))
    assert caught.value.failure is FailureClass.UNCONFIGURED


def test_texts_of_chunks_and_paths() -> None:
    text = "a\nb\nc\n" + "x" * 3000 + "\n"
    assert chunk_texts(text, [Chunk(1, 2), Chunk(3, 4)]) == ["a\nb", "c\n" + "x" * 2000]
    assert len(chunk_texts("y" * 1999 + "\n" + "z\n" * 9000, [Chunk(1, 9001)])[0]) == MAX_CHARACTERS
    assert [path_text(path) for path in ("src/net.py", "Makefile", ".env")] == ["src/net", "Makefile", ".env"]
    assert split_words("getCookieJar(session_id, " + "q" * 200 + ")") == "get cookie jar session id"
