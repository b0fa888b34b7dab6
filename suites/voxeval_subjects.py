"""VoxEval's subjects and the four groups of MMLU that they are reported in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

STEM, SOCIAL, HUMANITIES, OTHER = "STEM", "social sciences", "humanities", "other"
UNKNOWN = "unknown"
"""Group of a subject that is not one of MMLU's."""

PUBLISHED_COUNTS: Mapping[str, int] = {STEM: 18, SOCIAL: 12, HUMANITIES: 13, OTHER: 13}
"""Subjects of each group in VoxEval. MMLU has 14 in the last: VoxEval leaves one out."""

MATHS: Mapping[str, str] = {
    "elementary_mathematics": "elementary",
    "high_school_mathematics": "high school",
    "college_mathematics": "college",
}
"""Subjects of mathematics by level, easiest first; the ones with chains of thought."""

_SUBJECTS: Mapping[str, str] = {
    STEM: """
        abstract_algebra astronomy college_biology college_chemistry college_computer_science
        college_mathematics college_physics computer_security conceptual_physics
        electrical_engineering elementary_mathematics high_school_biology high_school_chemistry
        high_school_computer_science high_school_mathematics high_school_physics
        high_school_statistics machine_learning
    """,
    SOCIAL: """
        econometrics high_school_geography high_school_government_and_politics
        high_school_macroeconomics high_school_microeconomics high_school_psychology
        human_sexuality professional_psychology public_relations security_studies sociology
        us_foreign_policy
    """,
    HUMANITIES: """
        formal_logic high_school_european_history high_school_us_history
        high_school_world_history international_law jurisprudence logical_fallacies
        moral_disputes moral_scenarios philosophy prehistory professional_law world_religions
    """,
    OTHER: """
        anatomy business_ethics clinical_knowledge college_medicine global_facts human_aging
        management marketing medical_genetics miscellaneous nutrition professional_accounting
        professional_medicine virology
    """,
}

GROUP_OF: Mapping[str, str] = {
    subject: group for group, listed in _SUBJECTS.items() for subject in listed.split()
}
"""Group of each of MMLU's 57 subjects."""


def group_of(subject: str) -> str:
    """Return the group of a subject, `unknown` where MMLU has no such subject."""
    return GROUP_OF.get(subject, UNKNOWN)


def count_warning(subjects: Iterable[str]) -> str | None:
    """Return a sentence where a download has other subjects than the published benchmark."""
    counts = dict.fromkeys(PUBLISHED_COUNTS, 0)
    for subject in subjects:
        group = group_of(subject)
        if group in counts:
            counts[group] += 1
    if counts == PUBLISHED_COUNTS:
        return None
    found = ", ".join(f"{counts[group]} {group}" for group in counts)
    published = ", ".join(f"{count} {group}" for group, count in PUBLISHED_COUNTS.items())
    return (
        f"{found} subjects here, and {published} in the published benchmark: averages of groups "
        "are over other subjects"
    )
