import pytest

from core.models.litellm_errors import retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "7", "retry-after-ms": "1500"}, 1.5),
        (
            {
                "date": "Tue, 05 May 2026 14:30:22 GMT",
                "retry-after": "Tue, 05 May 2026 14:31:22 GMT",
            },
            60.0,
        ),
        (
            {
                "date": "Tue, 05 May 2026 14:30:22 GMT",
                "retry-after": "Tue, 05 May 2026 14:29:22 GMT",
            },
            0.0,
        ),
        ({"retry-after": "Tue, 05 May 2026 14:31:22 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_how_long_the_vendor_wants_us_to_wait(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds
