"""Remembers what is wrong with the models, as far as whoever runs the service can mend it; it asks
none."""

from collections.abc import Callable

from core.domain.messages import ModelFailure, ModelReply

UNNAMED = "The model cannot be used as it is set up; the log has the reason."


class ModelSigns:
    """``trouble`` is one or more sentences with the remedy, empty while all is well; ``answers``
    says that a model has answered since; ``told`` that the owner had it as the answer."""

    def __init__(self) -> None:
        self.trouble = ""
        self.answers = False
        self.told = False
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """It is called when the trouble is another one, or over, and must not block."""
        self._listeners.append(listener)

    def heard(self, result: ModelReply | ModelFailure, *, told: bool = False) -> None:
        """``told``: its remedy is said to the owner, who asked. What passes by itself is no
        trouble, nor what is the request's own fault."""
        match result:
            case ModelReply():
                self._enter("", answers=True)
            case ModelFailure(kind="never", remedy=remedy):
                self.told = told
                self._enter(remedy or UNNAMED, answers=False)
            case ModelFailure():
                pass

    def _enter(self, trouble: str, *, answers: bool) -> None:
        changed = (trouble, answers) != (self.trouble, self.answers)
        self.trouble, self.answers = trouble, answers
        for listener in self._listeners if changed else ():
            listener()
