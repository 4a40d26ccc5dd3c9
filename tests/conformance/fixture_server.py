"""What the conformance suite wants to find at a server, made with the SDK; it prints the port it listens on.

It is there to be compared with itself: called directly, and through the gateway.
"""

from __future__ import annotations

import socket
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError

# one grey pixel, and half a millisecond of silence
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
SOUND = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA"
OBJECT: dict[str, Any] = {"type": "object"}
MESSAGE = {"type": "object", "properties": {"message": {"type": "string"}, "prompt": {"type": "string"}}}
SCHEMA_2020 = {
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


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def resource(uri: str, mime: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


IMAGE = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [resource("test://embedded-resource", "text/plain", "Embedded.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        resource("test://mixed-content-resource", "application/json", '{"test": "data"}'),
    ],
    "json_schema_2020_12_tool": [text("fits")],
}
FORMS: dict[str, dict[str, Any]] = {
    "test_elicitation": {"response": {"type": "string", "description": "User's response"}},
    "test_streaming_elicitation": {"response": {"type": "string"}},
    "test_elicitation_sep1034_defaults": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "test_elicitation_sep1330_enums": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {"anyOf": [{"const": f"value{n}", "title": f"Choice {n}"} for n in (1, 2, 3)]},
        },
    },
}
LOGGING = ("test_tool_with_logging", "test_logging_tool")
SAMPLING = ("test_sampling", "test_missing_capability")
OTHERS = ("test_error_handling", "test_tool_with_progress", *LOGGING, *SAMPLING)
RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PICTURE},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}  # fmt: skip
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    schemas = {"json_schema_2020_12_tool": SCHEMA_2020, "test_elicitation": MESSAGE, "test_sampling": MESSAGE}
    made = [
        {"name": name, "description": f"The fixture {name}.", "inputSchema": schemas.get(name, OBJECT)}
        for name in (*ANSWERS, *FORMS, *OTHERS)
    ]
    return types.ListToolsResult.model_validate({"tools": made})


def answer(*content: dict[str, Any], **more: Any) -> types.CallToolResult:
    return types.CallToolResult.model_validate({"content": list(content), **more})


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    name, args = params.name, params.arguments or {}
    if name in ANSWERS:
        return answer(*ANSWERS[name])
    if name in FORMS:
        return await elicit(context, params, args.get("message", "Please fill this in"))
    if name == "test_error_handling":
        return answer(text("This tool intentionally returns an error for testing"), isError=True)
    if name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await context.session.report_progress(done, 100, f"Completed step {done} of 100")
        return answer(text("done"))
    if name in LOGGING:
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await context.session.send_log_message("info", words, related_request_id=context.request_id)
        return answer(text("logged"))
    if name in SAMPLING:
        return await sample(context, params, args.get("prompt", ""))
    return answer(text(f"no tool {name}"), isError=True)


async def elicit(context: Any, params: types.CallToolRequestParams, message: str) -> Any:
    """The two eras ask in two ways: by a request of the server, or by an unfinished result."""
    schema = {"type": "object", "properties": FORMS[params.name], "required": []}
    if context.protocol_version < "2026":
        said = await context.session.elicit_form(message, schema, context.request_id)
    elif params.input_responses:
        said = params.input_responses["form"]
    else:
        form = types.ElicitRequestFormParams(message=message, requested_schema=schema)
        return types.InputRequiredResult(input_requests={"form": types.ElicitRequest(params=form)})
    return answer(text(f"Elicitation completed: action={said.action}, content={said.content}"))


async def sample(context: Any, params: types.CallToolRequestParams, prompt: str) -> Any:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    if context.protocol_version < "2026":
        said = await context.session.create_message(
            [message], max_tokens=100, related_request_id=context.request_id
        )
    elif params.input_responses:
        said = params.input_responses["model"]
    else:
        _offered(context)
        wish = types.CreateMessageRequestParams(messages=[message], max_tokens=100)
        return types.InputRequiredResult(input_requests={"model": types.CreateMessageRequest(params=wish)})
    return answer(text(f"LLM response: {said.content.text}"))


def _offered(context: Any) -> None:
    """A server of the newest protocol does not ask a client for what it did not offer."""
    can = context.session.client_capabilities
    if can is None or can.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "sampling is needed", needed)


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    made = [{"uri": uri, "name": uri.partition("//")[2], "mimeType": one["mimeType"]} for uri, one in RESOURCES.items()]  # fmt: skip
    return types.ListResourcesResult.model_validate({"resources": made})


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    made = [{"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"}]
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": made})


async def read_resource(context: Any, params: Any) -> types.ReadResourceResult:
    uri = str(params.uri)
    found = RESOURCES.get(uri)
    if uri.startswith("test://template/"):
        ident = uri.split("/")[3]
        found = {"mimeType": "application/json", "text": f'{{"id": "{ident}", "templateTest": true}}'}
    if found is None:
        code = types.INVALID_PARAMS if context.protocol_version >= "2026" else -32002
        raise MCPError(code, "Resource not found", {"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **found}]})


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    made = [
        {"name": name, "description": f"The fixture {name}.", "arguments": [{"name": one, "required": True} for one in names]}
        for name, names in PROMPTS.items()
    ]  # fmt: skip
    return types.ListPromptsResult.model_validate({"prompts": made})


async def get_prompt(context: Any, params: Any) -> types.GetPromptResult:
    args = params.arguments or {}
    contents = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [text(f"arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'")],
        "test_prompt_with_embedded_resource": [
            resource(args.get("resourceUri", "test://none"), "text/plain", "Embedded."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [IMAGE, text("Please analyze the image above.")],
    }[params.name]
    return types.GetPromptResult.model_validate(
        {"messages": [{"role": "user", "content": one} for one in contents]}
    )


async def complete(context: Any, params: Any) -> types.CompleteResult:
    return types.CompleteResult.model_validate({"completion": {"values": [], "total": 0, "hasMore": False}})


async def nothing(context: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def main() -> None:
    server: Server[Any] = Server(
        "fixture", version="1", on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource, on_list_prompts=list_prompts,
        on_get_prompt=get_prompt, on_completion=complete, on_set_logging_level=nothing,
        on_subscribe_resource=nothing, on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )  # fmt: skip
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen()  # before anybody hears of it: who connects now waits instead of being refused
    print(bound.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[bound])


if __name__ == "__main__":
    main()
