"""What OpenLineage requires: RunEvent 2-0-2, the facets `schema` and `columnLineage` 1-2-0."""

import json
import re
import uuid
from datetime import datetime
from urllib.parse import urlsplit

SPEC = "https://openlineage.io/spec"
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
TYPES = ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")


def events_of(path):
    """Return the events of a file, held against the schemas."""
    *lines, end = path.read_text(encoding="utf-8").split("\n")
    assert end == ""
    events = [json.loads(line) for line in lines]
    for event in events:
        require_run_event(event)
    return events


def require_run_event(event):
    assert DATE_TIME.fullmatch(event["eventTime"])
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    require_uri(event["producer"])
    assert event["schemaURL"] == f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert event["eventType"] in TYPES
    assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
    require_texts(event["job"], "namespace", "name")
    for data_set in (*event["inputs"], *event["outputs"]):
        require_texts(data_set, "namespace", "name")
        for name, facet in data_set.get("facets", {}).items():
            require_uri(facet["_producer"])
            require_facet[name](facet)


def require_schema(facet):
    name = "SchemaDatasetFacet"
    assert facet["_schemaURL"] == f"{SPEC}/facets/1-2-0/{name}.json#/$defs/{name}"
    for field in facet["fields"]:
        require_texts(field, "name")


def require_lineage(facet):
    name = "ColumnLineageDatasetFacet"
    assert facet["_schemaURL"] == f"{SPEC}/facets/1-2-0/{name}.json#/$defs/{name}"
    for column in facet["fields"].values():
        assert column["inputFields"]
        for source in column["inputFields"]:
            require_texts(source, "namespace", "name", "field")


def require_texts(value, *names):
    assert all(isinstance(value[name], str) and value[name] for name in names)


def require_uri(text):
    parts = urlsplit(text)
    assert parts.scheme
    assert parts.path
    assert re.fullmatch(r"[!-~]+", text)


require_facet = {"schema": require_schema, "columnLineage": require_lineage}
