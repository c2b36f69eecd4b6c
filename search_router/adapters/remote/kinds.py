"""The kinds of remote experts, by their configuration."""

from __future__ import annotations

from search_router.adapters.remote.command import CommandAsker
from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.http_json import HttpJsonAsker
from search_router.adapters.remote.mcp import McpAsker
from search_router.config.remote import CommandConfig, HttpJsonConfig, McpConfig


def make_remote_expert(expert_id: str, config: McpConfig | CommandConfig | HttpJsonConfig) -> RemoteExpert:
    """The expert of a block. Nothing is started, connected or imported for it yet."""
    match config:
        case McpConfig():
            return RemoteExpert(expert_id, config, config.kind, McpAsker(config))
        case CommandConfig():
            return RemoteExpert(expert_id, config, config.kind, CommandAsker(config))
        case HttpJsonConfig():
            return RemoteExpert(expert_id, config, config.kind, HttpJsonAsker(config))
