"""Print the lowest version of every dependency that pyproject.toml allows, as pins for pip."""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("distributed", "excel", "shards")
"""Not onnx, which needs a newer torch than the rest."""

root = Path(__file__).parents[1]
project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
paper = tomllib.loads((root / "src/lupi_paper/pyproject.toml").read_text())["project"]
lines = [*project["dependencies"], *(line for line in paper["dependencies"] if line != "lupi")]
lines += [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
for line in lines:
    if not re.fullmatch(r"[\w.-]+>=[\w.]+", line):
        sys.exit(f"pyproject.toml: {line} has no lower bound")
    print(line.replace(">=", "=="))
