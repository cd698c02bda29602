"""What the code may not do, looked up in the code itself; and what is installed is pinned."""

import ast
import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/lupi").rglob("*.py"))
FORBIDDEN = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "xml.etree"}
CALLS = {"eval", "exec", "extractall", "unpack_archive", "system", "unsafe_load", "full_load"}


def imports(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(ROOT / "src")) for p in SOURCES])
def test_loading_runs_no_code(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not imports(tree) & FORBIDDEN
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        name = ast.unparse(node.func)
        assert called(node) not in CALLS or name.endswith(".eval"), name  # net.eval() is torch's
        if name == "torch.load":
            assert options.get("weights_only") == "True"
        if name == "np.load":
            assert options.get("allow_pickle") == "False"
        assert options.get("allow_pickle", "False") == "False"
        assert options.get("shell", "False") == "False"
        if name == "yaml.load":
            assert ast.unparse(node.args[1]) == "_Loader"  # of settings.py


def pins() -> dict[str, str]:
    lines = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return {canonicalize_name(name): pinned for name, pinned in lines}


def test_every_package_that_is_installed_for_lupi_is_pinned() -> None:
    """An audit of constraints.txt is one of all that `make test` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    todo = [Requirement(r) for r in (*project["dependencies"], *extras["dev"])]
    seen: set[str] = set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        wanted = [*requirement.extras, ""]
        marker = requirement.marker
        if name in seen or (marker and not marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        try:
            installed = version(name).partition("+")[0]  # such as +cpu
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        if name != "lupi":  # whose extra `dev` contains others
            assert pins().get(name) == installed, f"{name} {installed} is not in constraints.txt"
        for line in requires(name) or []:
            inner = Requirement(line)
            if not inner.marker or any(inner.marker.evaluate({"extra": e}) for e in wanted):
                inner.marker = None
                todo.append(inner)
    assert {"torch", "numpy", "pytest"} <= seen
