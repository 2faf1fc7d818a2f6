"""Makes litellm ready in a thread, quiet and at home; it never runs in the event loop's thread.

The import takes three to ten seconds, the first call another one.
"""

import importlib
import logging
import os
import sys
from types import ModuleType

SETTINGS = {
    # Otherwise it prints to stdout on every error.
    "suppress_debug_info": True,
    # A vendor that knows no tools still answers; a conversation that one refuses is mended.
    "drop_params": True,
    "modify_params": True,
    # Equal tokens in a row are a table or a drawing far more often than a loop.
    "REPEATED_STREAMING_CHUNK_LIMIT": sys.maxsize,
}
LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_WARM_UP = {
    "model": "openai/gpt-4o",
    "messages": [{"role": "user", "content": "hello"}],
    "mock_response": "hello",
    "stream": True,
}


def load() -> ModuleType:
    """The module, after one call that stays inside it."""
    os.environ["LITELLM_OFFLINE_MODE"] = "true"  # noqa: TID251  # set, not read: the only switch
    litellm = importlib.import_module("litellm")
    vars(litellm).update(SETTINGS)
    _quiet(litellm._logging.SecretRedactionFilter())
    for _ in litellm.completion(**_WARM_UP):
        pass
    litellm.token_counter(model="gpt-4o", text="hello")
    return litellm


def _quiet(redaction: logging.Filter) -> None:
    """Its own handlers write to stderr; what is left goes where all logs go."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.ERROR)
        logger.handlers.clear()
        logger.addFilter(redaction)
