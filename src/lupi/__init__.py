"""Learn with privileged information, predict without it, and know whether it helped."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lupi.classical.svm_plus import SVMPlus
    from lupi.design import Design, Looks
    from lupi.errors import LupiError
    from lupi.estimators.image import LupiImageClassifier
    from lupi.estimators.network import LupiClassifier, LupiRegressor
    from lupi.estimators.text import LupiTextClassifier, LupiTextRegressor
    from lupi.interface.compare import compare
    from lupi.interface.listing import list_methods
    from lupi.interface.result import Comparison
    from lupi.networks.pooling import AttentionPooling
    from lupi.noise import HeteroscedasticDropout, RegionPrior
    from lupi.noise.attach import attach
    from lupi.noise.sites import Site, find_sites
    from lupi.permission import allow
    from lupi.ship.export import export_onnx
    from lupi.ship.student import load_student
    from lupi.tasks.datasets import dataset_task
    from lupi.verdict.api import judge

__version__ = "0.2.0"

_HOMES = {
    "AttentionPooling": "lupi.networks.pooling",
    "Comparison": "lupi.interface.result",
    "dataset_task": "lupi.tasks.datasets",
    "Design": "lupi.design",
    "HeteroscedasticDropout": "lupi.noise",
    "Looks": "lupi.design",
    "LupiClassifier": "lupi.estimators.network",
    "LupiError": "lupi.errors",
    "LupiImageClassifier": "lupi.estimators.image",
    "LupiRegressor": "lupi.estimators.network",
    "LupiTextClassifier": "lupi.estimators.text",
    "LupiTextRegressor": "lupi.estimators.text",
    "RegionPrior": "lupi.noise",
    "SVMPlus": "lupi.classical.svm_plus",
    "Site": "lupi.noise.sites",
    "allow": "lupi.permission",
    "attach": "lupi.noise.attach",
    "compare": "lupi.interface.compare",
    "export_onnx": "lupi.ship.export",
    "find_sites": "lupi.noise.sites",
    "judge": "lupi.verdict.api",
    "list_methods": "lupi.interface.listing",
    "load_student": "lupi.ship.student",
}

__all__ = [
    "AttentionPooling",
    "Comparison",
    "Design",
    "HeteroscedasticDropout",
    "Looks",
    "LupiClassifier",
    "LupiError",
    "LupiImageClassifier",
    "LupiRegressor",
    "LupiTextClassifier",
    "LupiTextRegressor",
    "RegionPrior",
    "SVMPlus",
    "Site",
    "__version__",
    "allow",
    "attach",
    "compare",
    "dataset_task",
    "export_onnx",
    "find_sites",
    "judge",
    "list_methods",
    "load_student",
]


def __getattr__(name: str) -> Any:
    """Import torch or scikit-learn only when something that needs it is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lupi' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List everything public, imported or not."""
    return list(__all__)
