"""A server with the conformance suite's fixtures behind the router's own HTTP door: `python -m tests.conformance_server [--port N]`.

The fixtures exercise what the router does not offer (prompts, sampling, elicitation, subscriptions, resumption), so that the guards,
the transport settings and uvicorn are tested with every message of the protocol and an empty baseline.
"""

from __future__ import annotations

import argparse
import base64
import struct
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from search_router.config.schema import HttpConfig
from search_router.mcp_http import mount_server
from search_router.mcp_listener import bind, listen

Context = ServerRequestContext[Any, Any]
Result = types.CallToolResult | types.InputRequiredResult
Handler = Callable[[Context, types.CallToolRequestParams], Awaitable[Result]]
STEP_SECONDS = 0.05


def png() -> str:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")).decode()


def wav() -> str:
    """Eight silent samples."""
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    data = struct.pack("<4sI", b"data", 8) + b"\x80" * 8
    return base64.b64encode(struct.pack("<4sI4s", b"RIFF", 4 + len(fmt) + len(data), b"WAVE") + fmt + data).decode()


TEXT = types.TextContent(text="This is a simple text response for testing.")
IMAGE = types.ImageContent(data=png(), mime_type="image/png")
AUDIO = types.AudioContent(data=wav(), mime_type="audio/wav")


def embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


def constant(*content: types.ContentBlock, is_error: bool = False) -> Handler:
    async def handle(context: Context, params: types.CallToolRequestParams) -> Result:
        return types.CallToolResult(content=list(content), is_error=is_error)

    return handle


def form(message: str, **properties: Any) -> types.ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(text: str, tokens: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=tokens))


NAME_FORM = form("What is your name?", name={"type": "string"})
CONFIRM_FORM = form("Please confirm", ok={"type": "boolean"})


# ---------------------------------------------------------------- tools that talk while they run


async def log_thrice(context: Context, params: types.CallToolRequestParams) -> Result:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", text, related_request_id=context.request_id)
        await anyio.sleep(STEP_SECONDS)
    return said("logged")


async def report_progress(context: Context, params: types.CallToolRequestParams) -> Result:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await anyio.sleep(STEP_SECONDS)
    return said("done")


async def sample(context: Context, params: types.CallToolRequestParams) -> Result:
    prompt = str((params.arguments or {}).get("prompt", ""))
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    answer = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return said(f"LLM response: {answer.content}")


def eliciting(message: str, label: str, schema: dict[str, Any]) -> Handler:
    async def handle(context: Context, params: types.CallToolRequestParams) -> Result:
        text = str((params.arguments or {}).get("message", message))
        answer = await context.session.elicit_form(text, schema, related_request_id=context.request_id)
        return said(f"{label}: action={answer.action}, content={answer.content}")

    return handle


USER_SCHEMA = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]
OPTIONS = ["option1", "option2", "option3"]
ENUMS_SCHEMA = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}


async def drop_stream(context: Context, params: types.CallToolRequestParams) -> Result:
    """Closes the answer's stream in mid call; the client comes back for the rest."""
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await anyio.sleep(STEP_SECONDS)
    return said("resumed")


async def need_sampling(context: Context, params: types.CallToolRequestParams) -> Result:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise MCPError(
            code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This tool needs the sampling capability.",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return said("sampling is there")


# ---------------------------------------------------------------- multi-round tools (2026-07-28)


def asking(requests: dict[str, types.InputRequest], *, state: str | None = None, text: str = "state-ok") -> Handler:
    """Asks for `requests` until all of them are answered."""

    async def handle(context: Context, params: types.CallToolRequestParams) -> Result:
        answers = params.input_responses or {}
        if requests.keys() <= answers.keys() and params.request_state == state:
            return said(f"{text}: {', '.join(str(answers[name]) for name in requests)}")
        return types.InputRequiredResult(input_requests=requests, request_state=state)

    return handle


async def ask_in_rounds(context: Context, params: types.CallToolRequestParams) -> Result:
    answers = params.input_responses or {}
    if params.request_state == "round-2" and "step2" in answers:
        return said(f"All done: {answers['step2']}")
    if params.request_state == "round-1" and "step1" in answers:
        color = form("Step 2: What is your favorite color?", color={"type": "string"})
        return types.InputRequiredResult(input_requests={"step2": color}, request_state="round-2")
    name = form("Step 1: What is your name?", name={"type": "string"})
    return types.InputRequiredResult(input_requests={"step1": name}, request_state="round-1")


async def ask_what_is_declared(context: Context, params: types.CallToolRequestParams) -> Result:
    if params.input_responses:
        return said("thank you")
    declared = context.session.client_capabilities or types.ClientCapabilities()
    requests: dict[str, types.InputRequest] = {}
    if declared.sampling is not None:
        requests["sample"] = sampling("Say something")
    if declared.elicitation is not None:
        requests["ask"] = NAME_FORM
    return types.InputRequiredResult(input_requests=requests) if requests else said("nothing to ask")


# ---------------------------------------------------------------- the server

ADDRESS_TOOL = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def strings(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {k: {"type": "string", **v} for k, v in properties.items()}, "required": list(properties)}


def fixture_tools(bus: InMemorySubscriptionBus) -> dict[str, tuple[dict[str, Any], Handler]]:
    """Name to input schema and handler."""

    async def change_tools(context: Context, params: types.CallToolRequestParams) -> Result:
        await bus.publish(ToolsListChanged())
        return said("changed")

    async def change_prompts(context: Context, params: types.CallToolRequestParams) -> Result:
        await bus.publish(PromptsListChanged())
        return said("changed")

    roots = types.ListRootsRequest(params=types.RequestParams())
    mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    resource = embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    failure = types.TextContent(text="This tool intentionally returns an error for testing")
    several: dict[str, types.InputRequest] = {
        "user_name": NAME_FORM,
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots,
    }
    plain: dict[str, Handler] = {
        "test_simple_text": constant(TEXT),
        "test_image_content": constant(IMAGE),
        "test_audio_content": constant(AUDIO),
        "test_embedded_resource": constant(resource),
        "test_multiple_content_types": constant(types.TextContent(text="Multiple content types test:"), IMAGE, mixed),
        "test_error_handling": constant(failure, is_error=True),
        "test_tool_with_logging": log_thrice,
        "test_logging_tool": log_thrice,
        "test_tool_with_progress": report_progress,
        "test_reconnection": drop_stream,
        "test_missing_capability": need_sampling,
        "test_streaming_elicitation": asking({"user_name": NAME_FORM}),
        "test_elicitation_sep1034_defaults": eliciting("Fill it in", "Elicitation completed", DEFAULTS_SCHEMA),
        "test_elicitation_sep1330_enums": eliciting("Choose", "Elicitation completed", ENUMS_SCHEMA),
        "test_trigger_tool_change": change_tools,
        "test_trigger_prompt_change": change_prompts,
        "test_input_required_result_elicitation": asking({"user_name": NAME_FORM}, text="Hello"),
        "test_input_required_result_sampling": asking({"capital_question": sampling("What is the capital of France?")}),
        "test_input_required_result_list_roots": asking({"client_roots": roots}),
        "test_input_required_result_request_state": asking({"confirm": CONFIRM_FORM}, state="waiting"),
        "test_input_required_result_tampered_state": asking({"confirm": CONFIRM_FORM}, state="sealed"),
        "test_input_required_result_multiple_inputs": asking(several, state="three"),
        "test_input_required_result_multi_round": ask_in_rounds,
        "test_input_required_result_capabilities": ask_what_is_declared,
    }
    return {name: (NO_ARGUMENTS, handler) for name, handler in plain.items()} | {
        "test_sampling": (strings(prompt={}), sample),
        "test_elicitation": (strings(message={}), eliciting("Who are you?", "User response", USER_SCHEMA)),
        "test_x_mcp_header": (strings(region={"x-mcp-header": "Region"}), constant(TEXT)),
        "json_schema_2020_12_tool": (ADDRESS_TOOL, constant(TEXT)),
    }


RESOURCES: dict[str, types.TextResourceContents | types.BlobResourceContents] = {
    "test://static-text": types.TextResourceContents(uri="test://static-text", mime_type="text/plain", text="Static text."),
    "test://static-binary": types.BlobResourceContents(uri="test://static-binary", mime_type="image/png", blob=png()),
    "test://watched-resource": types.TextResourceContents(uri="test://watched-resource", mime_type="text/plain", text="Watched."),
}
PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


async def list_resources(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    listed = [types.Resource(uri=uri, name=uri.removeprefix("test://"), mime_type=item.mime_type) for uri, item in RESOURCES.items()]
    return types.ListResourcesResult(resources=listed)


async def list_templates(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template", mime_type="application/json")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    if item := RESOURCES.get(params.uri):
        return types.ReadResourceResult(contents=[item])
    if params.uri.startswith("test://template/"):
        text = f'{{"id": "{params.uri.split("/")[3]}", "templateTest": true}}'
        found = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[found])
    raise MCPError(code=types.INVALID_PARAMS, message="Resource not found", data={"uri": params.uri})


async def list_prompts(context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    def described(name: str, arguments: tuple[str, ...]) -> types.Prompt:
        listed = [types.PromptArgument(name=a, description=f"The {a}.", required=True) for a in arguments]
        return types.Prompt(name=name, description=f"Fixture {name}.", arguments=listed)

    return types.ListPromptsResult(prompts=[described(name, arguments) for name, arguments in PROMPTS.items()])


async def get_prompt(context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    content: list[types.ContentBlock]
    match params.name:
        case "test_simple_prompt":
            content = [types.TextContent(text="This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            content = [types.TextContent(text=f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")]
        case "test_prompt_with_embedded_resource":
            content = [
                embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
                types.TextContent(text="Please process the embedded resource above."),
            ]
        case "test_prompt_with_image":
            content = [IMAGE, types.TextContent(text="Please analyze the image above.")]
        case "test_input_required_result_prompt":
            answers = params.input_responses or {}
            if "user_context" not in answers:
                question = form("What context should the prompt use?", context={"type": "string"})
                return types.InputRequiredResult(input_requests={"user_context": question})
            content = [types.TextContent(text=f"Context: {answers['user_context']}")]
        case _:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {params.name}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in content])


async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [v for v in ("test", "testing", "paris") if v.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def accept(context: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


class RememberedEvents(EventStore):
    """Everything, for ever: the suite is short."""

    def __init__(self) -> None:
        self._events: list[tuple[str, types.JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = self._events[int(last_event_id) - 1][0]
        for number, (of, message) in enumerate(self._events, start=1):
            if of == stream and number > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def fixture_server() -> Server[Any]:
    bus = InMemorySubscriptionBus()
    tools = fixture_tools(bus)
    listed = [types.Tool(name=name, description=f"Fixture {name}.", input_schema=schema) for name, (schema, _) in tools.items()]

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Result:
        if params.name not in tools:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        return await tools[params.name][1](context, params)

    server = Server[Any](
        "conformance-fixtures",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=accept,
        on_unsubscribe_resource=accept,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, accept)
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="conformance-fixtures"))
    return server


async def main(port: int) -> None:
    http = HttpConfig(host="127.0.0.1", port=port, max_body_bytes=4 * 2**20)
    with bind(http) as sock:
        http = http.model_copy(update={"port": sock.getsockname()[1]})
        app = mount_server(fixture_server(), http, None, events=RememberedEvents())
        await listen(app, sock, f"http://127.0.0.1:{http.port}/mcp", http)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    anyio.run(main, parser.parse_args().port)
