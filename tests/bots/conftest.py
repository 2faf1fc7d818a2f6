from tests.databases import sqlite_url

__all__ = ["sqlite_url"]
