import pytest


@pytest.fixture
def request_golden(request):
    return request.config
