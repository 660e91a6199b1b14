"""Deliveries arrive at least once, under one key, whatever receivers and workers do."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from tests.deliver.conftest import BY, DEADLINE_S, LOCALHOST, Got, Post
from tests.projection.pipeline import wait_until
from truerank.crashpoints import VARIABLE
from truerank.deliver.messages import Due, body_of
from truerank.deliver.sending import Trust
from truerank.errors import CommandError, InvalidInput, WebhookUnknown
from truerank.projection import worker
from truerank.sessions import AWAY

NOWHERE = "http://127.0.0.1:9/"


def facts(post: Post, number: int = 1, name: str = "w") -> None:
    """Let something be told to one receiver."""
    post.conn.execute(
        "INSERT INTO truerank.webhook_delivery (webhook, kind, data)"
        " SELECT w.id, 'webhook.test', jsonb_build_object('n', n)"
        " FROM truerank.webhook AS w, generate_series(1, %s) AS n WHERE w.name = %s",
        (number, name),
    )


def test_a_receiver_that_fails_is_asked_again_then_parked_and_retried_under_the_same_key(
    post: Post,
) -> None:
    receiver = post.receiver()
    receiver.answer = lambda _: 500
    post.add("w", receiver.url)
    facts(post)

    post.deliver(attempts_max=3)

    assert post.states() == [("parked", "500", 3)]
    assert post.meter.outcomes == ["failed", "failed", "parked"]
    status = post.client.status()
    assert (status.deliveries_waiting, status.deliveries_parked) == (0, 1)
    (problem,) = [each for each in status.problems if each.code == "deliveries_parked"]
    assert (problem.verdict, "1 deliveries" in problem.message) == ("lagging", True)
    post.deliver()
    assert len(receiver.got) == 3
    receiver.answer = lambda _: 204
    assert post.client.retry_deliveries("w", **BY) == 1
    post.deliver()
    assert post.states() == [("delivered", "204", 1)]
    assert len({got.key for got in receiver.got}) == 1
    assert len({got.body for got in receiver.got}) == 1
    assert post.client.retry_deliveries("w", **BY) == 0


def test_a_redirect_is_a_failure_and_leads_nowhere(post: Post) -> None:
    receiver = post.receiver()
    receiver.answer = lambda _: (302, {"location": "/elsewhere"})
    post.add("w", receiver.url)
    facts(post)

    post.deliver(attempts_max=1)

    assert post.states() == [("parked", "302", 1)]
    assert [got.path for got in receiver.got] == ["/hook"]


def test_who_is_gone_is_sent_nothing_until_it_is_enabled(post: Post) -> None:
    receiver = post.receiver()
    receiver.answer = lambda _: 410
    post.add("w", receiver.url)
    facts(post)

    post.deliver(attempts_max=1)
    facts(post)
    post.deliver()

    found = post.client.webhook("w")
    assert (found.enabled, found.disabled_for, found.waiting) == (False, "410", 2)
    assert len(receiver.got) == 1
    assert "webhook_disabled" in {each.code for each in post.client.status().problems}
    receiver.answer = lambda _: 200
    post.client.change_webhook("w", enabled=True, **BY)
    post.deliver()
    assert [state for state, _, _ in post.states()] == ["delivered"] * 2


def test_a_slow_receiver_holds_nobody_else_up(post: Post) -> None:
    slow, quick, go_on = post.receiver(), post.receiver(), threading.Event()

    def wait(_: Got) -> int:
        go_on.wait()
        return 200

    slow.answer = wait
    post.add("slow", slow.url)
    post.add("w", quick.url)
    facts(post, 20, "slow")
    with post.delivering(webhook_at_once=2):
        slow.wait(2)
        facts(post, 5)

        quick.wait(5)

        assert len(slow.got) == 2
        go_on.set()
        slow.wait(20)
        wait_until(lambda: len(post.meter.outcomes) == 25, "all is noted")


def test_a_receiver_is_sent_no_more_at_once_than_the_settings_say_and_one_after_a_failure(
    post: Post,
) -> None:
    receiver, lock, together = post.receiver(), threading.Lock(), threading.Barrier(3)
    at_once, most = 0, {200: 0, 500: 0}
    status = 200

    def answer(_: Got) -> int:
        nonlocal at_once
        with lock:
            at_once += 1
            most[status] = max(most[status], at_once)
        if status == 200:
            together.wait(DEADLINE_S)
        with lock:
            at_once -= 1
        return status

    receiver.answer = answer
    post.add("w", receiver.url)
    facts(post, 12)
    with post.delivering(webhook_at_once=3):  # and another worker
        post.deliver(webhook_at_once=3)
        receiver.wait(12)
        wait_until(lambda: len(post.meter.outcomes) == 12, "all is noted")
    assert most[200] == 3
    assert len({got.key for got in receiver.got}) == 12

    status = 500
    post.conn.execute("UPDATE truerank.webhook SET failures = 1")
    facts(post, 4)
    post.deliver(attempts_max=1)
    assert most[500] == 1


def test_who_says_nothing_or_a_byte_now_and_then_is_given_up(post: Post) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        post.add("w", url)
        facts(post, 2)
        server.settimeout(0.02)
        opened: list[socket.socket] = []
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    opened.append(server.accept()[0])
                with suppress(OSError, IndexError):
                    opened[0].sendall(b"x")

        thread = threading.Thread(target=serve)
        thread.start()

        post.deliver(attempts_max=1, webhook_timeout_ms=300)

        ended.set()
        thread.join()
        for each in opened:
            each.close()
    assert post.states() == [("parked", "timeout", 1)] * 2


@pytest.mark.parametrize(
    ("sent", "outcome"), [(b"", "connection_lost"), (b"SSH-2.0 hello\r\n", "no_http")]
)
def test_whoever_answers_no_http_is_told_as_such(post: Post, sent: bytes, outcome: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        post.add("w", f"http://127.0.0.1:{server.getsockname()[1]}/")
        facts(post)

        def serve() -> None:
            with closing(server.accept()[0]) as opened:
                opened.recv(65536)
                opened.sendall(sent)
                opened.shutdown(socket.SHUT_WR)
                opened.recv(65536)

        thread = threading.Thread(target=serve)
        thread.start()
        post.deliver(attempts_max=1)
        thread.join()

    assert post.states() == [("parked", outcome, 1)]


def test_nobody_is_there_and_a_name_that_leads_inside_is_not_called(post: Post) -> None:
    receiver = post.receiver()
    port = receiver.url.rpartition(":")[2]
    for name, url in {
        "inside": receiver.url,
        "named": f"http://localhost:{port}",
        "mapped": f"http://[::ffff:127.0.0.1]:{port}",
        "metadata": "http://169.254.169.254/latest",
    }.items():
        post.add(name, url)
        facts(post, name=name)

    post.deliver(attempts_max=1, webhook_networks="10.0.0.0/8")

    for name in ("inside", "named", "mapped", "metadata"):
        assert post.states(name) == [("parked", "address_refused", 1)]
    assert receiver.got == []
    post.add("w", NOWHERE)
    facts(post)
    post.deliver(attempts_max=1)
    assert post.states() == [("parked", "connection_refused", 1)]


def test_a_certificate_must_be_trusted_and_name_the_host(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = post.receiver(encrypted=True)
    secret = post.add("w", receiver.url)
    facts(post)
    post.deliver(attempts_max=1)
    assert post.states() == [("parked", "tls_failed", 1)]

    monkeypatch.setenv("SSL_CERT_FILE", str(LOCALHOST))
    post.client.retry_deliveries("w", **BY)
    post.deliver()

    assert post.states() == [("delivered", "200", 1)]
    assert receiver.got[0].verified(secret).data == {"n": 1}


def test_a_worker_killed_after_the_answer_leaves_it_to_be_sent_again_under_the_same_key(
    post: Post,
) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    facts(post)
    environ = {
        **os.environ,
        VARIABLE: "delivery_sent",
        "TRUERANK_DATABASE_URL": str(post.settings.database_url),
        "TRUERANK_REDIS_URL": str(post.settings.redis_url),
        "TRUERANK_WEBHOOK_NETWORKS": "127.0.0.0/8",
    }
    killed = subprocess.run(
        [sys.executable, "-m", "truerank", "worker"],
        env=environ, check=False, timeout=60, capture_output=True,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert [got.message["data"] for got in receiver.got] == [{"n": 1}]
    post.deliver()
    assert len(receiver.got) == 1  # it is leased still

    post.conn.execute("UPDATE truerank.webhook_delivery SET due_at = now(), leased_until = now()")
    post.deliver()

    assert post.states() == [("delivered", "200", 2)]
    assert [got.key for got in receiver.got] == [receiver.got[0].key] * 2


def test_a_failure_that_comes_after_another_delivered_it_changes_nothing(post: Post) -> None:
    post.add("w", NOWHERE)
    facts(post)
    claim = "SELECT id FROM truerank.claim_deliveries(%s, 0, 4)"
    first, second = [f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2)]
    ((id_,),) = post.conn.execute(claim, (first,)).fetchall()
    assert post.conn.execute(claim, (second,)).fetchall() == [(id_,)]
    end = "SELECT truerank.end_delivery(%s, %s, %s, %s, %s, 0, false)"

    late = post.conn.execute(end, (id_, first, False, "500", None)).fetchone()
    done = post.conn.execute(end, (id_, second, True, "200", None)).fetchone()
    later = post.conn.execute(end, (id_, first, False, "500", None)).fetchone()

    assert (late, done, later) == (("waiting",), ("delivered",), ("delivered",))
    assert post.states() == [("delivered", "200", 2)]


def test_a_transaction_that_has_a_delivery_holds_no_other_one_up(post: Post) -> None:
    first, other = post.receiver(), post.receiver()
    post.add("w", first.url)
    post.add("v", other.url)
    facts(post)
    held = threading.Event()

    def wait(_: Got) -> int:
        held.wait(DEADLINE_S)
        return 200

    first.answer = wait
    with post.delivering(), post.caller() as caller:
        first.wait(1)
        caller.execute("SELECT FROM truerank.webhook_delivery FOR UPDATE")  # as an erasure does
        held.set()
        facts(post, 3, "v")

        wait_until(lambda: len(post.meter.outcomes) == 3, "the others are noted")

        assert post.states() == [("waiting", None, 1)]
        caller.rollback()
        wait_until(lambda: len(post.meter.outcomes) == 4, "and then this one")
    assert post.states() == [("delivered", "200", 1)]
    assert len(first.got) == 1


@pytest.mark.direct  # its own session is ended
def test_an_answer_that_came_while_postgresql_was_away_is_noted_when_it_is_back(
    post: Post,
) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    facts(post)
    deliverer, stop = post.deliverer(), threading.Event()
    assert post.settings.database_url is not None
    with closing(worker.connect(post.settings.database_url)) as conn:
        pid = conn.info.backend_pid

        def cut(_: Got) -> int:
            post.conn.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
            return 200

        receiver.answer = cut
        with pytest.raises(AWAY):
            deliverer.deliver(conn, post.meter, stop)
    assert post.states() == [("waiting", None, 1)]
    wait_until(
        lambda: all(each.name != "truerank webhook" for each in threading.enumerate()),
        "the answer to be there",
    )
    # So long that anybody may send it again by now; but whoever has the answer needn't.
    post.conn.execute("UPDATE truerank.webhook_delivery SET due_at = now(), leased_until = now()")

    deliverer.deliver(post.conn, post.meter, stop)

    assert post.states() == [("delivered", "200", 1)]
    assert len(receiver.got) == 1


def test_a_worker_told_to_stop_ends_soon_and_what_hangs_is_sent_again(post: Post) -> None:
    receiver, go_on = post.receiver(), threading.Event()

    def wait(_: Got) -> int:
        go_on.wait()
        return 200

    receiver.answer = wait
    post.add("w", receiver.url)
    facts(post)
    with post.delivering():
        receiver.wait(1)  # and leave the block: nothing waits for the receiver

    go_on.set()
    assert post.states() == [("waiting", None, 1)]


def test_a_rotated_secret_and_the_one_before_both_sign_until_the_overlap_ends(
    post: Post,
) -> None:
    receiver = post.receiver()
    first = post.add("w", receiver.url)
    second = post.client.rotate_webhook("w", overlap_s=3600, **BY)
    facts(post)
    post.deliver()
    got = receiver.got[0]
    assert got.verified(first) == got.verified(second) == got.verified("whsec_AAAA", second)
    assert post.client.webhook("w").former_until is not None

    third = post.client.rotate_webhook("w", overlap_s=0, **BY)
    facts(post)
    post.deliver()

    assert len(receiver.got[1].headers["webhook-signature"].split()) == 1
    receiver.got[1].verified(third)
    assert len({first, second, third}) == 3


def test_who_is_removed_while_a_request_is_under_way_is_forgotten(post: Post) -> None:
    receiver = post.receiver()

    def remove(_: Got) -> int:
        post.client.remove_webhook("w", **BY)
        return 200

    receiver.answer = remove
    post.add("w", receiver.url)
    facts(post, 2)

    post.deliver(webhook_at_once=1)

    assert len(receiver.got) == 1
    assert post.meter.outcomes == ["cancelled"]
    assert post.conn.execute("SELECT count(*) FROM truerank.webhook_delivery").fetchone() == (0,)
    with pytest.raises(WebhookUnknown):
        post.client.deliveries("w")


def test_what_was_delivered_is_kept_for_so_long_and_what_was_parked_until_somebody_cares(
    post: Post,
) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    facts(post, 2)
    post.deliver()
    receiver.answer = lambda _: 400
    facts(post)
    post.deliver(attempts_max=1)
    post.conn.execute(
        "INSERT INTO truerank.webhook_delivery (webhook, kind, data) VALUES (-1, 'x', '{}')"
    )  # of a receiver that was removed
    post.conn.execute(
        "UPDATE truerank.webhook_delivery SET ended_at = ended_at - interval '8 days'"
        " WHERE id = (SELECT min(id) FROM truerank.webhook_delivery)"
    )

    post.deliver()

    assert [state for state, _, _ in post.states()] == ["delivered", "parked"]
    assert post.conn.execute("SELECT count(*) FROM truerank.webhook_delivery").fetchone() == (2,)


def test_what_many_rows_are_left_of_is_found_without_reading_them(post: Post) -> None:
    post.add("w", NOWHERE)
    post.add("none", NOWHERE)
    post.conn.execute(
        "INSERT INTO truerank.webhook_delivery (webhook, kind, data, state, due_at, ended_at)"
        " SELECT w.id, 'x', '{}', s.state, now() + interval '1 hour', s.ended_at"
        " FROM truerank.webhook AS w, generate_series(1, 5000) AS n, (VALUES"
        " ('delivered', now()), ('waiting', NULL), ('parked', NULL)) AS s (state, ended_at)"
        " WHERE w.name = 'w'"
    )
    post.conn.execute("ANALYZE truerank.webhook_delivery")
    with post.caller() as caller:  # one transaction, whose reads are counted apart
        caller.execute("SELECT * FROM truerank.claim_deliveries(gen_random_uuid(), 60, 4)")
        caller.execute("SELECT truerank.sweep_deliveries(86400, 1000)")
        caller.execute("SELECT truerank.test_webhook('w')")
        for name in ("w", "none"):
            caller.execute("SELECT * FROM truerank.deliveries(%s, NULL, NULL, 10)", (name,))
        row = caller.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables"
            " WHERE schemaname = 'truerank' AND relname = 'webhook_delivery'"
        ).fetchone()
        caller.rollback()
    assert row is not None
    assert row[0] < 100


def test_a_change_that_somebody_leaves_open_holds_no_delivery_up(post: Post) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    post.add("v", NOWHERE)
    post.client.rotate_webhook("v", overlap_s=3600, **BY)
    post.conn.execute("UPDATE truerank.webhook SET former_until = now() WHERE name = 'v'")
    facts(post)
    with post.caller() as caller:
        caller.execute("UPDATE truerank.webhook SET kinds = kinds WHERE name = 'v'")

        post.deliver()

        caller.rollback()
    assert post.states() == [("delivered", "200", 1)]
    count = "SELECT count(*) FROM truerank.webhook WHERE former_secret IS NOT NULL"
    assert post.conn.execute(count).fetchone() == (1,)
    post.deliver()
    assert post.conn.execute(count).fetchone() == (0,)


def test_a_clock_that_was_set_back_leaves_nothing_waiting_for_the_time_it_had(post: Post) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    facts(post, 2)
    post.conn.execute("SELECT * FROM truerank.claim_deliveries(gen_random_uuid(), 60, 1)")
    post.conn.execute(
        "UPDATE truerank.webhook_delivery SET due_at = due_at + interval '1 year',"
        " leased_until = leased_until + interval '1 year'"
    )
    post.conn.execute("UPDATE truerank.webhook SET paused_until = now() + interval '1 year'")

    post.deliver()  # which looks for such
    post.deliver()

    assert {state for state, _, _ in post.states()} == {"delivered"}
    assert len(receiver.got) == 2


def test_a_test_is_sent_before_all_that_waits(post: Post) -> None:
    receiver = post.receiver()
    receiver.answer = lambda _: 500
    post.add("w", receiver.url)
    facts(post, 3)
    ((id_,),) = post.conn.execute("SELECT truerank.test_webhook('w')").fetchall()

    post.deliver(webhook_at_once=1, again_s=60.0)

    tested = post.client.deliveries("w")[0]
    assert (tested.id, tested.attempts) == (id_, 1)
    assert receiver.got[0].key == tested.key


def test_what_cannot_be_sent_at_all_is_a_failure_like_others(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = post.receiver()
    for name in ("bracket", "control", "mistake", "w"):
        post.add(name, receiver.url)
        facts(post, name=name)
    change = "UPDATE truerank.webhook SET url = %s WHERE name = %s"
    post.conn.execute(change, ("http://[x", "bracket"))
    post.conn.execute(change, (receiver.url + "\r\nx: y", "control"))
    third = post.client.deliveries("mistake")[0].id

    def body_or_mistake(due: Due) -> bytes:
        if due.id == third:
            raise ArithmeticError
        return body_of(due)

    monkeypatch.setattr("truerank.deliver.deliverer.body_of", body_or_mistake)

    post.deliver(attempts_max=1)

    assert post.states("bracket") == [("parked", "url_invalid", 1)]
    assert post.states("control") == [("parked", "no_http", 1)]
    assert post.states("mistake") == [("parked", "failed", 1)]
    assert post.states() == [("delivered", "200", 1)]
    assert len(receiver.got) == 1


def test_however_many_were_parked_all_are_retried_or_forgotten(post: Post) -> None:
    receiver = post.receiver()
    post.add("w", receiver.url)
    post.add("v", receiver.url)
    facts(post, 10_300)
    post.conn.execute("UPDATE truerank.webhook_delivery SET state = 'parked', attempts = 3")

    assert post.client.retry_deliveries("w", **BY) == 10_300
    post.client.remove_webhook("w", **BY)
    facts(post, 1, "v")
    post.deliver()

    left = post.conn.execute("SELECT state, count(*) FROM truerank.webhook_delivery GROUP BY 1")
    assert left.fetchall() == [("delivered", 1)]


def test_trusted_certificates_are_read_once_for_many_requests() -> None:
    trust = Trust()

    assert trust.context() is trust.context()
    assert trust.context().verify_mode is ssl.CERT_REQUIRED


def test_what_makes_no_sense_is_refused(post: Post) -> None:
    post.add("w", NOWHERE)
    usual = {"name": "v", "url": "https://example.com/", "kinds": ["season.final"]}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "http://example.com"}, "url"),
        ({"url": "ftp://example.com", "allow_http": True}, "url"),
        ({"url": "https://user:secret@example.com"}, "url"),
        ({"url": "https://example.com/\r\nhost: x"}, "url"),
        ({"url": "https://"}, "url"),
        ({"url": "https://example.com:99999/"}, "url"),
        ({"kinds": []}, "kinds"),
        ({"kinds": ["award.given", "all"]}, "kinds"),
        ({"name": ""}, "name"),
        ({"name": "w"}, "name"),
    ]
    for change, field in wrong:
        with pytest.raises(InvalidInput) as refused:
            post.client.add_webhook(**{**usual, **change, **BY})
        assert refused.value.field == field, change
    assert [each.name for each in post.client.webhooks()] == ["w"]
    for url, kinds in (("", None), (None, []), (None, ["all"]), (None, [None])):
        with pytest.raises(psycopg.errors.CheckViolation) as violated:
            post.conn.execute(
                "SELECT truerank.change_webhook('w', %s, %s::text[], NULL, 'ann', 'test')",
                (url, kinds),
            )
        assert violated.value.diag.message_detail is None  # it would show the secret


def test_addresses_are_shown_without_their_queries_and_there_are_at_most_32(post: Post) -> None:
    for number in range(32):
        post.add(f"w{number}", "https://example.com/?token=secret")

    with pytest.raises(CommandError, match="32"):
        post.add("one more", "https://example.com/")

    assert {each.shown_url for each in post.client.webhooks()} == {"https://example.com/?***"}
