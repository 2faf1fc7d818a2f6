"""The links by which the bot comes into a server, or to a person; it makes no call."""

import discord
import msgspec

PERMISSIONS = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    read_message_history=True,
    attach_files=True,
    embed_links=True,
)
"""What is sent, and the history that is read after a downtime; no more."""
SCOPES = ("bot", "applications.commands")
FOR_USER = "&integration_type=1"
"""https://docs.discord.com/developers/resources/application#installation-context"""


class Links(msgspec.Struct, frozen=True):
    server: str
    person: str


def links(application_id: str) -> Links:
    server = discord.utils.oauth_url(application_id, permissions=PERMISSIONS, scopes=SCOPES)
    person = discord.utils.oauth_url(application_id, scopes=SCOPES[1:])
    return Links(f"{server}&integration_type=0", person + FOR_USER)
