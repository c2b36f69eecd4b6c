"""Fills a milvus-lite database, in a process of its own: `python milvus_filler.py DATABASE` with a JSON document on standard input.

{"dimensions": 16, "rows": [{"vector": [...], "text": "...", "path": "...", ...}], "hold": false}; with `hold` it keeps the database open
until its input ends, and says when it has it.
"""

# What the extra `milvus` brings is not in every environment.
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import sys
from typing import Any

from pymilvus import DataType, Function, FunctionType, MilvusClient

COLUMNS = ("path", "repo", "language", "hash")


def fill(client: MilvusClient, dimensions: int, rows: list[dict[str, Any]]) -> None:
    schema: Any = client.create_schema(auto_id=True)
    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimensions)
    schema.add_field("text", DataType.VARCHAR, max_length=20_000, enable_analyzer=True)
    schema.add_field("sparse", DataType.SPARSE_FLOAT_VECTOR)
    for name in COLUMNS:
        schema.add_field(name, DataType.VARCHAR, max_length=1000)
    for name in ("first", "last"):
        schema.add_field(name, DataType.INT64)
    words = Function(name="bm25", input_field_names=["text"], output_field_names=["sparse"], function_type=FunctionType.BM25)
    schema.add_function(words)
    indexes: Any = client.prepare_index_params()
    indexes.add_index("vector", index_type="FLAT", metric_type="COSINE")
    indexes.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25")
    client.create_collection("code", schema=schema, index_params=indexes)
    client.insert("code", rows)


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    client = MilvusClient(sys.argv[1])
    if asked["rows"]:
        fill(client, asked["dimensions"], asked["rows"])
    if asked["hold"]:
        print("held", flush=True)
        sys.stdin.read()
    client.close()


if __name__ == "__main__":
    main()
