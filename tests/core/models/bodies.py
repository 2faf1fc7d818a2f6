"""What the genuine litellm makes of a request for each vendor; it opens no connection."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from core.domain.messages import ModelRequest
from core.models.litellm_cache import marked, wants_marks
from core.models.litellm_wire import messages_of, tools_of
from tests.standins.anthropic_checks import Json

CLAUDE = "claude-sonnet-4-6"
"""One that takes no prefill: the strictest of them."""

Body = Callable[[ModuleType, ModelRequest], Json]


def claude_body(litellm: ModuleType, request: ModelRequest) -> Json:
    return _body(litellm, request, "anthropic", CLAUDE, litellm.AnthropicConfig())


def openai_body(litellm: ModuleType, request: ModelRequest) -> Json:
    return _body(litellm, request, "openai", "gpt-4o", litellm.OpenAIGPTConfig())


def _body(litellm: ModuleType, request: ModelRequest, vendor: str, model: str, config: Any) -> Json:
    files: Mapping[str, bytes] = request.files
    messages, tools = messages_of(request.messages, files), tools_of(request.tools)
    if wants_marks(model, vendor):
        messages, tools = marked(messages, tools)
    options = litellm.utils.get_optional_params(
        model=model,
        custom_llm_provider=vendor,
        stream=True,
        stream_options={"include_usage": True},
        **({"tools": tools} if tools else {}),
    )
    return config.transform_request(
        model=model,
        messages=messages,
        optional_params=options,
        litellm_params={},
        headers={},
    )
