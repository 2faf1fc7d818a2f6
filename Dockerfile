# Stillhere as an image. The first stage installs what requirements.txt pins, the second has only
# Python and the result. `tests/test_dockerfile.py` carries them out without an engine.
FROM python:3.13-slim AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /build
RUN python -m venv /venv
COPY requirements.txt ./
RUN /venv/bin/python -m pip install --no-compile --only-binary=:all: --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE ./
COPY bots/ bots/
COPY core/ core/
COPY scheduler/ scheduler/
COPY storage/ storage/
RUN /venv/bin/python -m pip install --no-compile --no-deps --no-build-isolation .
# What builds packages stays behind. litellm takes ten seconds to import without its bytecode, and
# nobody may write it later; unchecked, it counts whatever a builder does to the files' times.
RUN /venv/bin/python -m pip uninstall --yes --quiet setuptools pip \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /venv/lib


FROM python:3.13-slim

ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/data \
    STILLHERE_DATA=/data \
    PORT=8080
COPY --from=build /venv /venv
# For the SQLite file. With DATABASE_URL set nothing here matters.
RUN install -d -m 0700 -o 10001 -g 10001 /data
WORKDIR /data
USER 10001:10001
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('PORT') or 8080), timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["python", "-m", "bots", "run"]
