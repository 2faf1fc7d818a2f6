"""Who started the process, as it is seen from within on each kind of machine."""

import pytest

from bots.supervisor import Process, Starter, starter, this_process

SERVICE = Process(pid=812, parent=1, parents=("systemd",), cgroup="stillhere.service")
FIRST = Process(pid=1, container=True)
BY_HAND = Process(
    pid=900,
    parent=880,
    parents=("bash", "sshd", "systemd"),
    terminal=True,
    cgroup="session-3.scope",
)
DETACHED = Process(pid=901, parent=1, parents=("systemd",), cgroup="session-3.scope")
INVOKED = {"INVOCATION_ID": "4b1f"}


@pytest.mark.parametrize(
    ("environment", "process", "name", "supervised"),
    [
        (INVOKED, SERVICE, "systemd (stillhere.service)", True),
        ({"DYNO": "web.1"}, FIRST, "Heroku", True),
        ({"DYNO": "run.4711"}, FIRST, "a shell without a terminal on Heroku", False),
        ({"RENDER": "true"}, FIRST, "Render", True),
        ({"RAILWAY_ENVIRONMENT_ID": "production"}, FIRST, "Railway", True),
        ({"FLY_APP_NAME": "bot"}, Process(pid=640, parent=1, parents=("init",)), "Fly.io", True),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, FIRST, "Kubernetes", True),
        ({"SUPERVISOR_ENABLED": "1"}, Process(pid=9), "supervisord", True),
        ({}, FIRST, "a container", True),
        ({}, Process(pid=7, parent=1, container=True), "a container", True),
        ({"XPC_SERVICE_NAME": "bot"}, Process(pid=9, launchd=True), "launchd (bot)", True),
        ({"XPC_SERVICE_NAME": "0"}, Process(pid=9, launchd=True), "a shell without a", False),
        ({}, BY_HAND, "a shell in a terminal", False),
        ({}, DETACHED, "a shell without a terminal", False),
        ({}, Process(pid=9, parents=("sh", "cron", "systemd")), "another program (cron)", False),
        # A desktop's terminal hands down what systemd told it.
        (INVOKED, DETACHED, "a shell without a terminal", False),
        (INVOKED, BY_HAND, "a shell in a terminal", False),
        # `heroku run`, `docker exec -it`, `kubectl exec -it`, `fly ssh console`.
        (
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            Process(pid=40, parent=33, parents=("sh",), terminal=True, container=True),
            "a shell in a terminal on a container",
            False,
        ),
        ({"FLY_APP_NAME": "bot"}, BY_HAND, "a shell in a terminal on Fly", False),
        # `docker run -it`: the terminal is its own, and Docker starts it again.
        ({}, Process(pid=1, terminal=True, container=True), "a container", True),
    ],
)
def test_who_started_it(
    environment: dict[str, str], process: Process, name: str, supervised: bool
) -> None:
    found = starter(environment, process)
    assert (found.name[: len(name)], found.supervised) == (name, supervised)


def test_this_process_is_one_that_a_test_started() -> None:
    seen = this_process()
    assert seen.pid > 0
    assert seen.parent > 0
    assert isinstance(starter({}, seen), Starter)
