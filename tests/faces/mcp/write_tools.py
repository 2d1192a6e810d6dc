"""Write tools.json, the tools as clients see them; run it with PYTHONPATH=$PWD."""

import json
from pathlib import Path

import anyio
from mcp.client.client import Client

from pexeso.faces.mcp.server import make_server
from pexeso.faces.mcp.tool_call import Desk
from pexeso.faces.service.verbs import ServedIndex

FILE = Path(__file__).parent / "tools.json"


def tools_text() -> str:
    """Return the tools of a server that may write, and what it tells clients, as JSON."""

    async def ask():
        async with Client(
            make_server(Desk(ServedIndex("lake.pexeso"), allow_write=Path("joined")))
        ) as client:
            return client.instructions, await client.list_tools()

    instructions, listed = anyio.run(ask)
    tools = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools
    ]
    document = {"instructions": instructions, "tools": tools}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(tools_text(), encoding="utf-8")
