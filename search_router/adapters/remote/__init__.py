"""Experts that are other systems: over MCP, as a command, or over HTTP. Everything about one system is configuration."""
