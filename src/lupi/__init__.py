"""Learn with privileged information, predict without it, and know whether it helped."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lupi.nn.noise import HeteroscedasticDropout
    from lupi.nn.sites import Site, find_sites

__version__ = "0.1.0"
__all__ = ["HeteroscedasticDropout", "Site", "__version__", "find_sites"]


def __getattr__(name: str) -> Any:
    """Import torch only when something that needs it is asked for."""
    if name == "HeteroscedasticDropout":
        from lupi.nn.noise import HeteroscedasticDropout

        return HeteroscedasticDropout
    if name in ("Site", "find_sites"):
        from lupi.nn import sites

        return getattr(sites, name)
    raise AttributeError(f"module 'lupi' has no attribute {name!r}")
