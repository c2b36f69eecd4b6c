"""An MCP server over stdio that finds what `_meta` its call carried: `python -I -S echo_server.py`. Standard library only."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]}
        case _:
            carried = json.dumps(message["params"].get("_meta"), sort_keys=True)
            found = {"items": [{"path": "src/app.py", "start": 4, "end": 6, "symbol": carried}]}
            result = {"content": [{"type": "text", "text": json.dumps(found)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
