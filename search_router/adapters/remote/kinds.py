"""The kinds of remote experts, by their configuration."""

from __future__ import annotations

from collections.abc import Mapping

from search_router.adapters.remote.command import CommandAsker
from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.http_json import HttpJsonAsker
from search_router.adapters.remote.mcp import McpAsker
from search_router.adapters.remote.milvus import MilvusAsker
from search_router.adapters.remote.session import ServerPool
from search_router.config.remote import AnyRemoteConfig, CommandConfig, HttpJsonConfig, McpConfig, MilvusConfig
from search_router.config.vectors import VectorsConfig


def make_remote_experts(blocks: Mapping[str, AnyRemoteConfig], vectors: VectorsConfig | None = None) -> dict[str, RemoteExpert]:
    """The experts of these blocks, which share servers where their commands are the same. `vectors` is the section of that name."""
    pool = ServerPool()
    return {name: make_remote_expert(name, config, pool, vectors) for name, config in blocks.items()}


def make_remote_expert(expert_id: str, config: AnyRemoteConfig, pool: ServerPool, vectors: VectorsConfig | None = None) -> RemoteExpert:
    """The expert of a block. Nothing is started or connected for it yet."""
    match config:
        case McpConfig():
            return RemoteExpert(expert_id, config, config.kind, McpAsker(config, pool))
        case CommandConfig():
            return RemoteExpert(expert_id, config, config.kind, CommandAsker(config))
        case HttpJsonConfig():
            return RemoteExpert(expert_id, config, config.kind, HttpJsonAsker(config))
        case MilvusConfig():
            return RemoteExpert(expert_id, config, config.kind, MilvusAsker(config, pool, vectors))
