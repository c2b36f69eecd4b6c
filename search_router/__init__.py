"""search-router: one question to many code-search experts, fused evidence, one signed receipt."""

__version__ = "0.1.0"
