"""Collects one named constant from each module of a package; importing them has no other effect."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any


def discover(package: ModuleType, constant: str) -> dict[str, Any]:
    """Modules by name, with their constant; modules without it are left out."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}
    return {
        name: getattr(module, constant)
        for name, module in modules.items()
        if hasattr(module, constant)
    }
