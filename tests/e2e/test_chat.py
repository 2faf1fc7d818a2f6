"""``stillhere chat`` as a person has it: in a terminal, killed in the middle, and piped."""

import json
import re
import signal
from pathlib import Path

from tests.command import run
from tests.e2e.terminal import Terminal

READY = r"you>\s*$"
COUNTED = r"bot>\s*\n\s*(I was interrupted[^_]*\s)?Counted, slowly: 1, 2, 3, 4, 5\b"
"""As it stands there for good: a preview is not rendered, and begins beside the speaker."""
KEY = "agent:main:console:dm:"


def events(folder: Path) -> list[str]:
    """The names of all that happened, in order, as the command line tells them."""
    listed = run(folder, "sessions", "list").stdout
    found = re.search(rf"{KEY}\S+", listed)
    assert found, listed
    lines = run(folder, "sessions", "events", found[0]).stdout.splitlines()
    return [json.loads(line)["event"]["type"] for line in lines]


def test_killed_in_the_middle_it_goes_on_by_itself_and_answers_once(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.starts()
        terminal.sees(READY)
        terminal.types("count slowly to 5\r")
        terminal.sees("counting: 3 of 5")
        terminal.kills()
        assert not terminal.echoes
        terminal.starts()
        terminal.sees(COUNTED)
        terminal.sees(READY)
        assert terminal.leaves() == 0
        assert terminal.echoes
        terminal.starts()
        terminal.sees(READY)
        terminal.types("what is my name\r")
        terminal.sees("You have not told me")
        assert terminal.leaves("\x04") == 0
        assert len([*re.finditer(COUNTED, terminal.output)]) == 1
        assert "Traceback" not in terminal.output
    happened = events(tmp_path)
    assert happened.count("MessageReceived") == 2
    assert happened.count("TurnFinished") == 2
    assert happened.count("TurnInterrupted") == 1


def test_ctrl_c_in_the_middle_is_a_clean_stop_and_it_goes_on_later(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.starts()
        terminal.sees(READY)
        terminal.types("count slowly to 5\r")
        terminal.sees("counting: 2 of 5")
        assert terminal.leaves() == 0
        assert terminal.echoes
        terminal.starts()
        terminal.sees("counting: 1 of 5")
        assert terminal.is_told(signal.SIGTERM) == 0
        assert terminal.echoes
        terminal.starts()
        terminal.sees(COUNTED)
        assert terminal.leaves() == 0
        assert len([*re.finditer(COUNTED, terminal.output)]) == 1
        assert "Traceback" not in terminal.output


def test_a_pasted_text_of_two_lines_is_one_message(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.starts()
        terminal.sees(READY)
        terminal.types("\x1b[200~my name is Ada\nwhat time is it\x1b[201~")
        terminal.sees("what time is it")
        terminal.types("\r")
        terminal.sees(r"UTC")
        terminal.sees(READY)
        assert terminal.leaves() == 0
    assert events(tmp_path).count("MessageReceived") == 1


def test_all_that_is_piped_in_is_answered(tmp_path: Path) -> None:
    done = run(tmp_path, "chat", given="my name is Ada\n\nwhat is my name\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Nice to meet you, **Ada**" in done.stdout
    assert done.stdout.count("Your name is **Ada**.") == 1
    again = run(tmp_path, "chat", given="who am i\n")
    assert "Your name is **Ada**." in again.stdout
    assert "Nice to meet you" not in again.stdout


def test_a_second_chat_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.starts()
        terminal.sees(READY)
        second = run(tmp_path, "chat", given="hello\n")
        assert second.returncode == 78
        assert "is in use by another process (pid" in second.stderr
        assert "Stop that one first" in second.stderr
        assert terminal.leaves() == 0
