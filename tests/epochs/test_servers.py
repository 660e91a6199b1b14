"""What real servers do when they go backwards, or go on: nobody is told what no longer holds."""

from uuid import uuid4

import psycopg
import pytest
import redis

import truerank
from tests.epochs.conftest import PREFIX, Cluster
from tests.projection.pipeline import Pipeline, differences
from truerank import ScoreEvent, Source, Token
from truerank.errors import EpochChanged, NotVisibleYet, SourceSuperseded
from truerank.model import Consistency
from truerank.outbox.ticks import take_tick


def epoch(pipe: Pipeline) -> str:
    ((value,),) = pipe.conn.execute("SELECT truerank.source_epoch()").fetchall()
    return str(value.hex)


def scores(pipe: Pipeline) -> dict[str, str]:
    page = pipe.client.top("b", source="projection")
    return {entry.member: entry.score for entry in page.entries}


def write(pipe: Pipeline, **values: int) -> Token:
    events = [
        ScoreEvent(event_id=str(uuid4()), member=member, value=value)
        for member, value in values.items()
    ]
    token = truerank.submit_scores(pipe.conn, "b", events)[-1].token
    assert token is not None
    return token


def shows(pipe: Pipeline, token: Token) -> bool:
    """Whether the projection serves a reader who has this token."""
    needs = Consistency.at_least(token, wait_ms=0)
    page = pipe.client.top("b", consistency=needs)
    return page.freshness.source is Source.PROJECTION


def saved(cluster: Cluster) -> dict[bytes, bytes]:
    """What Redis holds."""
    with redis.Redis.from_url(cluster.redis_url) as client:
        return {name: client.dump(name) for name in client.scan_iter(f"{PREFIX}*")}


def put_back(cluster: Cluster, keys: dict[bytes, bytes]) -> None:
    """A Redis of before."""
    with redis.Redis.from_url(cluster.redis_url) as client:
        client.delete(*client.scan_iter(f"{PREFIX}*"))
        for name, value in keys.items():
            client.restore(name, 0, value)


def test_an_older_copy_of_the_data_is_a_new_epoch_that_ends_at_its_own_truth(
    cluster: Cluster,
) -> None:
    with cluster.serving() as pipe:
        write(pipe, ann=1, bob=2)
        pipe.settle(pipe.projector())
    older = cluster.copied("older")
    with cluster.serving() as pipe:
        lost = write(pipe, ann=499, ghost=1000)
        pipe.settle(pipe.projector())
        before, answer = epoch(pipe), pipe.client.top("b")
        generation = pipe.generation()
        assert scores(pipe) == {"ghost": "1000", "ann": "500", "bob": "2"}
        assert shows(pipe, lost)

    with older.serving() as pipe:
        kept = write(pipe, bob=498)  # a version that bob's or ann's had, for another score
        # Until a worker has been here, the old answer is given for what it is.
        page = pipe.client.top("b")
        assert page.freshness.epoch == answer.freshness.epoch
        assert page.freshness.projected_through == answer.freshness.projected_through

        pipe.settle(pipe.projector())

        assert epoch(pipe) != before
        assert pipe.generation() != generation
        assert scores(pipe) == {"bob": "500", "ann": "1"}
        assert pipe.client.top("b").freshness.epoch == epoch(pipe)
        for token in (lost, kept):  # a worker had not noticed yet when `kept` was given
            with pytest.raises(EpochChanged, match="went backwards"):
                pipe.client.wait_visible(token, ["b"], timeout_s=5)
            with pytest.raises(EpochChanged, match="went backwards"):
                shows(pipe, token)
        new = write(pipe, bob=1)
        pipe.settle(pipe.projector())
        assert shows(pipe, new)


def test_a_redis_of_the_epoch_before_is_hidden_and_filled_anew(cluster: Cluster) -> None:
    with cluster.serving() as pipe:
        write(pipe, ann=1)
        pipe.settle(pipe.projector())
    older = cluster.copied("older")
    with cluster.serving() as pipe:
        write(pipe, ghost=1000)
        pipe.settle(pipe.projector())
    keys = saved(cluster)
    with older.serving() as pipe:
        pipe.settle(pipe.projector())
        after = epoch(pipe)

        put_back(cluster, keys)

        assert pipe.client.top("b").freshness.source is Source.DATABASE
        pipe.settle(pipe.projector())
        assert epoch(pipe) == after, "this source knows that epoch: it was left behind"
        assert scores(pipe) == {"ann": "1"}


def test_a_source_set_back_to_before_an_epoch_does_not_go_on_under_its_name(
    cluster: Cluster,
) -> None:
    with cluster.serving() as pipe:
        first = write(pipe, ann=1)
        pipe.settle(pipe.projector())
        before = epoch(pipe)
    older = cluster.copied("older")
    with cluster.serving() as pipe:
        pipe.conn.execute("SELECT truerank.new_epoch(%s, 'test')", (before,))
        write(pipe, ghost=1000)
        pipe.settle(pipe.projector())
        between = epoch(pipe)

    with older.serving() as pipe:
        pipe.settle(pipe.projector())

        assert epoch(pipe) not in {before, between}
        assert scores(pipe) == {"ann": "1"}
        with pytest.raises(EpochChanged):
            shows(pipe, first)


def test_workers_follow_an_epoch_that_another_one_began(cluster: Cluster) -> None:
    with cluster.serving() as pipe:
        write(pipe, ann=1)
        projector = pipe.projector()
        pipe.settle(projector)

        pipe.conn.execute("SELECT truerank.new_epoch(%s, 'test')", (epoch(pipe),))
        write(pipe, ann=1)

        pipe.settle(projector)
        assert pipe.meta()["epoch"] == epoch(pipe)


def test_a_restart_keeps_epoch_copy_and_tokens(cluster: Cluster) -> None:
    with cluster.serving() as pipe:
        shown = write(pipe, ann=1)
        pipe.settle(pipe.projector())
        late = write(pipe, bob=2)  # committed, and in no tick
        before, generation = epoch(pipe), pipe.generation()

    with cluster.serving() as pipe:
        new = write(pipe, cid=3)
        with pytest.raises(NotVisibleYet):  # the copy has yet to be verified in this life
            pipe.client.wait_visible(new, ["b"], timeout_s=0.05)
        assert pipe.client.top("b", consistency=Consistency.at_least(late)).total == 3

        pipe.settle(pipe.projector())

        assert (epoch(pipe), pipe.generation()) == (before, generation)
        for token in (shown, late, new):
            assert shows(pipe, token)
            pipe.client.wait_visible(token, ["b"], timeout_s=5)


def test_a_promoted_standby_that_lacks_nothing_goes_on_in_the_same_epoch(cluster: Cluster) -> None:
    with cluster.serving() as pipe:
        shown = write(pipe, ann=1)
        pipe.settle(pipe.projector())
        before, generation = epoch(pipe), pipe.generation()
    standby = cluster.as_standby("standby")

    with standby.up() as url, psycopg.connect(url, autocommit=True) as conn:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            take_tick(conn, since=None, anyway=True)
        conn.execute("SELECT pg_promote()")
    with standby.serving() as pipe:
        new = write(pipe, bob=2)
        pipe.settle(pipe.projector())
        assert (epoch(pipe), pipe.generation()) == (before, generation)
        assert shows(pipe, shown)
        assert shows(pipe, new)

    # The old primary comes back, and with it a worker: it leaves the projection alone.
    with cluster.serving() as pipe:
        write(pipe, ghost=1000)
        with pytest.raises(SourceSuperseded, match=pipe.meta()["epoch"]):
            pipe.projector().step()
        assert scores(pipe) == {"bob": "2", "ann": "1"}

        # Unless it is to go on with the old one, and somebody says so.
        pipe.conn.execute("SELECT truerank.leave_epoch(%s, 'test')", (pipe.meta()["epoch"],))
        pipe.settle(pipe.projector())
        assert scores(pipe) == {"ghost": "1000", "ann": "1"}
        assert epoch(pipe) != before


def test_a_token_beyond_what_a_promoted_standby_is_known_to_have_is_not_judged_by_its_number(
    cluster: Cluster,
) -> None:
    with cluster.serving() as pipe:
        write(pipe, ann=1)
        pipe.settle(pipe.projector())
        standby = cluster.as_standby_while_running(pipe.conn, "standby")
        lost = write(pipe, ghost=1000)  # acknowledged, in no tick, and not on the standby

    with standby.up() as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SELECT pg_promote()")
    with standby.serving() as pipe:
        for _ in range(20):
            write(pipe, bob=1)  # its number, and many more, are used again
        pipe.settle(pipe.projector())

        with pytest.raises(NotVisibleYet):
            pipe.client.wait_visible(lost, ["b"], timeout_s=0.1)


def test_a_promoted_standby_that_lags_is_a_new_epoch(cluster: Cluster) -> None:
    with cluster.serving() as pipe:
        write(pipe, ann=1, bob=2)
        pipe.settle(pipe.projector())
    standby = cluster.as_standby("standby")
    with cluster.serving() as pipe:
        lost = write(pipe, ann=499, ghost=1000)
        pipe.settle(pipe.projector())
        before = epoch(pipe)

    with standby.up() as url, psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SELECT pg_promote()")
    with standby.serving() as pipe:
        write(pipe, ann=1, bob=1)  # versions that ann and ghost had, with other scores
        pipe.settle(pipe.projector())

        assert epoch(pipe) != before
        assert scores(pipe) == {"bob": "3", "ann": "2"}
        assert differences(pipe) == []
        with pytest.raises(EpochChanged):
            pipe.client.wait_visible(lost, ["b"], timeout_s=5)
