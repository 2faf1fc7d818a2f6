"""What the tests of a tool share: its context, with a clock that moves only when it is slept on."""

from datetime import UTC, datetime, timedelta

from core.domain.keys import Address
from core.ports import ToolContext

START = datetime(2026, 5, 5, 14, 30, 22, tzinfo=UTC)
CHAT = Address(platform="somewhere", account="1", chat="2")


class Scene:
    def __init__(self) -> None:
        self.time = START
        self.progress: list[str] = []
        self.artifacts: dict[str, str] = {}

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    async def artifact(self, artifact_id: str) -> str | None:
        return self.artifacts.get(artifact_id)

    def context(self, open_reminders: int = 0, most: int = 64_000) -> ToolContext:
        return ToolContext(
            key="agent:main:somewhere:dm:2",
            call_key="20260505_143022_a1b2c3d4/1/1/c",
            address=CHAT,
            now=self.now,
            sleep=self.sleep,
            progress=self.progress.append,
            artifact=self.artifact,
            most=most,
            open_reminders=open_reminders,
        )
