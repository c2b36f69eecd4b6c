"""The tutorial's block is the one that the real run uses, and a sound configuration."""

from __future__ import annotations

import re
from pathlib import Path

from search_router.config.loader import load_config
from tests.systems.recipes import SYMGREP

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial-your-own-expert.md"


def test_the_tutorials_block_is_sound_and_the_one_that_the_real_run_uses(tmp_path: Path) -> None:
    found = re.search(r"<!-- block -->\n```toml\n(.*?)```", TUTORIAL.read_text("utf-8"), re.S)
    assert found is not None
    assert found[1].startswith(SYMGREP.strip())
    user = tmp_path / "user.toml"
    user.write_text(found[1])
    environ = {"SEARCH_ROUTER_HOME": str(tmp_path), "SEARCH_ROUTER_CONFIG": str(user)}
    assert load_config(roots=[tmp_path], environ=environ).config.experts["symgrep"].kind == "mcp"
