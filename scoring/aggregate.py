"""How a benchmark draws one figure from many: each level of its groups has a declared rule.

Published tables differ in it even inside one paper: some groups count every item alike, others
every group alike, and figures are rounded before they are averaged again. So the rule of a level,
the way of rounding, and whether averages start from rounded figures are all declared, never
assumed. Every rule is a weighted mean, so a figure is a sum of shares times means of leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

Path = tuple[str, ...]
"""A group, outermost first; the empty path is the whole suite."""

Mode = Literal["half-up", "half-even", "half-down", "down"]
_MODES: Mapping[Mode, str] = {
    "half-up": "ROUND_HALF_UP",
    "half-even": "ROUND_HALF_EVEN",
    "half-down": "ROUND_HALF_DOWN",
    "down": "ROUND_DOWN",
}

Plain = Literal["micro", "macro"]
"""`micro`: every item counts alike. `macro`: every group of the level below counts alike."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Every group of the level below counts as much as its weight says.

    Attributes:
        of: Weight by the group's own name, above 0; a group without one counts 1.
    """

    of: Mapping[str, float]


Rule = Plain | Weights
Level = Rule | Mapping[str, Rule]
"""One rule for all groups of a level, or one by the group's own name (`micro` for others)."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """How figures become printed ones.

    Attributes:
        digits: Behind the point.
        mode: What happens to a half; published tables round half up.
        at_every_level: Whether averages are drawn from rounded figures. The default keeps all
            digits until the end.
    """

    digits: int = 2
    mode: Mode = "half-up"
    at_every_level: bool = False

    def of(self, number: Fraction) -> Fraction:
        """Return a number rounded."""
        return Fraction(self.text(number))

    def text(self, number: Fraction | float) -> str:
        """Return a number as it is printed: 0.125 to two digits, half up, is 0.13.

        A float is taken by its shortest decimal form, so that 2.675 is a half.
        """
        import decimal

        if isinstance(number, float):
            number = Fraction(repr(number))
        # An exact quotient with room to spare: no number of a table comes nearer to a half
        # without being one.
        context = decimal.Context(prec=60)
        exact = context.divide(decimal.Decimal(number.numerator), number.denominator)
        unit = decimal.Decimal(1).scaleb(-self.digits)
        rounded = exact.quantize(unit, rounding=_MODES[self.mode], context=context)
        return str(rounded or rounded.copy_abs())  # no table prints -0.00


@dataclass(frozen=True, slots=True)
class Scheme:
    """What a suite declares of its aggregation.

    Attributes:
        levels: Rules, the outermost first: the whole suite from its groups, each of them from
            the groups inside it, and so on; `micro` for levels that are not named.
        rounding: How its tables are printed.
    """

    levels: tuple[Level, ...] = ()
    rounding: Rounding = field(default_factory=Rounding)

    def row(self) -> dict[str, object]:
        """Return it as JSON values, for `run.json`."""
        return {
            "levels": [_level_row(level) for level in self.levels],
            "digits": self.rounding.digits,
            "rounding": self.rounding.mode,
            "from": "rounded" if self.rounding.at_every_level else "raw",
        }


def scheme_of(row: Mapping[str, object]) -> Scheme:
    """Return the scheme that `Scheme.row` wrote.

    Raises:
        ValueError: If it is something else.
    """
    levels, digits = row.get("levels"), row.get("digits")
    mode = next((one for one in _MODES if one == row.get("rounding")), None)
    if not isinstance(levels, list) or not isinstance(digits, int) or mode is None:
        raise ValueError("no aggregation scheme")
    rounding = Rounding(digits, mode, row.get("from") == "rounded")
    return Scheme(tuple(_read_level(level) for level in levels), rounding)


def _level_row(level: Level) -> object:
    if isinstance(level, Mapping):
        return {"by_group": {name: _rule_row(rule) for name, rule in level.items()}}
    return _rule_row(level)


def _rule_row(rule: Rule) -> object:
    return {"weights": dict(rule.of)} if isinstance(rule, Weights) else rule


def _read_level(value: object) -> Level:
    if isinstance(value, Mapping) and isinstance(value.get("by_group"), Mapping):
        return {str(name): _read_rule(rule) for name, rule in value["by_group"].items()}
    return _read_rule(value)


def _read_rule(value: object) -> Rule:
    match value:
        case "micro":
            return "micro"
        case "macro":
            return "macro"
        case {"weights": Mapping() as weights}:
            return Weights({str(name): float(weight) for name, weight in weights.items()})
        case _:
            raise ValueError(f"no aggregation rule: {value!r}")


@dataclass(frozen=True, slots=True)
class Node:
    """A group with the groups inside it.

    Attributes:
        path: Its path.
        rule: How its figure is drawn from those of `parts`.
        parts: The groups inside it; a leaf has none, its figure is the mean of its items.
    """

    path: Path
    rule: Rule
    parts: tuple[Node, ...] = ()

    def leaves(self) -> tuple[Path, ...]:
        """Return the paths of its leaves, its own for a leaf."""
        if not self.parts:
            return (self.path,)
        return tuple(leaf for part in self.parts for leaf in part.leaves())

    def nodes(self) -> tuple[Node, ...]:
        """Return itself and every group inside it, outer ones first."""
        return (self, *(node for part in self.parts for node in part.nodes()))


def tree(paths: Sequence[Path], levels: Sequence[Level] = ()) -> Node:
    """Return the whole suite as nested groups.

    Args:
        paths: Groups of the items; items that lie in a group beside its inner groups make up a
            leaf of their own with an empty name.
        levels: As in `Scheme`.
    """
    return _node((), sorted(set(paths)), tuple(levels))


def _node(path: Path, paths: Sequence[Path], levels: tuple[Level, ...]) -> Node:
    depth = len(path)
    if all(one == path for one in paths):
        return Node(path, "micro")
    padded = [one if len(one) > depth else (*one, "") for one in paths]
    inside: dict[str, list[Path]] = {}
    for one in padded:
        inside.setdefault(one[depth], []).append(one)
    level: Level = levels[depth] if depth < len(levels) else "micro"
    if isinstance(level, Mapping):
        level = level.get(path[-1] if path else "", "micro")
    parts = tuple(_node((*path, name), found, levels) for name, found in inside.items())
    return Node(path, level, parts)


def leaf_of(path: Path, leaves: Mapping[Path, int]) -> int:
    """Return the number of the leaf that an item with this path lies in.

    Raises:
        KeyError: If the item is none of those that the groups were made from.
    """
    deepest = max(map(len, leaves), default=0)
    for depth in range(len(path), deepest + 1):  # beside inner groups, at more than one level
        padded = (*path, *[""] * (depth - len(path)))
        if padded in leaves:
            return leaves[padded]
    raise KeyError(path)


def shares(node: Node, counts: Mapping[Path, int]) -> dict[Path, Fraction]:
    """Return how much each leaf counts in a group's figure; they add up to 1.

    Leaves without any item count nothing, and groups without any neither: what is left shares
    the whole.

    Args:
        node: The group.
        counts: Items that have a figure, by leaf.
    """
    return {leaf: share for leaf, share in _shares(node, counts, Fraction(1)).items() if share}


def _shares(node: Node, counts: Mapping[Path, int], whole: Fraction) -> dict[Path, Fraction]:
    if not node.parts:
        return {node.path: whole}
    filled = [(part, sum(counts.get(leaf, 0) for leaf in part.leaves())) for part in node.parts]
    filled = [(part, count) for part, count in filled if count]
    weights = [_weight(node.rule, part, count) for part, count in filled]
    total = sum(weights)
    found: dict[Path, Fraction] = {}
    for (part, _), weight in zip(filled, weights, strict=True):
        found |= _shares(part, counts, whole * weight / total)
    return found


def _weight(rule: Rule, part: Node, count: int) -> Fraction:
    match rule:
        case "micro":
            return Fraction(count)
        case "macro":
            return Fraction(1)
        case Weights(of):
            return Fraction(repr(float(of.get(part.path[-1], 1.0))))


def figure(
    node: Node,
    means: Mapping[Path, Fraction],
    counts: Mapping[Path, int],
    rounding: Rounding | None = None,
) -> Fraction | None:
    """Return a group's figure; None where none of its leaves has one.

    Args:
        node: The group.
        means: Mean of the items of each leaf.
        counts: Number of these items; leaves without any need no mean.
        rounding: Rounds the figure of every group inside before it is averaged again, where it
            says so; the group's own figure is not rounded.
    """
    if not any(counts.get(leaf, 0) for leaf in node.leaves()):
        return None
    if rounding is None or not rounding.at_every_level:
        part = shares(node, counts)
        return sum((share * means[leaf] for leaf, share in part.items()), Fraction(0))
    if not node.parts:
        return means[node.path]
    found = [(part, figure(part, means, counts, rounding)) for part in node.parts]
    kept = [(part, rounding.of(value)) for part, value in found if value is not None]
    weights = [
        _weight(node.rule, part, sum(counts.get(leaf, 0) for leaf in part.leaves()))
        for part, _ in kept
    ]
    summed = sum((one * value for one, (_, value) in zip(weights, kept, strict=True)), Fraction(0))
    return summed / sum(weights)


def all_alike(node: Node) -> Node:
    """Return the same groups with every item counting alike."""
    return replace(node, rule="micro", parts=tuple(all_alike(part) for part in node.parts))


def rule_name(rule: Rule) -> str:
    """Return a rule in one word: `micro`, `macro` or `weights`."""
    return "weights" if isinstance(rule, Weights) else rule
