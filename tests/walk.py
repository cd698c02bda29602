"""Follow one command through the package: which functions of which files it enters, and how often.

    python tests/walk.py train demo --arm het-dropout --out /tmp/walk

The words after the script are those of `lupi`. The first lines count what a run should do once:
parse settings, resolve them, hash them, build a task and a network.
"""

import sys
from collections import Counter
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lupi
from lupi.cli import main

ROOT = Path(lupi.__file__).parent
COUNTED = {
    "settings parsed": ("settings.py", "Settings.parse"),
    "settings resolved": ("settings.py", "Settings.resolved"),
    "settings hashed": ("settings.py", "fingerprint"),
    "tasks built": ("tasks/registry.py", "build_task"),
    "networks built": ("tasks/images/network.py", "build_network"),
}


class Walk:
    """Calls of the package's functions by code object, without bodies of modules and classes."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """See a call, as `sys.setprofile` reports it."""
        if event == "call":
            self.calls[frame.f_code] += 1

    def functions(self) -> dict[tuple[str, str], int]:
        """Return how often each function was called, by file and name."""
        found: dict[tuple[str, str], int] = {}
        for code, n in self.calls.items():
            path = Path(code.co_filename)
            is_function = code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")
            if is_function and path.is_relative_to(ROOT):
                name = code.co_qualname.replace(".<locals>", "")
                found[str(path.relative_to(ROOT)), name] = n
        return found


def show(functions: dict[tuple[str, str], int]) -> None:
    files = sorted({file for file, _ in functions})
    print(f"{len(functions)} functions in {len(files)} files")
    for what, where in COUNTED.items():
        print(f"{functions.get(where, 0):4} {what}")
    for file in files:
        print(f"\n{file}")
        for (of, name), n in sorted(functions.items()):
            if of == file:
                print(f"  {n:6} {name}")


if __name__ == "__main__":
    walk = Walk()
    sys.setprofile(walk)
    try:
        main()
    finally:
        sys.setprofile(None)
        show(walk.functions())
