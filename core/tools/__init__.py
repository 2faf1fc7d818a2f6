"""What each tool of this package is; it never runs one."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from core.domain.messages import EffectClass, ToolSpec
from core.ports import ToolContext, ToolOutput

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class FunctionTool(msgspec.Struct, Generic[Arguments], frozen=True, kw_only=True):
    """A tool made of one function; its struct of arguments is its schema, too.

    Each field carries its description as ``msgspec.Meta``. ``timeout`` is in seconds.
    """

    name: str
    description: str
    arguments: type[Arguments]
    act: Callable[[Arguments, ToolContext], Awaitable[ToolOutput]]
    effect: EffectClass
    timeout: float
    demo_only: bool = False

    @property
    def spec(self) -> ToolSpec:
        _, parts = msgspec.json.schema_components([self.arguments])
        schema = {k: v for k, v in parts[self.arguments.__name__].items() if k != "title"}
        return ToolSpec(self.name, self.description, schema)

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """What is null was left out, and a number may come as text: models do both."""
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            parsed = msgspec.convert(given, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            return failed(f"{self.name} was not run: {error}. Call it again with that put right.")
        return await self.act(parsed, context)


def failed(text: str) -> ToolOutput:
    """A result that tells the model what was wrong and what to do."""
    return ToolOutput(value=text, failed=True)
