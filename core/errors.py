"""The whole tree of errors; knows nothing of who raises them.

StillhereError
├── TransientError          try again later
│   └── StorageError        the commit did not happen, or it is not known whether it did
│       └── UnstorableError it did not happen, and the same one never will
├── PermanentError          trying again cannot help
├── UnknownOutcomeError     the request may have gone out; its effect must be looked up or risked
├── ConflictError           someone wrote first: load and decide again
│   └── LeaseLostError      someone else has the right to run this session
├── DuplicateError          this update was taken before
├── IllegalEventError       a bug, or a broken log
├── BrokenDataError         stored data that cannot be read or does not agree with itself
└── ConfigurationError      a setting is wrong; the text says what to do
"""


class StillhereError(Exception):
    """Root of every error that this project raises on purpose."""


class TransientError(StillhereError):
    """Nothing happened; the same call may succeed later.

    ``retry_after`` is in seconds from now, None where the other side named no time.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StorageError(TransientError):
    """The database failed; what was to be written is not known to be there."""


class UnstorableError(StorageError):
    """The database refuses what is in it; nothing is stored, and trying again cannot help."""


class PermanentError(StillhereError):
    """The other side says never: blocked, gone, too large, not allowed."""


class UnknownOutcomeError(StillhereError):
    """The request may have reached the other side before the connection broke."""


class ConflictError(StillhereError):
    """The log has moved on since it was read."""


class LeaseLostError(ConflictError):
    """Another process holds the lease of this session."""


class DuplicateError(StillhereError):
    """The inbox already holds this platform update."""


class IllegalEventError(StillhereError):
    """An event that its state does not allow."""


class BrokenDataError(StillhereError):
    """Stored data that no version of this program can have meant."""


class ConfigurationError(StillhereError):
    """The operator has to change a setting; the message names it and the remedy."""
