"""The links of the invitation ask for what is used and for nothing else."""

from urllib.parse import parse_qs, urlsplit

import discord

from bots.platforms.discord.invite import links

APPLICATION = "1234567890123456789"
USED = {
    "view_channel", "send_messages", "send_messages_in_threads", "read_message_history",
    "attach_files", "embed_links",
}  # fmt: skip


def asked(url: str) -> dict[str, str]:
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.path) == ("https", "discord.com", "/oauth2/authorize")
    return {name: value for name, (value,) in parse_qs(parts.query, strict_parsing=True).items()}


def test_a_server_gives_the_permissions_that_are_used_and_no_other() -> None:
    query = asked(links(APPLICATION).server)
    permissions = discord.Permissions(int(query.pop("permissions")))
    # Discord's own names; the SDK has a second one for some of them.
    given = {name for name, allowed in permissions if allowed} - {"read_messages"}
    assert given | {"view_channel"} == USED
    assert not permissions.administrator
    assert query == {
        "client_id": APPLICATION,
        "scope": "bot applications.commands",
        "integration_type": "0",
    }


def test_a_person_gives_no_permissions_and_takes_no_bot() -> None:
    assert asked(links(APPLICATION).person) == {
        "client_id": APPLICATION,
        "scope": "applications.commands",
        "integration_type": "1",
    }
