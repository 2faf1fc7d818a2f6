"""What every test may ask for: a PostgreSQL server of its own, and databases."""

pytest_plugins = ["tests.postgres", "tests.databases"]
