"""The part for exact-value searches: columns as sets of tokens, in shards.

It holds columns as sets of tokens with posting lists, by which overlap and containment are
searched, and bands of signatures of these sets where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pexeso.build.parts.base import ShardedPart

if TYPE_CHECKING:
    from pexeso.options import BuildOptions
    from pexeso.store.integrity import Problem
    from pexeso.store.local.reader import Store

SETS, TOKENS = "sets", "tokens"
SET_FIELDS, TOKEN_FIELDS = ("table", "position", "label"), ("table", "position", "value")


class TokenSetsPart(ShardedPart):
    package = "pexeso.sets.part"
    name = "token_sets"
    choices = ("overlap", "containment", "bands")
    stages = ("divide", "tokens")
    folders_are = "shards"
    rows = ((SETS, "set", SET_FIELDS), (TOKENS, "token", TOKEN_FIELDS))
    divided_by = ("table", "position")
    # Of columns, (column, token) pairs and distinct tokens; those deleted since included.
    counts = ("sets", "pairs", "tokens")
    summed = (("columns", "sets"), ("tokens", "tokens"), ("pairs", "pairs"))
    content = "token sets"

    def facts_hold(self, facts: Mapping[str, Any]) -> bool:
        parts = facts.get("parts")
        named = isinstance(parts, list) and all(isinstance(part, str) for part in parts)
        return named and super().facts_hold(facts)

    def own_choices(self, options: BuildOptions) -> tuple[str, ...]:
        """Return what these sets are to have, of the words by which they are asked for."""
        return tuple(word for word in self.choices if word in options.parts)

    def write_options(self, options: BuildOptions) -> dict[str, Any]:
        return {"parts": self.own_choices(options)}

    def check(
        self, store: Store, progress: Callable[[int, int], None] | None = None
    ) -> list[Problem]:
        return self._module("open").check(store)

    def shown(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: facts[fact] for name, fact in self.summed}


TOKEN_SETS_PART = TokenSetsPart()
