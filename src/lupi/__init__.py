"""Learn with privileged information, predict without it, and know whether it helped."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lupi.attached import attach
    from lupi.classical.svm_plus import SVMPlus
    from lupi.design import Design, Looks
    from lupi.estimators.network import LupiClassifier, LupiRegressor
    from lupi.estimators.text import LupiTextClassifier, LupiTextRegressor
    from lupi.evidence.judge import judge
    from lupi.nn.noise import HeteroscedasticDropout
    from lupi.nn.sites import Site, find_sites
    from lupi.ship.student import load_student

__version__ = "0.2.0"
__all__ = [
    "Design",
    "HeteroscedasticDropout",
    "Looks",
    "LupiClassifier",
    "LupiRegressor",
    "LupiTextClassifier",
    "LupiTextRegressor",
    "SVMPlus",
    "Site",
    "__version__",
    "attach",
    "find_sites",
    "judge",
    "load_student",
]


_HOMES = {
    "Design": "lupi.design",
    "Looks": "lupi.design",
    "HeteroscedasticDropout": "lupi.nn.noise",
    "LupiClassifier": "lupi.estimators.network",
    "LupiRegressor": "lupi.estimators.network",
    "LupiTextClassifier": "lupi.estimators.text",
    "LupiTextRegressor": "lupi.estimators.text",
    "SVMPlus": "lupi.classical.svm_plus",
    "Site": "lupi.nn.sites",
    "attach": "lupi.attached",
    "find_sites": "lupi.nn.sites",
    "judge": "lupi.evidence.judge",
    "load_student": "lupi.ship.student",
}


def __getattr__(name: str) -> Any:
    """Import torch or scikit-learn only when something that needs it is asked for."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lupi' has no attribute {name!r}")
