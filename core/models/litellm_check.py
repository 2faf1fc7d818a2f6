"""Whether a vendor knows our key, asked before anybody needs it; only where that costs nothing."""

from collections.abc import Mapping
from types import ModuleType

import httpx
import msgspec

from core.models.litellm_remedies import KEYS, Cause

SECONDS = 10.0


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """Where a vendor tells the bearer of a key which models there are. ``base`` holds where litellm
    names no other; it is looked up in ``variables`` first."""

    base: str = ""
    variables: tuple[str, ...] = ()
    path: str = "models"
    header: str = "Authorization"
    before: str = "Bearer "
    more: Mapping[str, str] = {}


DOORS: Mapping[str, Door] = {
    "openai": Door(
        base="https://api.openai.com/v1", variables=("OPENAI_BASE_URL", "OPENAI_API_BASE")
    ),
    "anthropic": Door(
        base="https://api.anthropic.com",
        variables=("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
        path="v1/models",
        header="x-api-key",
        before="",
        more={"anthropic-version": "2023-06-01"},
    ),
    "gemini": Door(
        base="https://generativelanguage.googleapis.com/v1beta",
        header="x-goog-api-key",
        before="",
    ),
    "openrouter": Door(path="key"),
    "mistral": Door(),
    "groq": Door(),
    "deepseek": Door(),
    "xai": Door(),
    "moonshot": Door(),
}


async def trouble_with_key(litellm: ModuleType, name: str, api_base: str | None) -> Cause | None:
    """None where the key is good, or where that is not known."""
    _, vendor, known_key, known_base = litellm.get_llm_provider(model=name, api_base=api_base)
    if vendor not in DOORS:
        return None
    key = known_key or litellm.get_secret_str(KEYS[vendor])
    if not key:
        return "no key"
    door = DOORS[vendor]
    told: list[str | None] = [litellm.get_secret_str(variable) for variable in door.variables]
    base: str = api_base or known_base or next(filter(None, told), door.base)
    headers = {door.header: door.before + key, **door.more}
    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            answer = await client.get(f"{base.rstrip('/')}/{door.path}", headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    refused = answer.status_code == 401 or "API_KEY_INVALID" in answer.text
    return "key" if refused else None
