import pytest
from msgspec.structs import replace

from core.domain.keys import Address
from core.runtime.access import Access
from storage.memory import MemoryStore
from tests.core.domain.samples import HOME
from tests.core.runtime.house import said

TEAM = Address(platform="chat", account="bot", chat="D1", workspace="T1")


@pytest.mark.parametrize(
    ("allowed", "address", "role"),
    [
        ("*", HOME, "allowed"),
        ("chat:7", HOME, "allowed"),
        ("chat:T1.7", TEAM, "allowed"),
        ("chat:7", TEAM, None),
        ("chat:77", HOME, None),
        ("other:7", HOME, None),
        ("chat:7", replace(HOME, platform="other"), None),
    ],
)
async def test_the_operators_list_names_a_person_of_one_platform(
    allowed: str, address: Address, role: str | None
) -> None:
    access = Access(MemoryStore(), frozenset({allowed}))

    assert await access.role(said("hi", 1, address=address)) == role


async def test_what_the_platform_itself_proves_is_the_owner() -> None:
    access = Access(MemoryStore(), frozenset())

    assert await access.role(said("hi", 1, trusted=True)) == "owner"


async def test_no_code_is_no_claim() -> None:
    access = Access(MemoryStore(), frozenset())

    assert not await access.claims(said("/start", 1), "")
    assert not await access.claims(said("/start", 1), "guess")
    await access.claim_code("S3CRET")
    assert not await access.claims(said("/start", 1), "s3cret")
    assert await access.claims(said("/start", 1), "S3CRET")


def test_an_id_carries_its_workspace() -> None:
    assert said("hi", 1, address=TEAM).person == "T1.7"
    assert said("hi", 1).person == "7"
