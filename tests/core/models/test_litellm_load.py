"""In a process of its own, since an import happens once."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, random, sys
from core.domain.messages import ModelRequest, UserMessage
from core.models.litellm import LiteLLMModel, Options

names = set()

def watch(event, arguments):
    if event == "socket.getaddrinfo":
        names.add(str(arguments[0]))
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        names.add(str(arguments[1][0]))

async def main():
    loop = asyncio.get_running_loop()
    gaps = []

    async def tick():
        while True:
            before = loop.time()
            await asyncio.sleep(0.01)
            gaps.append(loop.time() - before)

    ticking = asyncio.create_task(tick())
    options = Options(name="openai/test", api_base="http://127.0.0.1:9/v1", attempts=1)
    model = LiteLLMModel(options, asyncio.sleep, random.Random(1))
    await model.load()
    loading = len(gaps)
    failure = await model.complete(ModelRequest((UserMessage("hi"),)), lambda text: None)
    ticking.cancel()
    await model.close()
    return failure.kind, max(gaps[:loading]), max(gaps[loading:], default=0)

sys.addaudithook(watch)
kind, loading, calling = asyncio.run(main())
print(kind, *sorted(names), loading, calling)
"""


@pytest.mark.slow
def test_it_loads_beside_the_loop_silently_and_calls_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"OPENAI_API_KEY": "sk-none"},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )

    kind, *names, loading, calling = done.stdout.split()
    assert (kind, names, done.stderr) == ("try_again", ["127.0.0.1"], "")
    assert float(loading) < 1.0
    assert float(calling) < 0.5
