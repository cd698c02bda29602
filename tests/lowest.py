"""Print the lowest version of every dependency that pyproject.toml allows, as pins for pip."""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("distributed", "translation", "excel", "figures", "shards")
"""Not onnx, which needs a newer torch than the rest."""

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for line in (*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])):
    if not re.fullmatch(r"[\w.-]+>=[\w.]+", line):
        sys.exit(f"pyproject.toml: {line} has no lower bound")
    print(line.replace(">=", "=="))
