"""Start-up is a feature: hosts give a server ten seconds."""

import subprocess
import sys

from tests.server_child import ROOT, child_env

REPORT = """
import sys, mcp.server
before = {name.split('.')[0] for name in sys.modules}
import search_router.server
print(*sorted({name.split('.')[0] for name in sys.modules} - before - set(sys.stdlib_module_names)))
"""


def test_the_front_door_imports_no_package_that_the_sdk_does_not() -> None:
    done = subprocess.run([sys.executable, "-c", REPORT], cwd=ROOT, env=child_env(), capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["search_router"]


REPORT_START = """
import sys
import search_router.cli, search_router.start
print(*sorted({name.split('.')[0] for name in sys.modules} & {'mcp', 'mcp_types', 'rich', 'uvicorn', 'httpx2', 'starlette'}))
"""


def test_a_server_starts_opening_its_router_before_the_sdk_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", REPORT_START], cwd=ROOT, env=child_env(), capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == []
