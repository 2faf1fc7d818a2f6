"""What looks like a password or a key is not carried on; pure, and no promise that it finds all."""

import re

HIDDEN = "[secret left out]"

_KINDS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
    r"\b(?:sk|pk|rk)-(?:[a-zA-Z]+-)*[\w-]{16,}",
    r"\b(?:sk|pk|rk)_(?:live|test)_\w{10,}",
    r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}",
    r"\bxox[abeoprs]-[\w-]{10,}|\bxapp-[\w-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[\w-]{30,}",
    r"\b\d{8,10}:[\w-]{35}\b",
    r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)",
    r"(?i)(?<=\bbearer )[\w.~+/-]{12,}=*",
)
_NAMED = re.compile(
    r"(?i)\b([\w-]*(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|auth[_-]?token|token)"
    r"[\w-]*[\"']?\s*[:=]\s*[\"']?)([^\s\"',;&]{4,})"
)
_LOOKS = re.compile("|".join(f"(?:{kind})" for kind in _KINDS if not kind.startswith("(?i)")))
_BEARER = re.compile(_KINDS[-1])


def redacted(text: str) -> str:
    """Keys of known vendors, private keys, logins in addresses, and whatever is named a secret."""
    for pattern in (_LOOKS, _BEARER):
        text = pattern.sub(HIDDEN, text)
    return _NAMED.sub(lambda found: found[1] + HIDDEN, text)
