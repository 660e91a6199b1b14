"""Sort keys: the order of bytes is the order of the values, in PostgreSQL and in Python."""

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Connection = psycopg.Connection[Any]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
int64s = st.integers(-(2**63), 2**63 - 1)
instants = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
rows = st.tuples(
    int64s | st.integers(-2, 2),
    st.tuples(int64s, int64s | st.integers(-1, 1)),
    instants,
    st.integers(1, 2**63 - 1),
)


def one(conn: Connection, query: str, *parameters: object) -> Any:
    row = conn.execute(query, parameters).fetchone()
    assert row is not None
    return row[0]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(int64s | st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]), max_size=20))
def test_signed_bytes_are_in_the_order_of_the_numbers(
    rolled_back: Connection, numbers: list[int]
) -> None:
    found = one(
        rolled_back,
        "SELECT array(SELECT truerank.signed_bytes(n) FROM unnest(%s::bigint[]) AS n)",
        numbers,
    )

    assert found == [(number + 2**63).to_bytes(8) for number in numbers]
    assert sorted(found) == [(number + 2**63).to_bytes(8) for number in sorted(numbers)]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=instants)
def test_instants_are_microseconds_exactly(rolled_back: Connection, at: datetime) -> None:
    found = one(rolled_back, "SELECT truerank.instant_us(%s)", at)

    assert found == (at - EPOCH) // timedelta(microseconds=1)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=rows,
    second=rows,
    descending=st.booleans(),
    directions=st.tuples(st.booleans(), st.booleans()),
)
def test_the_better_row_has_the_smaller_key(
    rolled_back: Connection,
    first: Any,
    second: Any,
    *,
    descending: bool,
    directions: tuple[bool, bool],
) -> None:
    def key(row: Any) -> bytes:
        value, ties, at, position = row
        found = one(
            rolled_back,
            "SELECT truerank.sort_key(%s::bigint, %s, truerank.tie_bytes(%s::bigint[], %s), %s,"
            " %s::bigint)",
            value, descending, list(ties), list(directions), at, position,
        )  # fmt: skip
        assert len(found) == 40
        return bytes(found)

    def place(row: Any) -> tuple[Any, ...]:
        value, ties, at, position = row
        down = zip((value, *ties), (descending, *directions), strict=True)
        return *(-number if desc else number for number, desc in down), at, position

    assert (key(first) < key(second)) == (place(first) < place(second))
    assert (key(first) == key(second)) == (first == second)


def test_a_board_without_tie_breaks_has_keys_of_24_bytes(rolled_back: Connection) -> None:
    found = one(
        rolled_back,
        "SELECT truerank.sort_key(-1::bigint, true, '', timestamptz '1969-12-31Z', 7::bigint)",
    )

    assert found == bytes.fromhex("8000000000000000 7fffffebe228a000 8000000000000007")


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=50)
    | st.uuids().map(str)
)
def test_only_the_canonical_form_is_a_uuid(rolled_back: Connection, text: str) -> None:
    def canonical(text: str) -> bool:
        parts = text.split("-")
        return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
            c in "0123456789abcdefABCDEF" for part in parts for c in part
        )

    assert one(rolled_back, "SELECT truerank.is_uuid(%s)", text) == canonical(text)
    made = UUID(str(one(rolled_back, "SELECT truerank.hashed_uuid(%s)", text)))
    assert (made.version, made.variant) == (8, "specified in RFC 4122")


def test_the_uuid_of_a_text_is_made_from_its_sha256(rolled_back: Connection) -> None:
    digits = list(sha256("order é".encode()).hexdigest()[:32])
    digits[12] = digits[16] = "8"

    assert one(rolled_back, "SELECT truerank.hashed_uuid('order é')") == UUID("".join(digits))
