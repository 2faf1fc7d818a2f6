"""The hosts' files: their form, and that all of them say the same as the code and each other."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from jsonschema import Draft202012Validator

from bots.cli import COMMANDS, EXIT_CONFIGURATION
from bots.settings import Settings
from tests.deploy_fields import FLY, HEROKU, RAILWAY, RENDER, Schema
from tests.dockerfile import read_stages
from tests.postgres import binaries

ROOT: Final = Path(__file__).parents[1]
UNIT: Final = ROOT / "docs/deploy/stillhere.service"
PAGES: Final = ("heroku", "render", "railway", "fly", "docker", "vps")
LEAST_MARGIN: Final = 5.0
"""Seconds between the end of DRAIN_SECONDS and a host's kill: for what is stored at a stop."""
HEROKUS_GRACE: Final = 30.0
"""Seconds, fixed: https://devcenter.heroku.com/articles/dyno-shutdown-behavior"""
OF_COMPOSE: Final = {"POSTGRES_PASSWORD", "POSTGRES_USER", "POSTGRES_DB"}
MIGRATE: Final = "python -m bots migrate"
RUN: Final = "python -m bots run"


def of_toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text())


def of_yaml(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text())


def of_json(name: str) -> dict[str, Any]:
    return json.loads((ROOT / name).read_text())


def of_procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    return {name: command.strip() for name, _, command in (line.partition(":") for line in lines)}


def of_unit() -> dict[str, str]:
    _, _, service = UNIT.read_text().partition("[Service]\n")
    return dict(re.findall(r"^(\w+)=(.+)$", service, re.MULTILINE))


heroku: Final = of_json("app.json")
render: Final = of_yaml("render.yaml")["services"][0]
railway: Final = of_json("railway.json")["deploy"]
fly: Final = of_toml("fly.toml")
compose: Final = of_yaml("compose.yaml")["services"]
image: Final = read_stages((ROOT / "Dockerfile").read_text())[-1]


def seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+)s?", text)
    assert found, text
    return float(found[1])


def faults(schema: Schema, value: object) -> list[str]:
    validator: Any = Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(value)]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(HEROKU, heroku, id="app.json"),
        pytest.param(RENDER, of_yaml("render.yaml"), id="render.yaml"),
        pytest.param(RAILWAY, of_json("railway.json"), id="railway.json"),
        pytest.param(FLY, fly, id="fly.toml"),
    ],
)
def test_a_file_has_the_fields_of_its_host_and_no_other(schema: Schema, value: object) -> None:
    Draft202012Validator.check_schema(schema)
    assert faults(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(RAILWAY, {"deploy": {"drainingSeconds": "30"}}, id="a number as a string"),
        pytest.param(FLY, {"kill_signal": "TERM"}, id="no signal"),
        pytest.param(FLY, {"http_service": {"internalPort": 1}}, id="a misspelt field"),
        pytest.param(HEROKU, {"name": "x" * 31}, id="a long name"),
        pytest.param(RENDER, {"services": [{"type": "web", "env": "docker"}]}, id="an old field"),
    ],
)
def test_a_wrong_file_is_refused(schema: Schema, value: object) -> None:
    assert faults(schema, value)


def checked(path: Path) -> int:
    words = ["-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run([sys.executable, *words], capture_output=True, check=False).returncode


def test_compose_is_as_its_published_schema_has_it(tmp_path: Path) -> None:
    assert checked(ROOT / "compose.yaml") == 0
    wrong = tmp_path / "compose.yaml"
    wrong.write_text((ROOT / "compose.yaml").read_text().replace("stop_signal", "stop_signals"))
    assert checked(wrong) == 1


def commands() -> dict[str, str]:
    return {
        "Procfile release": of_procfile()["release"],
        "Procfile web": of_procfile()["web"],
        "render": render["preDeployCommand"],
        "railway": railway["preDeployCommand"][0],
        "fly": fly["deploy"]["release_command"],
        "image": " ".join(image.last("CMD").words),
        "unit": of_unit()["ExecStart"],
    }


def test_every_command_is_one_of_ours() -> None:
    for place, command in commands().items():
        python, flag, package, verb = shlex.split(command)
        assert (Path(python).name, flag, package) == ("python", "-m", "bots"), place
        assert verb in COMMANDS, place


def test_the_database_is_brought_up_to_date_before_a_new_version_starts() -> None:
    said = commands()
    for place in ("Procfile release", "render", "railway", "fly"):
        assert said[place] == MIGRATE
    assert said["Procfile web"] == said["image"] == RUN


def graces() -> dict[str, float]:
    return {
        "heroku": HEROKUS_GRACE,
        "render": render["maxShutdownDelaySeconds"],
        "railway": railway["drainingSeconds"],
        "fly": seconds(fly["kill_timeout"]),
        "compose": seconds(compose["bot"]["stop_grace_period"]),
        "unit": seconds(of_unit()["TimeoutStopSec"]),
    }


def test_every_host_waits_longer_than_the_turns_may_take() -> None:
    drain = Settings.model_fields["drain_seconds"].default
    short = {name: grace for name, grace in graces().items() if grace < drain + LEAST_MARGIN}
    assert short == {}


def test_every_host_that_can_choose_sends_sigterm() -> None:
    said = [
        fly["kill_signal"],
        compose["bot"]["stop_signal"],
        image.last("STOPSIGNAL").text,
        of_unit()["KillSignal"],
    ]
    assert set(said) == {"SIGTERM"}


def test_the_gate_of_a_deploy_asks_whether_the_process_is_up() -> None:
    """Not whether it is ready: it may be waiting for the old one, which waits for the gate."""
    assert render["healthCheckPath"] == railway["healthcheckPath"] == "/healthz"
    assert [check["path"] for check in fly["http_service"]["checks"]] == ["/healthz"]
    assert "/healthz" in image.last("HEALTHCHECK").text


def test_the_old_process_stays_until_the_new_one_can_take_over() -> None:
    assert railway["overlapSeconds"] > 0
    assert fly["deploy"]["strategy"] == "bluegreen"
    assert seconds(fly["http_service"]["checks"][0]["grace_period"]) >= 10


def test_a_bot_that_polls_is_never_put_to_sleep() -> None:
    assert fly["http_service"]["auto_stop_machines"] == "off"
    assert fly["http_service"]["min_machines_running"] == 1
    assert render["plan"] != "free"
    assert heroku["formation"]["web"] == {"quantity": 1, "size": "basic"}


def test_who_is_misconfigured_is_not_started_again_and_again() -> None:
    unit = of_unit()
    assert unit["Restart"] == "on-failure"
    assert unit["RestartPreventExitStatus"] == str(EXIT_CONFIGURATION)
    assert railway["restartPolicyType"] == "ON_FAILURE"


def asked_by_render() -> set[str]:
    return {one["key"] for one in render["envVars"] if "sync" in one}


def test_heroku_and_render_ask_for_the_same() -> None:
    assert set(heroku["env"]) == asked_by_render()
    assert not any(one["required"] for one in heroku["env"].values())


def set_by(host: str) -> set[str]:
    match host:
        case "render":
            return {one["key"] for one in render["envVars"]} - asked_by_render()
        case "fly":
            return set(fly["env"])
        case "compose":
            return set(compose["bot"]["environment"])
        case "image":
            return set(image.environment) & {name.upper() for name in Settings.model_fields}
        case "unit":
            return set(re.findall(r"^Environment=(\w+)=", UNIT.read_text(), re.MULTILINE))
        case _:
            raise AssertionError(host)


@pytest.mark.parametrize("host", ["render", "fly", "compose", "image", "unit"])
def test_what_a_file_sets_is_a_setting(host: str) -> None:
    assert set_by(host)
    assert set_by(host) <= {name.upper() for name in Settings.model_fields}


def test_what_people_are_asked_for_is_in_the_example() -> None:
    example = (ROOT / ".env.example").read_text()
    known = set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))
    asked = set(heroku["env"]) | set_by("render") | set_by("fly") | set_by("compose")
    assert asked - known == set()
    assert "POSTGRES_PASSWORD" in example


def test_every_host_brings_a_database() -> None:
    assert any("postgresql" in addon for addon in heroku["addons"])
    assert "DATABASE_URL" in set_by("render")
    assert "@database:5432/" in compose["bot"]["environment"]["DATABASE_URL"]
    for host in ("railway", "fly"):
        assert "DATABASE_URL" in (ROOT / f"docs/deploy/{host}.md").read_text()


def test_compose_waits_for_a_database_that_is_well() -> None:
    assert compose["bot"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "pg_isready" in compose["database"]["healthcheck"]["test"]
    assert {one["restart"] for one in compose.values()} == {"unless-stopped"}


def test_compose_keeps_the_database_and_nothing_else() -> None:
    assert "volumes" not in compose["bot"]
    (kept,) = compose["database"]["volumes"]
    assert kept.partition(":")[0] in of_yaml("compose.yaml")["volumes"]


def test_composes_database_is_not_older_than_the_one_of_the_tests() -> None:
    folder = binaries()
    assert folder is not None
    said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
    tried = re.search(r"PostgreSQL\) (\d+)", said.stdout)
    used = re.fullmatch(r"postgres:(\d+)-alpine", compose["database"]["image"])
    assert tried and used
    assert int(used[1]) >= int(tried[1])
    assert int(of_yaml("render.yaml")["databases"][0]["postgresMajorVersion"]) >= int(tried[1])


def test_no_port_is_open_to_the_internet_that_need_not_be() -> None:
    assert "ports" not in compose["database"]
    assert all(port.startswith("127.0.0.1:") for port in compose["bot"]["ports"])
    assert of_yaml("render.yaml")["databases"][0]["ipAllowList"] == []


def test_no_password_is_in_a_file() -> None:
    text = (ROOT / "compose.yaml").read_text()
    given = re.findall(r"\$\{(\w+)(:\?[^}]+)?\}", text)
    assert given
    assert all(name in OF_COMPOSE and complaint for name, complaint in given)
    assert compose["database"]["environment"]["POSTGRES_PASSWORD"].startswith("${")


def test_every_file_listens_where_its_host_asks() -> None:
    port = int(image.environment["PORT"])
    assert fly["http_service"]["internal_port"] == int(fly["env"]["PORT"]) == port
    assert compose["bot"]["ports"] == [f"127.0.0.1:{port}:{compose['bot']['environment']['PORT']}"]
    assert image.last("EXPOSE").text == str(port)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_leads_from_nothing_to_the_first_reply(page: str) -> None:
    text = (ROOT / f"docs/deploy/{page}.md").read_text()
    steps = [int(number) for number in re.findall(r"^(\d+)\. ", text, re.MULTILINE)]
    assert steps == list(range(1, len(steps) + 1))
    for heading in ("## Steps", "## The claim code", "## To update", "## Is it well?"):
        assert heading in text, heading
    named = set(re.findall(r"(?:stillhere|python -m bots) ([a-z]+)\b", text))
    assert named & set(COMMANDS)
    assert f"({page}.md)" in (ROOT / "docs/deploy/README.md").read_text()
