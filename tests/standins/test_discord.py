"""The genuine Discord SDK against the stand-in: what it sends, shows and refuses."""

import asyncio
import io
from collections.abc import AsyncIterator

import discord
import pytest
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.standins.discord import DiscordStandIn
from tests.standins.discord_user import User
from tests.standins.faults import Hang, Reset, StoreThenCut, too_many

CHANNEL, THREAD, FOREIGN = 500, 501, 502
INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


class Client(discord.Client):
    """Keeps what it is told; its answer to a command is a whisper."""

    def __init__(self, intents: discord.Intents) -> None:
        super().__init__(intents=intents, guild_ready_timeout=0.05, max_messages=None)
        self.heard: list[discord.Message] = []
        self.pressed: list[discord.Interaction] = []
        self.events: list[str] = []

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.pressed.append(interaction)

    async def on_socket_event_type(self, event: str) -> None:
        self.events.append(event)

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """The SDK's own waits for five seconds."""

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.heard if not message.author.bot]


@pytest.fixture
async def place(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordStandIn]:
    async with DiscordStandIn() as place:
        monkeypatch.setattr(Route, "BASE", place.api_url)
        monkeypatch.setattr(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(place.gateway_url))
        place.channel(CHANNEL)
        place.thread(THREAD, CHANNEL)
        yield place


@pytest.fixture
async def client(place: DiscordStandIn) -> AsyncIterator[Client]:
    """Logged in; not connected to the gateway."""
    client = Client(INTENTS)
    await client.login(place.token)
    yield client
    await client.close()


@pytest.fixture
async def online(place: DiscordStandIn, client: Client, ada: User) -> AsyncIterator[Client]:
    task = asyncio.create_task(client.connect())
    await place.wait_for(lambda: "READY" in client.events)
    yield client
    await client.close()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def ada(place: DiscordStandIn) -> User:
    ada = place.user(7, "Ada")
    ada.says("hello")
    return ada


def dm(client: Client, ada: User) -> discord.PartialMessageable:
    return client.get_partial_messageable(ada.dm)


async def test_the_user_sees_what_the_bot_sends_and_how_it_changes(
    client: Client, ada: User
) -> None:
    sent = await dm(client, ada).send("thinking")
    await sent.edit(content="done")
    seen = ada.chat[-1]
    assert (seen.id, seen.text, ada.bot_texts()) == (sent.id, "done", ["done"])
    assert [version.text for version in seen.versions] == ["thinking", "done"]
    await sent.delete()
    assert ada.bot_texts() == []


async def test_the_same_nonce_is_said_once(
    place: DiscordStandIn, client: Client, ada: User
) -> None:
    one = await dm(client, ada).send("once", nonce="n1")
    assert (await dm(client, ada).send("once", nonce="n1")).id == one.id
    place.methods.forget_nonces()
    await dm(client, ada).send("once", nonce="n1")
    assert ada.bot_texts() == ["once", "once"]
    history = [message async for message in dm(client, ada).history()]
    assert {message.nonce for message in history} == {None}
    with pytest.raises(discord.HTTPException) as caught:
        await dm(client, ada).send("x", nonce="n" * 26)
    assert caught.value.code == 50035


@pytest.mark.parametrize(
    ("text", "code"),
    [("x" * 2001, 50035), ("👋" * 1001, 50035), (" \n", 50006)],
    ids=["long", "emoji", "blank"],
)
async def test_a_bad_text_is_refused(client: Client, ada: User, text: str, code: int) -> None:
    with pytest.raises(discord.HTTPException) as caught:
        await dm(client, ada).send(text)
    assert caught.value.code == code
    assert ada.bot_texts() == []


async def test_who_can_be_written_to(place: DiscordStandIn, client: Client, ada: User) -> None:
    place.foreign_channel(FOREIGN)
    ada.closes_dms()
    found: list[int] = []
    for channel in (ada.dm, FOREIGN, 999):
        with pytest.raises(discord.HTTPException) as caught:
            await client.get_partial_messageable(channel).send("hello?")
        found.append(caught.value.code)
    assert found == [50007, 50001, 10003]
    with pytest.raises(discord.HTTPException) as refused:
        await client.get_partial_messageable(CHANNEL).get_partial_message(1).edit(content="x")
    assert refused.value.code == 10008


async def test_a_wrong_token_is_refused_by_both(place: DiscordStandIn) -> None:
    client = Client(INTENTS)
    with pytest.raises(discord.LoginFailure):
        await client.login("other")
    await client.close()
    client = Client(INTENTS)
    await client.login(place.token)
    place.revoke_token()
    with pytest.raises(discord.ConnectionClosed) as caught:
        await client.connect()
    assert caught.value.code == 4004


async def test_files_buttons_and_typing(place: DiscordStandIn, client: Client, ada: User) -> None:
    view = discord.ui.View(timeout=None)
    view.add_item(discord.ui.Button[discord.ui.View](label="Again", custom_id="/retry"))
    file = discord.File(io.BytesIO(b"all of it"), "answer.md")
    async with dm(client, ada).typing():
        await dm(client, ada).send("see", file=file, view=view)
    seen = ada.chat[-1]
    assert (seen.text, seen.whole, seen.buttons) == ("see", "all of it", {"Again": "/retry"})
    assert place.methods.typed == [ada.dm]
    (said,) = [m async for m in dm(client, ada).history(limit=1)]
    assert await said.attachments[0].read() == b"all of it"


async def test_the_history_is_read_in_pages(client: Client, ada: User) -> None:
    first = ada.chat[0]
    said = [ada.says(f"message {number}").text for number in range(120)]
    after = discord.Object(first.id)
    read = [m.content async for m in dm(client, ada).history(after=after, limit=None)]
    newest = [m.content async for m in dm(client, ada).history(limit=2)]
    assert (read, newest) == (said, ["message 119", "message 118"])


async def test_too_many_waits_as_long_as_it_says(
    place: DiscordStandIn, client: Client, ada: User
) -> None:
    place.faults.next("create_message", too_many(0))
    await dm(client, ada).send("after all")
    assert len(place.calls_of("create_message")) == 2
    assert ada.bot_texts() == ["after all"]


async def test_what_was_stored_before_a_cut_is_there(
    place: DiscordStandIn, client: Client, ada: User
) -> None:
    place.faults.next("create_message", StoreThenCut(), Reset(), Hang())
    for text in ("stored", "never"):
        with pytest.raises((discord.DiscordException, OSError)):
            await dm(client, ada).send(text)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(dm(client, ada).send("never"), 0.2)
    assert ada.bot_texts() == ["stored"]


async def test_what_is_said_comes_by_the_gateway(
    place: DiscordStandIn, online: Client, ada: User
) -> None:
    ada.says("in private")
    ada.says_in(CHANNEL, "not for the bot")
    asked = ada.says_in(THREAD, "for the bot", mention=True)
    await place.wait_for(lambda: len(online.texts) == 3)
    assert online.texts == ["in private", "", "<@123456> for the bot"]
    assert [message.channel.id for message in online.heard] == [ada.dm, CHANNEL, THREAD]
    await online.get_partial_messageable(THREAD).send(
        "here", reference=discord.MessageReference(message_id=asked.id, channel_id=THREAD)
    )
    assert (ada.sees(THREAD)[-1].text, ada.sees(THREAD)[-1].reply_to) == ("here", asked.id)


async def test_what_was_said_before_is_in_the_history_alone(
    place: DiscordStandIn, ada: User, online: Client
) -> None:
    ada.says("now")
    await place.wait_for(lambda: bool(online.texts))
    assert online.texts == ["now"]
    history = [m.content async for m in dm(online, ada).history(oldest_first=True)]
    assert history == ["hello", "now"]


@pytest.mark.parametrize(
    "fault",
    ["aborts", "asks_to_reconnect", "invalidates softly", "closes with 4000"],
)
async def test_a_lost_connection_is_resumed_with_what_was_missed(
    place: DiscordStandIn, online: Client, ada: User, fault: str
) -> None:
    faults = {
        "aborts": place.gateway.aborts,
        "asks_to_reconnect": place.gateway.asks_to_reconnect,
        "invalidates softly": lambda: place.gateway.invalidates(resumable=True),
        "closes with 4000": lambda: place.gateway.closes(4000),
    }
    faults[fault]()
    ada.says("meanwhile")
    await place.wait_for(lambda: online.texts == ["meanwhile"])
    await place.wait_for(lambda: "RESUMED" in online.events)
    assert (place.gateway.identifies, place.gateway.resumes) == (1, 1)


async def test_a_session_that_is_gone_begins_anew_and_misses_something(
    place: DiscordStandIn, online: Client, ada: User
) -> None:
    place.gateway.invalidates()
    ada.says("lost")
    await place.wait_for(lambda: online.events.count("READY") == 2)
    ada.says("heard")
    await place.wait_for(lambda: bool(online.texts))
    assert (online.texts, place.gateway.identifies) == (["heard"], 2)


async def test_intents_that_are_refused(place: DiscordStandIn) -> None:
    client = Client(discord.Intents(guilds=True, message_content=True))
    await client.login(place.token)
    with pytest.raises(discord.PrivilegedIntentsRequired):
        await client.connect()
    await client.close()


async def test_heartbeats_are_answered(place: DiscordStandIn, client: Client) -> None:
    place.gateway.heartbeat_ms = 50
    task = asyncio.create_task(client.connect())
    await place.wait_for(lambda: place.gateway.heartbeats > 3)
    assert place.gateway.connected == 1
    await client.close()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_command_is_answered_in_time_and_once(
    place: DiscordStandIn, online: Client, ada: User
) -> None:
    tree = app_commands.CommandTree(online)

    @tree.command(name="new", description="start over")
    async def new(interaction: discord.Interaction, text: str = "") -> None:
        await interaction.response.defer(ephemeral=True)
        await interaction.edit_original_response(content=f"new {text}")

    assert new.name == "new"
    await tree.sync()
    assert [command["name"] for command in place.methods.commands] == ["new"]
    made = ada.commands("new", "day")
    await place.wait_for(lambda: made.shown == "new day")
    late = ada.commands("late")
    late.at -= 4
    await place.wait_for(lambda: len(online.pressed) == 2)
    with pytest.raises(discord.NotFound) as caught:
        await online.pressed[-1].response.defer()
    assert caught.value.code == 10062


async def test_a_button_is_pressed(place: DiscordStandIn, online: Client, ada: User) -> None:
    view = discord.ui.View(timeout=None)
    view.add_item(discord.ui.Button[discord.ui.View](label="Again", custom_id="/retry"))
    view.stop()
    await dm(online, ada).send("failed", view=view)
    made = ada.clicks(ada.chat[-1], "Again")
    await place.wait_for(lambda: bool(online.pressed))
    assert online.pressed[0].data == {"custom_id": "/retry", "component_type": 2}
    assert (online.pressed[0].id, online.pressed[0].user.id) == (made.id, 7)
    await online.pressed[0].response.defer()
    assert made.answer is not None


async def test_edits_and_deletes_and_strange_messages(
    place: DiscordStandIn, online: Client, ada: User
) -> None:
    said = ada.says("one")
    ada.edits(said, "two")
    ada.deletes(said)
    ada.sends_kind(99, "new")
    ada.sends_kind(sticker_items=[{"id": "5", "name": "wave", "format_type": 1}])
    ada.sends_file("a.png", b"\x89PNG", content_type="image/png")
    await place.wait_for(lambda: len(online.heard) == 4)
    assert {"MESSAGE_UPDATE", "MESSAGE_DELETE"} <= set(online.events)
    assert online.heard[2].stickers[0].name == "wave"
    assert (online.heard[3].attachments[0].filename, said in ada.chat) == ("a.png", False)


async def test_a_dm_is_opened(place: DiscordStandIn, client: Client) -> None:
    bob = place.user(8, "Bob")
    user = await client.create_dm(discord.Object(8))  # pyright: ignore[reportArgumentType]
    assert user.id == bob.dm
