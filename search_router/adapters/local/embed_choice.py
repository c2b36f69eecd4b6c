"""From configuration to an embedder that is loaded. The default, `lsa`, is not here: it is made of each project (see vector_basis)."""

from __future__ import annotations

from search_router.adapters.local.embed_packages import Model2VecEmbedder, SentenceTransformersEmbedder, WordLlamaEmbedder
from search_router.adapters.local.embed_protocol import Embedder
from search_router.adapters.local.embed_remote import SERVERS
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass


def load_embedder(settings: VectorsConfig) -> Embedder:
    """The configured embedder. Blocks while its package and its model are loaded.

    Raises:
        ExpertError: `unconfigured`: a package, a folder, an address or a permission is missing; it says which, and what to do.
    """
    match settings.embedder:
        case "wordllama":
            return WordLlamaEmbedder()
        case "model2vec":
            return Model2VecEmbedder(settings.model)
        case "sentence-transformers":
            return SentenceTransformersEmbedder(settings.model, batch=settings.batch)
        case "openai" | "voyage" | "ollama" | "tei":
            return SERVERS[settings.embedder](settings)
        case "lsa" | "none":
            raise ExpertError(FailureClass.UNCONFIGURED, "No embedder is configured.", remedy="Set vectors.embedder.")
