"""What was not published stands in the run's warnings, from a file of the run folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxmeter.client.runfolder import RunFolder

FILE = "publish.json"
"""`{"mqtt": {"delivered": n, "undelivered": n, "problem": "..."}}`, of the last session."""

CODE = "mqtt-undelivered"
_CURE = "nothing of the run itself is missing; voxmeter check tries the broker"


def noted(summary: dict[str, Any], folder: RunFolder) -> dict[str, Any]:
    """Put the warning into a summary whose run has one, in place of an older one; return it."""
    from voxmeter.client.publish_process import Delivery

    kept = [one for one in summary["warnings"] if one["code"] != CODE]
    path = folder.path / FILE
    words = ""
    if path.is_file():
        try:
            words = Delivery(**json.loads(path.read_bytes())["mqtt"]).words()
        except (OSError, ValueError, KeyError, TypeError):
            words = f"MQTT: {FILE} is damaged: what was published is not known"
    if words:
        kept.append({"code": CODE, "text": words, "cure": _CURE})
    summary["warnings"] = kept
    return summary
