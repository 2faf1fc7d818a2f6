"""How hard the property tests try: the same in every run, or HYPOTHESIS_PROFILE=explore."""

import os

from hypothesis import HealthCheck, settings

EXAMPLES = 250

settings.register_profile(
    "steady",
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore", settings.get_profile("steady"), max_examples=10 * EXAMPLES, derandomize=False
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
