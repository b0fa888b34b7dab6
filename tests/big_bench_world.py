"""Lines of Big Bench Audio's list of questions."""

from __future__ import annotations

from typing import Any

ANSWERS = {
    "formal_fallacies": "invalid",
    "navigate": "Yes",
    "object_counting": "11",
    "web_of_lies": "No",
}


def line(number: int, category: str = "navigate", **changes: Any) -> dict[str, Any]:
    return {
        "category": category,
        "official_answer": ANSWERS.get(category, "Yes"),
        "file_name": f"data/question_{number}.mp3",
        "id": number,
    } | changes
