"""The provenance of a result: its settings as YAML, and its environments."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from lupi.errors import LupiError
from lupi.files import read_json
from lupi.records import ComparisonRecord

KEY_ORDER = ("name", "task", "network", "train", "arms", "sizes", "seeds", "tuning")


class _Dumper(yaml.SafeDumper):
    """Writes lists on one line and mappings in blocks."""


_Dumper.add_representer(
    list,
    lambda dumper, data: dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True),
)


def settings_yaml(record: ComparisonRecord) -> str:
    """Return the resolved settings as YAML that `lupi compare` accepts."""
    settings = dict(record.settings)
    if isinstance(settings.get("arms"), dict):
        # Records sort their keys, but the order of arms determines the reference.
        rank = {arm.name: i for i, arm in enumerate(record.arms)}
        arms = settings["arms"].items()
        settings["arms"] = dict(sorted(arms, key=lambda item: rank.get(item[0], len(rank))))
    keys = [key for key in KEY_ORDER if key in settings]
    keys += [key for key in settings if key not in KEY_ORDER]
    return as_yaml({key: settings[key] for key in keys})


def as_yaml(settings: Mapping[str, Any]) -> str:
    """Return settings as readable YAML."""
    return yaml.dump(dict(settings), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)


def environments(folders: Iterable[Path]) -> tuple[dict[str, str], list[str]]:
    """Merge the environment.json of all runs; return all values per key, and warnings."""
    values: dict[str, dict[str, None]] = {}
    warnings = []
    for folder in folders:
        path = folder / "environment.json"
        if not path.exists():
            continue
        try:
            document: dict[str, Any] = read_json(path)
        except LupiError as error:
            warnings.append(str(error))
            continue
        for key, value in document.items():
            values.setdefault(key, {})[str(value)] = None
    return {key: " | ".join(found) for key, found in values.items()}, warnings
