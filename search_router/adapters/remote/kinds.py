"""The kinds of remote experts, by their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from search_router.adapters.remote.command import CommandAsker, ask_command
from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.http_json import HttpJsonAsker
from search_router.adapters.remote.index_state import AskState, IndexProbe
from search_router.adapters.remote.mcp import McpAsker
from search_router.adapters.remote.milvus import MilvusAsker
from search_router.adapters.remote.session import ServerPool
from search_router.config.remote import AnyRemoteConfig, CommandConfig, HttpJsonConfig, McpConfig, MilvusConfig, RemoteConfig
from search_router.config.vectors import VectorsConfig


def make_remote_experts(blocks: Mapping[str, AnyRemoteConfig], vectors: VectorsConfig | None = None) -> dict[str, RemoteExpert]:
    """The experts of these blocks, which share servers where their commands are the same. `vectors` is the section of that name."""
    pool = ServerPool()
    return {name: make_remote_expert(name, config, pool, vectors) for name, config in blocks.items()}


def make_remote_expert(expert_id: str, config: AnyRemoteConfig, pool: ServerPool, vectors: VectorsConfig | None = None) -> RemoteExpert:
    """The expert of a block. Nothing is started or connected for it yet."""
    match config:
        case McpConfig():
            asker = McpAsker(config, pool)
            return RemoteExpert(expert_id, config, config.kind, asker, _probe_of(config, asker.ask_about_index, config.env))
        case CommandConfig():
            return RemoteExpert(expert_id, config, config.kind, CommandAsker(config), _probe_of(config, None, config.env))
        case HttpJsonConfig():
            return RemoteExpert(expert_id, config, config.kind, HttpJsonAsker(config), _probe_of(config, None, {}))
        case MilvusConfig():
            return RemoteExpert(expert_id, config, config.kind, MilvusAsker(config, pool, vectors), _probe_of(config, None, {}))


def _probe_of(config: RemoteConfig, tool: AskState | None, env: Mapping[str, str]) -> IndexProbe | None:
    """What asks about the expert's index, if anything does: a tool of its own server, or a command with the block's environment."""
    probe = config.freshness_probe
    if probe is None:
        return None
    return IndexProbe(probe, tool if probe.tool and tool is not None else partial(ask_command, config, env))
