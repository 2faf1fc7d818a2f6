"""The manifest keeps the rules that Slack publishes for it, and grants what the adapter uses.

Rules: github.com/slackapi/manifest-schema, ``schemas/manifest.schema.1.0.0.json``.
"""

from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from bots.platforms.slack.manifest import EVENTS, SCOPES, manifest
from core.errors import UnknownOutcomeError
from tests.bots.platforms.slack.kit import CHANNEL, here, plain, row, socketed
from tests.contract.values import LONG_AGO
from tests.standins.faults import StoreThenCut
from tests.standins.slack import SlackStandIn
from tests.standins.slack_methods import SCOPES as NEEDED
from tests.standins.slack_user import User

COMMANDS = ("help", "new", "stop")
Url = Annotated[str, Meta(pattern=r"^https?:\/\/", max_length=3000)]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Metadata(Strict):
    major_version: int
    minor_version: int


class DisplayInformation(Strict):
    name: Annotated[str, Meta(min_length=1, max_length=35)]
    description: Annotated[str, Meta(min_length=1, max_length=140)]


class AppHome(Strict):
    home_tab_enabled: bool
    messages_tab_enabled: bool
    messages_tab_read_only_enabled: bool


class BotUser(Strict):
    display_name: Annotated[str, Meta(min_length=1, max_length=80)]
    always_online: bool


class SlashCommand(Strict):
    command: Annotated[str, Meta(pattern=r"^\/", min_length=2, max_length=32)]
    description: Annotated[str, Meta(min_length=1, max_length=2000)]
    usage_hint: Annotated[str, Meta(min_length=1, max_length=1000)]
    should_escape: bool
    url: Url | None = None


class Features(Strict):
    app_home: AppHome
    bot_user: BotUser
    slash_commands: Annotated[list[SlashCommand], Meta(min_length=1, max_length=50)]


class Scopes(Strict):
    bot: Annotated[list[Annotated[str, Meta(max_length=50)]], Meta(max_length=255)]


class OauthConfig(Strict):
    scopes: Scopes


class EventSubscriptions(Strict):
    bot_events: Annotated[list[Annotated[str, Meta(max_length=50)]], Meta(max_length=100)]
    request_url: Url | None = None


class Interactivity(Strict):
    is_enabled: bool
    request_url: Url | None = None


class Settings(Strict):
    event_subscriptions: EventSubscriptions
    interactivity: Interactivity
    org_deploy_enabled: bool
    socket_mode_enabled: bool
    token_rotation_enabled: bool


class Manifest(Strict):
    _metadata: Metadata
    display_information: DisplayInformation
    features: Features
    oauth_config: OauthConfig
    settings: Settings


@pytest.mark.parametrize("public_url", ["", "https://bot.example.org/"])
def test_it_keeps_the_published_rules(public_url: str) -> None:
    made = msgspec.convert(manifest(COMMANDS, public_url=public_url), Manifest)
    assert len(set(made.oauth_config.scopes.bot)) == len(made.oauth_config.scopes.bot)
    assert len(set(made.settings.event_subscriptions.bot_events)) == len(EVENTS)


def test_socket_mode_needs_no_address() -> None:
    made = msgspec.convert(manifest(COMMANDS), Manifest)
    assert made.settings.socket_mode_enabled
    assert made.settings.event_subscriptions.request_url is None


def test_over_http_all_goes_to_one_address() -> None:
    made = msgspec.convert(manifest(COMMANDS, public_url="https://bot.example.org"), Manifest)
    assert not made.settings.socket_mode_enabled
    assert {
        made.features.slash_commands[0].url,
        made.settings.event_subscriptions.request_url,
        made.settings.interactivity.request_url,
    } == {"https://bot.example.org/slack/events"}


def test_private_conversations_are_open() -> None:
    made = msgspec.convert(manifest(COMMANDS), Manifest)
    home = made.features.app_home
    assert (home.messages_tab_enabled, home.messages_tab_read_only_enabled) == (True, False)


async def test_what_it_grants_is_enough_and_all_of_it_is_used(
    slack: SlackStandIn, ada: User
) -> None:
    """A whole day with no more scopes and events than the manifest asks for."""
    slack.scopes, slack.events.subscribed = frozenset(SCOPES), frozenset(EVENTS)
    slack.channel("G1", kind="group")
    slack.channel("G2", kind="mpim")
    async with socketed(slack) as bench:
        await bench.is_well()
        ada.sends_file()
        root = ada.says_in(CHANNEL, "one", mention=True)
        ada.says_in("G1", "two", mention=True)
        ada.says_in("G2", "three", mention=True)
        ada.commands("stop")
        taken = await bench.takes(5)
        (file,) = [file for inbound in taken for file in inbound.attachments]
        assert await bench.channel.fetch(file, 100) == b"notes"
        message = row(plain("hi"), here(CHANNEL, root.ts))
        slack.faults.next("chat.postMessage", StoreThenCut())
        with pytest.raises(UnknownOutcomeError):
            await bench.channel.send(message)
        assert await bench.channel.lookup(message, LONG_AGO)
        await bench.channel.typing(message.address)
        await slack.drop_sockets()
        await slack.wait_for(lambda: slack.calls_of("conversations.history"))
    assert [call.outcome for call in slack.calls if "missing" in call.outcome] == []
    methods = {call.method for call in slack.calls}
    used = {scope for method in methods for scope in NEEDED.get(method, ())}
    beyond_methods = {"app_mentions:read", "commands"}
    assert set(SCOPES) - used - beyond_methods == set()
