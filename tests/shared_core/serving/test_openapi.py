"""The service against its own description, with inputs that schemathesis makes of it."""

import json

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from shared_core.serving import make_app
from tests.shared_core.serving.conftest import QUICK

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


EXAMPLES = settings(
    max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
PATHS = {
    *(f"/{name}" for name in ("health", "ready", "metrics")),
    *(f"/v1/{name}" for name in ("remember", "recall", "answer", "explain", "get", "entries", "forget", "clear")),
    *(f"/v1/{name}" for name in ("consolidate", "stats", "config")),
}


def test_it_keeps_to_its_description(tmp_path, small_model):
    app = make_app(tmp_path / "memory.db", model=small_model, config=QUICK, most_bytes=100_000)
    statuses = {}

    def check(case):
        headers = {"Host": "127.0.0.1", "X-SCG-Namespace": json.dumps(["anna"])}
        answer = case.call_and_validate(checks=CHECKS, headers=headers)
        statuses.setdefault(case.operation.path, set()).add(answer.status_code)

    for result in schemathesis.openapi.from_asgi("/openapi.json", app).get_all_operations():
        EXAMPLES(given(result.ok().as_strategy())(check))()
    assert statuses.keys() == PATHS
    assert all(200 in seen for path, seen in statuses.items() if path != "/v1/explain"), statuses
