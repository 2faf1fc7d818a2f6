"""What stood on everybody's screen, and who put it there, as text for who looks for a fault."""

from collections.abc import Iterable, Sequence

from tests.harness.chaos.watch import Span, Touch
from tests.harness.soak.crowd import Person


def as_text(
    people: Iterable[Person], touches: Sequence[Touch], spans: Iterable[Span], began: float
) -> str:
    """Times are seconds since ``began``."""
    lines = [
        f"{span.began - began:8.2f} to {span.ended - began:.2f}, well at {span.well - began:.2f}: "
        f"{span.kind} {span.note}"
        for span in spans
    ]
    for person in people:
        lines += ["", f"p{person.number:02} ({person.user.id})"]
        acts = [
            (touch.at, f"  {touch.who} {touch.method}")
            for touch in touches
            if touch.chat == person.user.id
        ]
        for message in person.user.chat:
            side = "bot:" if message.from_bot else "says:"
            for number, version in enumerate(message.versions, 1):
                acts.append((version.at, f"{side} [{message.id}.{number}] {version.text!r}"))
        lines += [f"{at - began:8.2f} {what}" for at, what in sorted(acts)]
    return "\n".join([*lines, ""])
