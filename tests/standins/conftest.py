"""The environment that the genuine SDKs need to stay on this machine; it starts no stand-in."""

import os

os.environ["LITELLM_OFFLINE_MODE"] = "true"
os.environ["NO_PROXY"] = "127.0.0.1"
