"""What receivers check, and when a delivery is tried again: without any engine."""

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from truerank.deliver.addresses import connect, may_call, read_networks
from truerank.deliver.schedule import Schedule
from truerank.errors import SettingsInvalid
from truerank.webhooks import WebhookInvalid, member_hash, secret_bytes, signature, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, AT = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330
BODY = json.dumps({"type": "t", "timestamp": "2021-02-25T15:02:10Z", "data": {}}).encode()


def signed(**changes: str) -> dict[str, str]:
    return {
        "Webhook-Id": ID,
        "Webhook-Timestamp": str(AT),
        "Webhook-Signature": signature(secret_bytes(SECRET), ID, AT, BODY),
        **changes,
    }


def test_the_published_test_vector_comes_out() -> None:
    wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    assert signature(secret_bytes(SECRET), ID, AT, b'{"test": 2432232314}') == wanted


def test_a_genuine_request_is_taken_and_any_change_to_it_refused() -> None:
    assert verify(SECRET, signed(), BODY, now=AT + 299).id == ID
    other = "whsec_" + base64.b64encode(b"x" * 24).decode()
    several = signed() | {"Webhook-Signature": "v1,AAAA " + signed()["Webhook-Signature"]}
    assert verify([other, SECRET], several, BODY, now=AT).type == "t"

    for headers, body, secrets, now in [
        (signed(), BODY + b" ", SECRET, AT),
        (signed(), BODY, other, AT),
        (signed(), BODY, SECRET, AT + 301),
        (signed(), BODY, SECRET, AT - 301),
        (signed(**{"Webhook-Id": "msg_other"}), BODY, SECRET, AT),
        (signed(**{"Webhook-Timestamp": str(AT + 1)}), BODY, SECRET, AT),
        (signed(**{"Webhook-Timestamp": "soon"}), BODY, SECRET, AT),
        (signed(**{"Webhook-Signature": ""}), BODY, SECRET, AT),
        (signed(**{"Webhook-Signature": "v1,é"}), BODY, SECRET, AT),
        ({"webhook-id": ID, "webhook-timestamp": str(AT)}, BODY, SECRET, AT),
        (signed(), BODY, "whsec_no base64", AT),
        (signed(), BODY, "whsec_é", AT),
        (signed(**{"Webhook-Timestamp": "9" * 400}), BODY, SECRET, AT),
        (signed(**{"Webhook-Id": "\udc80"}), BODY, SECRET, AT),
        (signed(**{"Webhook-Signature": "v1,\udc80"}), BODY, SECRET, AT),
        # Of a setting that isn't set: anybody can sign with it.
        (signed(**{"Webhook-Signature": signature(b"", ID, AT, BODY)}), BODY, "", AT),
        (signed(**{"Webhook-Signature": signature(b"", ID, AT, BODY)}), BODY, "whsec_", AT),
    ]:
        with pytest.raises(WebhookInvalid):
            verify(secrets, headers, body, now=now)


def test_the_hash_of_a_member_depends_on_the_secret() -> None:
    assert member_hash(SECRET, "ada") != member_hash("whsec_AAAA", "ada")
    assert member_hash(SECRET, "ada") == (
        "d6d1298db4201b6f4767030a12a5bc64387ab60d32b250d4b4164c8901df9bae"
    )


def test_pauses_grow_threefold_from_five_seconds_to_half_a_day_and_then_end() -> None:
    schedule = Schedule(jitter=lambda: 0.5)

    pauses = [schedule.pause_s(attempts) for attempts in range(1, 13)]

    assert pauses == [5, 15, 45, 135, 405, 1215, 3645, 10935, 32805, 43200, 43200, None]
    assert Schedule(jitter=lambda: 0.0).pause_s(1) == 4
    assert Schedule(jitter=lambda: 1.0).pause_s(1) == pytest.approx(6)
    assert schedule.pause_s(1, retry_after_s=60) == 60
    assert schedule.pause_s(1, retry_after_s=1e9) == 43200
    assert schedule.pause_s(4, retry_after_s=60) == 135


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("0.0.0.0", False),  # noqa: S104 - nobody binds it
        ("10.1.2.3", True),  # in a network that is named
        ("10.2.2.3", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fec0::1", False),
        ("fd00::1", True),
        ("fd01::1", False),
        ("ff02::1", False),
        ("::ffff:10.1.2.3", True),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::a9fe:a9fe", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::5db8:d822", True),
        ("64:ff9b:1::7f00:1", False),
        ("::7f00:1", False),
        ("3fff::1", False),
        ("168.63.129.16", False),
        ("192.0.0.192", False),
    ],
)
def test_only_public_addresses_and_those_of_named_networks_may_be_called(
    address: str, *, allowed: bool
) -> None:
    assert may_call(address, read_networks("10.1.0.0/16, fd00::/16")) is allowed


def test_an_address_that_is_silent_leaves_time_for_the_next_and_all_have_one_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as silent:
        address = silent.getsockname()
        waiting = [socket.socket() for _ in range(8)]  # so that the server takes no more
        for each in waiting:
            each.settimeout(0)
            each.connect_ex(address)
        with closing(socket.create_server(("127.0.0.1", 0))) as server:
            found = [address, server.getsockname()]
            monkeypatch.setattr(
                socket, "getaddrinfo",
                lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 0, "", a) for a in found],
            )  # fmt: skip
            networks = read_networks("127.0.0.0/8")

            with closing(connect("two", 80, networks, lambda: 0.2)) as opened:
                assert opened.getpeername() == server.getsockname()
            left = iter((0.2,))
            with pytest.raises(TimeoutError, match="no more"):
                connect("two", 80, networks, lambda: _next(left))
            found.reverse()
            with closing(connect("two", 80, networks, lambda: 60.0)) as opened:
                assert opened.gettimeout() == 30.0
        for each in waiting:
            each.close()


def _next(left: Iterator[float]) -> float:
    for each in left:
        return each
    raise TimeoutError("no more")


def test_networks_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SettingsInvalid, match="TRUERANK_WEBHOOK_NETWORKS"):
        read_networks("10.1.0.0/16,nowhere")
