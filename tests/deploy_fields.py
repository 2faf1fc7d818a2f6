"""The fields that hosts take in their files, as JSON schemas: only those that we may come to use.

They are written from the hosts' own pages, whose addresses stand above each. What is not named here
is refused. (The schema of compose files is the published one; a package brings it.)
"""

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string", "minLength": 1}
SWITCH: Final[Schema] = {"type": "boolean"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
DURATION: Final[Schema] = {"type": "string", "pattern": r"^\d+(ms|s|m)$"}
PATH: Final[Schema] = {"type": "string", "pattern": r"^/"}


def record(*required: str, **fields: Schema) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def many(one: Schema) -> Schema:
    return {"type": "array", "items": one, "minItems": 1}


def table(key: str, one: Schema) -> Schema:
    return {"type": "object", "patternProperties": {key: one}, "additionalProperties": False}


# https://devcenter.heroku.com/articles/app-json-schema, and the lengths of its first schema, which
# the package app.json of npm still has.
HEROKU: Final[Schema] = record(
    "name",
    name={"type": "string", "minLength": 3, "maxLength": 30, "pattern": "^[a-zA-Z-_.]+"},
    description={"type": "string", "maxLength": 140},
    keywords=many(TEXT),
    website=TEXT,
    repository=TEXT,
    logo=TEXT,
    success_url=TEXT,
    scripts=record(**{"postdeploy": TEXT, "pr-predestroy": TEXT}),
    env=table(
        "^[A-Z][A-Z0-9_]*$",
        record(
            "description",
            "required",
            description=TEXT,
            value=TEXT,
            required=SWITCH,
            generator={"enum": ["secret"]},
        ),
    ),
    formation=table(
        "^[a-zA-Z0-9_-]+$",
        record(
            "quantity",
            quantity=COUNT,
            # Eco dynos sleep when no web request comes, so they are not among these.
            size={"enum": ["basic", "standard-1x", "standard-2x", "performance-m"]},
        ),
    ),
    addons=many({"anyOf": [TEXT, record("plan", **{"plan": TEXT, "as": TEXT})]}),
    buildpacks=many(record("url", url=TEXT)),
    stack={"enum": ["heroku-22", "heroku-24"]},
)

_RENDER_VARIABLE: Final[Schema] = {
    "anyOf": [
        record("key", "sync", key=TEXT, sync={"const": False}),
        record("key", "value", key=TEXT, value={"type": ["string", "number"]}),
        record("key", "generateValue", key=TEXT, generateValue={"const": True}),
        record(
            "key",
            "fromDatabase",
            key=TEXT,
            fromDatabase=record(
                "name",
                "property",
                name=TEXT,
                property={"enum": ["connectionString", "host", "port", "user", "password"]},
            ),
        ),
    ]
}

# https://render.com/docs/blueprint-spec; its schema is at https://render.com/schema/render.yaml.json
RENDER: Final[Schema] = record(
    "services",
    "databases",
    services=many(
        record(
            "type",
            "name",
            "runtime",
            type={"enum": ["web", "worker", "pserv"]},
            name=TEXT,
            runtime={"enum": ["docker", "python"]},
            region={"enum": ["oregon", "ohio", "frankfurt", "singapore", "virginia"]},
            plan={"enum": ["starter", "standard", "pro", "pro plus", "pro max", "pro ultra"]},
            numInstances={"type": "integer", "minimum": 1},
            dockerfilePath=TEXT,
            dockerContext=TEXT,
            dockerCommand=TEXT,
            preDeployCommand=TEXT,
            healthCheckPath=PATH,
            maxShutdownDelaySeconds={"type": "integer", "minimum": 1, "maximum": 300},
            autoDeployTrigger={"enum": ["off", "commit", "checksPass"]},
            envVars=many(_RENDER_VARIABLE),
        )
    ),
    databases=many(
        record(
            "name",
            name=TEXT,
            databaseName=TEXT,
            user=TEXT,
            plan={"enum": ["free", "basic-256mb", "basic-1gb", "basic-4gb", "pro-4gb"]},
            postgresMajorVersion={"enum": ["13", "14", "15", "16", "17", "18"]},
            diskSizeGB={"type": "integer", "minimum": 1},
            ipAllowList={"type": "array", "items": record("source", source=TEXT, description=TEXT)},
        )
    ),
)

# https://docs.railway.com/config-as-code/reference. Its examples give overlapSeconds and
# drainingSeconds as strings, which Railway refuses: numbers, says railwayapp/docs issue 1243.
RAILWAY: Final[Schema] = record(
    "$schema",
    **{"$schema": {"const": "https://railway.com/railway.schema.json"}},
    build=record(
        "builder",
        builder={"enum": ["RAILPACK", "DOCKERFILE"]},
        dockerfilePath=TEXT,
        buildCommand=TEXT,
        watchPatterns=many(TEXT),
    ),
    deploy=record(
        startCommand=TEXT,
        preDeployCommand=many(TEXT),
        healthcheckPath=PATH,
        healthcheckTimeout=COUNT,
        restartPolicyType={"enum": ["ON_FAILURE", "ALWAYS", "NEVER"]},
        restartPolicyMaxRetries=COUNT,
        overlapSeconds=COUNT,
        drainingSeconds=COUNT,
    ),
)

_FLY_CHECK: Final[Schema] = record(
    "path",
    path=PATH,
    method={"enum": ["GET", "HEAD"]},
    grace_period=DURATION,
    interval=DURATION,
    timeout=DURATION,
    protocol={"enum": ["http", "https"]},
)

# https://fly.io/docs/reference/configuration/; its schema is the fly.json of SchemaStore.
FLY: Final[Schema] = record(
    app=TEXT,
    primary_region={"type": "string", "pattern": "^[a-z]{3}$"},
    kill_signal={"enum": ["SIGINT", "SIGTERM", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL"]},
    kill_timeout=DURATION,
    swap_size_mb=COUNT,
    build=record(dockerfile=TEXT, ignorefile=TEXT, image=TEXT),
    deploy=record(
        release_command=TEXT,
        strategy={"enum": ["canary", "rolling", "bluegreen", "immediate"]},
        wait_timeout=DURATION,
    ),
    env=table("^[A-Z][A-Z0-9_]*$", {"type": "string"}),
    http_service=record(
        "internal_port",
        internal_port={"type": "integer", "minimum": 1, "maximum": 65535},
        force_https=SWITCH,
        auto_stop_machines={"enum": ["off", "stop", "suspend"]},
        auto_start_machines=SWITCH,
        min_machines_running=COUNT,
        checks=many(_FLY_CHECK),
    ),
    vm=many(
        record(
            size={"enum": ["shared-cpu-1x", "shared-cpu-2x", "shared-cpu-4x"]},
            memory={"type": "string", "pattern": r"^\d+(mb|gb)$"},
        )
    ),
)
