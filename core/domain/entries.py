"""Items of the transcript and what they cost, as an estimate; it shows nothing to anyone."""

from msgspec.structs import replace

from core.domain import events as ev
from core.domain.state import Entry, Source

BYTES_A_TOKEN = 4
"""A rough mean over languages and code; only budgets are built on it."""
TOKENS_AN_ENTRY = 8
TOKENS_A_PICTURE = 1_500
"""About what vendors count for one of the size that we send."""
TOKENS_A_SHORT_RESULT = 120
"""Of ``context.SHORT_HEAD`` and ``SHORT_TAIL`` characters and the note, in any script."""


def estimate_tokens(text: str) -> int:
    return len(text.encode(errors="surrogatepass")) // BYTES_A_TOKEN + TOKENS_AN_ENTRY


def files_entry(event: ev.FilesRead, seq: int) -> Entry:
    pictures = sum(file.kind == "picture" for file in event.files)
    tokens = sum(estimate_tokens(file.label + file.text) for file in event.files)
    texts = sum(file.kind == "words" for file in event.files)
    tokens += pictures * TOKENS_A_PICTURE
    return Entry(seq, "files", event.turn, tokens, pictures, texts)


def without(entry: Entry, what: ev.FilePart) -> Entry:
    if what == "pictures":
        left = entry.tokens - entry.pictures * TOKENS_A_PICTURE
        return replace(entry, pictures=0, tokens=left) if entry.pictures else entry
    left = TOKENS_AN_ENTRY + entry.pictures * TOKENS_A_PICTURE
    return replace(entry, texts=0, tokens=left) if entry.texts else entry


def shortened(entry: Entry, before: int) -> Entry:
    """A result that is shown by its ends, where that is less."""
    small = entry.tokens <= TOKENS_A_SHORT_RESULT
    if entry.kind != "tool" or entry.seq >= before or entry.short or small:
        return entry
    return replace(entry, short=True, tokens=TOKENS_A_SHORT_RESULT)


def as_tried_again(source: Source) -> Source:
    """What could not be read may be there now; all the rest of it is not read again."""
    read = source.read
    if read is None or read.pictures + read.texts >= source.files:
        return source
    return replace(source, read=None)


def as_entries(sources: tuple[Source, ...], turn: int) -> tuple[Entry, ...]:
    """Files that were read once, before a retry, are not read again."""
    entries: list[Entry] = []
    for source in sources:
        entries.append(Entry(source.seq, source.kind, turn, source.tokens))
        if source.read is not None:
            entries.append(replace(source.read, turn=turn))
    return tuple(entries)
