"""What Slack has to know of the app, ready to paste; pure.

https://docs.slack.dev/reference/app-manifest
"""

from collections.abc import Sequence
from typing import Any

from bots.platforms.slack.settings import EVENTS_PATH

COMMAND = "/stillhere"
SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "chat:write",
    "commands",
    "files:read",
    "groups:history",
    "im:history",
    "mpim:history",
    "users:read",
)
EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")


def manifest(
    commands: Sequence[str], *, name: str = "Stillhere", public_url: str = ""
) -> dict[str, Any]:
    """For Socket Mode, or for events over HTTP at ``public_url``."""
    url = public_url.rstrip("/") + EVENTS_PATH if public_url else ""
    return {
        "_metadata": {"major_version": 1, "minor_version": 1},
        "display_information": {
            "name": name,
            "description": "An agent that remembers where you were",
        },
        "features": {
            "app_home": {
                "home_tab_enabled": False,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "slash_commands": [
                {
                    "command": COMMAND,
                    "description": "Say a command to the agent",
                    "usage_hint": " | ".join(commands),
                    "should_escape": False,
                    **_at("url", url),
                }
            ],
        },
        "oauth_config": {"scopes": {"bot": list(SCOPES)}},
        "settings": {
            "event_subscriptions": {**_at("request_url", url), "bot_events": list(EVENTS)},
            "interactivity": {"is_enabled": True, **_at("request_url", url)},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not url,
            "token_rotation_enabled": False,
        },
    }


def _at(name: str, url: str) -> dict[str, str]:
    return {name: url} if url else {}
