"""The service against its own description, with inputs that schemathesis makes of it."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from shared_core.serving import make_app
from tests.shared_core.serving.conftest import QUICK

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture
def app(tmp_path, small_model):
    return make_app(tmp_path / "memory.db", model=small_model, config=QUICK, most_bytes=100_000)


@pytest.fixture
def described(app):
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(
    max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
def test_it_keeps_to_its_description(case):
    if case.path.startswith("/v1/"):
        case.headers = {**(case.headers or {}), "X-SCG-Namespace": json.dumps(["anna"])}
    case.call_and_validate(checks=CHECKS, headers={"Host": "127.0.0.1"})
