"""search-router: one question to many code-search experts, fused evidence, one signed receipt.

import search_router

async with search_router.open_router(roots=["."]) as router:
    answer = await router.search({"question": "where are receipts signed"})
    for item in answer.evidence:
        print(item.id, item.tier, item.nuance)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from search_router.router.opening import open_router
    from search_router.router.service import Router
    from search_router.schema import Answer, SearchRequest

__version__ = "0.1.0"
__all__ = ["Answer", "Router", "SearchRequest", "__version__", "open_router"]

_HOMES = {
    "Answer": "search_router.schema",
    "Router": "search_router.router.service",
    "SearchRequest": "search_router.schema",
    "open_router": "search_router.router.opening",
}


def __getattr__(name: str) -> Any:
    """Load the public names on first use, so that `import search_router` costs nothing."""
    import importlib

    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
