"""The part for composite keys: rows of tables behind posting lists of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pexeso.build.parts.base import ShardedPart
from pexeso.lake.tokens import NAME

if TYPE_CHECKING:
    from pexeso.options import BuildOptions

RECORD, ROWS = "rows", "rows"
FIELDS = ("table", "n_rows", "n_columns", "first_row", "labels", "texts", "cells")


class RowKeysPart(ShardedPart):
    package = "pexeso.composite.part"
    name = "row_keys"
    choices = ("composite",)
    stages = ("divide-rows", "rows")
    folders_are = "row_shards"
    reads_rows = True
    rows = ((ROWS, RECORD, FIELDS),)
    divided_by = ("table",)
    counts = ("tables", "rows", "cells", "values")
    summed = (("tables", "tables"), ("rows", "rows"), ("cells", "cells"))
    content = "rows"
    form = NAME

    def facts_hold(self, facts: Mapping[str, Any]) -> bool:
        return super().facts_hold(facts) and isinstance(facts.get("filters"), list)

    def write_options(self, options: BuildOptions) -> dict[str, Any]:
        return {"filters": tuple(options.row_filters)}

    def shown(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        names = [f"{filter_['name']}-{filter_['bits']}" for filter_ in facts["filters"]]
        return {**super().shown(facts), "filters": names}


ROW_KEYS_PART = RowKeysPart()
