"""The page at ``/``: that the service runs, where to talk to it, and how its first owner gets it.

Whoever reaches the address can read it, so it says nothing that ``/readyz`` does not, but the claim
code as long as there is one to use.
"""

from collections.abc import Awaitable, Callable, Mapping
from html import escape
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from bots.platforms import Health

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
}
"""It is not to be kept, found, framed or told on."""
STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;"
    "color:#222;background:#fff}code{background:#eee;padding:.1rem .3rem;overflow-wrap:anywhere}"
    "dt{font-weight:600}dd{margin:0 0 .6rem}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#111}code{background:#333}"
    "a{color:#8bf}}"
)


class View(msgspec.Struct, frozen=True, kw_only=True):
    """``owned`` is None where the database does not say. ``code`` is there only while it can be
    used, and may be shown."""

    state: str
    platforms: Mapping[str, Health] = {}
    model: str = ""
    trouble: str = ""
    owned: bool | None = None
    code: str = ""


def front_route(view: Callable[[], Awaitable[View]]) -> Route:
    async def front(request: Request) -> Response:
        return HTMLResponse(page(await view()), headers=HEADERS)

    return Route("/", front)


def page(view: View) -> str:
    rows = [("State", escape(view.state))]
    rows += [(name.title(), _platform(health)) for name, health in view.platforms.items()]
    rows += [("Model", escape(f"{view.model}. {view.trouble}" if view.trouble else view.model))]
    terms = "\n".join(f"<dt>{escape(name)}</dt><dd>{text}</dd>" for name, text in rows)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="robots" content="noindex"><title>Stillhere</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>Stillhere is running</h1>\n"
        f"<dl>\n{terms}\n</dl>\n{_owner(view)}\n"
        '<p><a href="/readyz">How it stands, in full</a></p>\n</body></html>\n'
    )


def _platform(health: Health) -> str:
    state = "connected" if health.ok else escape(f"not connected: {health.detail}")
    name = escape(health.name)
    if health.link:
        link = escape(health.link, quote=True)
        return f'<a href="{link}" rel="noreferrer">{name or "open"}</a>, {state}'
    return f"{name}, {state}" if name else state


def _owner(view: View) -> str:
    match view:
        case View(owned=None):
            return "<p>The database does not say whether this bot has an owner.</p>"
        case View(owned=True):
            return "<p>This bot has an owner.</p>"
        case View(code=""):
            return "<p>Nobody owns this bot yet. The log has the code that makes its owner.</p>"
        case View(code=code):
            return _claim(code, view.platforms)


def _claim(code: str, platforms: Mapping[str, Health]) -> str:
    links = [
        f'<a href="{escape(one.start_link + quote(code), quote=True)}" rel="noreferrer">'
        f"send it to {escape(one.name)} by a press</a>"
        for one in platforms.values()
        if one.start_link
    ]
    by_press = f" (or {' or '.join(links)})" if links else ""
    return (
        "<h2>Make it yours</h2>\n<p>Nobody owns this bot yet, and whoever reads this page can take "
        "it: do it now. Send the bot this in a direct message"
        f"{by_press}:</p>\n<p><code>/start {escape(code)}</code></p>"
    )
