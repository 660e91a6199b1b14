"""Which tables can feed a board, how they are named, and how an attachment ends."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict

import truerank
from tests.attach.conftest import Bench
from truerank.errors import InvalidInput
from truerank.schema.migrate import migrate

Connection = psycopg.Connection[Any]
Connect = Callable[..., Connection]
INSERT = "INSERT INTO public.completion (id, who, points) VALUES (%s, 'A', 5)"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"board": "nobody's"}, "board_unknown", "board"),
    ({"table": "nowhere"}, "table_unknown", "table"),
    ({"table": '"Completion"'}, "table_unknown", "table"),
    ({"table": "public.sight"}, "table_kind", "table"),
    ({"table": "truerank.event"}, "table_reserved", "table"),
    ({"table": "public.fleeting"}, "table_not_durable", "table"),
    ({"table": "public.parent"}, "table_inherits", "table"),
    ({"table": "public.child"}, "table_inherits", "table"),
    ({"table": "public.slice"}, "table_is_partition", "table"),
    ({"event_id": "ID"}, "column_unknown", "event_id"),
    ({"event_id": "ctid"}, "column_unknown", "event_id"),
    ({"event_id": "at"}, "column_type", "event_id"),
    ({"member": "ratio"}, "column_type", "member"),
    ({"value": "ratio"}, "column_type", "value"),
    ({"value": "state"}, "column_type", "value"),
    ({"value": None}, "value_missing", "value"),
    ({"value_fixed": 1}, "value_missing", "value"),
    ({"occurred_at": "points"}, "column_type", "occurred_at"),
    ({"occurred_at": "local"}, "zone_missing", "occurred_at"),
    ({"occurred_at": "local", "zone": "Mars/Olympus"}, "zone_unknown", "zone"),
    ({"ties": ("points",)}, "ties_differ", "ties"),
    ({"condition": "nothing = 1"}, "condition_invalid", "condition"),
    ({"condition": "state = 'done')"}, "condition_invalid", "condition"),
    ({"condition": "points"}, "condition_invalid", "condition"),
]


def test_what_cannot_work_is_refused_with_a_code_and_changes_nothing(bench: Bench) -> None:
    for statement in (
        "ALTER TABLE public.completion ADD ratio float8, ADD local timestamp",
        "CREATE VIEW public.sight AS SELECT * FROM public.completion",
        "CREATE UNLOGGED TABLE public.fleeting (LIKE public.completion)",
        "CREATE TABLE public.parent (LIKE public.completion)",
        "CREATE TABLE public.child () INHERITS (public.parent)",
        "CREATE TABLE public.whole (LIKE public.completion) PARTITION BY LIST (state)",
        "CREATE TABLE public.slice PARTITION OF public.whole DEFAULT",
    ):
        bench.conn.execute(statement)

    answers = []
    for changes, _, _ in REFUSED:
        with pytest.raises(InvalidInput) as failed:
            bench.attach(**changes)
        answers.append((changes, failed.value.reason, failed.value.field))

    assert answers == REFUSED
    assert bench.conn.execute("SELECT count(*) FROM truerank.attachment").fetchone() == (0,)
    assert bench.conn.execute(
        "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'truerank%'"
    ).fetchone() == (0,)


@pytest.mark.parametrize(
    "changes", [{"on_update": "maybe"}, {"on_delete": "correct"}, {"on_refusal": "ignore"}]
)
def test_a_word_that_is_none_of_the_choices_is_refused(
    bench: Bench, changes: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput):
        bench.attach(**changes)


def test_odd_names_of_schema_table_and_columns_are_taken_as_they_are(bench: Bench) -> None:
    bench.conn.execute('CREATE SCHEMA "Shop; DROP"')
    bench.conn.execute(
        'CREATE TABLE "Shop; DROP"."Ca""fé %" ("the id" int PRIMARY KEY, "who\'s" text,'
        ' "SELECT" int, "ok?" bool)'
    )
    attached = bench.attach(
        table='"Shop; DROP"."Ca""fé %"',
        event_id="the id",
        member="who's",
        value="SELECT",
        occurred_at=None,
        condition='"ok?"',
    )
    table = '"Shop; DROP"."Ca""fé %"'

    bench.conn.execute(f"INSERT INTO {table} VALUES (1, 'A', 5, true), (2, 'A', 7, false)")
    bench.conn.execute(f'UPDATE {table} SET "SELECT" = 6')
    bench.backfill(attached.id)

    assert bench.live() == {"1~1": 6}
    assert bench.shown(attached.id).spec.table == table


@pytest.mark.parametrize(
    ("type_", "id_"),
    [
        ("bigint", 9007199254740993),
        ("smallint", 7),
        ("uuid", "550e8400-e29b-41d4-a716-446655440000"),
        ("varchar(40)", "ünï%"),
        ("name_of_event", "e1"),
    ],
)
def test_ids_of_each_type_come_through_trigger_and_backfill_alike(
    bench: Bench, type_: str, id_: object
) -> None:
    bench.conn.execute("CREATE DOMAIN public.name_of_event AS text CHECK (value <> '')")
    bench.conn.execute("SET search_path = public")
    bench.conn.execute(
        f"CREATE TABLE public.typed (id {type_} PRIMARY KEY, who uuid, points numeric)"
    )
    member = "00000000-0000-0000-0000-00000000000a"
    bench.conn.execute("INSERT INTO public.typed VALUES (%s, %s, 5)", (id_, member))
    attached = bench.attach(table="typed", occurred_at=None)
    bench.backfill(attached.id)

    bench.conn.execute("DELETE FROM public.typed")
    bench.conn.execute("INSERT INTO public.typed VALUES (%s, %s, 6)", (id_, member))

    assert bench.live() == {f"{id_}~1": 6}
    assert bench.scores() == {member: "6"}


def test_numeric_values_keep_the_decimals_of_the_board(bench: Bench) -> None:
    bench.tr.create_board("laps", seasons=("all",), decimals=3)
    bench.conn.execute("ALTER TABLE public.completion ALTER points TYPE numeric")
    bench.attach(board="laps")

    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 12.345),"
        " ('e2', 'A', 0.0001), ('e3', 'A', 'NaN')"
    )
    bench.conn.execute("UPDATE public.completion SET points = 12.3450 WHERE id = 'e1'")

    assert bench.scores("laps") == {"A": "12.345"}
    assert len(bench.events("laps")) == 1
    assert {p.event_id: p.code for p in bench.parked()} == {
        "e2": "value_too_precise",
        "e3": "value_out_of_range",
    }


def test_a_time_without_a_zone_is_read_in_the_zone_that_is_named(bench: Bench) -> None:
    bench.conn.execute("ALTER TABLE public.completion ADD local timestamp")
    bench.attach(occurred_at="local", zone="Europe/Berlin")

    with bench.conn.transaction():
        bench.conn.execute("SET LOCAL TimeZone = 'America/New_York'")
        bench.conn.execute(
            "INSERT INTO public.completion (id, who, points, local)"
            " VALUES ('e1', 'A', 5, '2024-07-01 00:30')"
        )

    row = bench.conn.execute("SELECT occurred_at AT TIME ZONE 'UTC' FROM truerank.event").fetchone()
    assert row is not None
    assert str(row[0]) == "2024-06-30 22:30:00"


@pytest.mark.parametrize("kind", ["STORED", "VIRTUAL"])
def test_generated_columns_are_read_as_they_are_computed(bench: Bench, kind: str) -> None:
    if kind == "VIRTUAL" and bench.conn.info.server_version < 180000:
        pytest.skip("virtual columns came with PostgreSQL 18")
    bench.conn.execute(
        f"ALTER TABLE public.completion ADD twice bigint GENERATED ALWAYS AS (points * 2) {kind}"
    )
    bench.conn.execute(INSERT, ("e1",))
    attached = bench.attach(value="twice", condition="twice > 2")
    bench.backfill(attached.id)

    bench.conn.execute(INSERT, ("e2",))
    bench.conn.execute("UPDATE public.completion SET points = 6 WHERE id = 'e2'")
    bench.conn.execute("UPDATE public.completion SET points = 1 WHERE id = 'e1'")

    assert bench.live() == {"e2~1": 12}


def test_rows_of_partitions_count_whichever_table_a_statement_names(bench: Bench) -> None:
    bench.conn.execute(
        "CREATE TABLE public.split (points int, id int, who text, part int, PRIMARY KEY (id, part))"
        " PARTITION BY LIST (part)"
    )
    # Columns in another order than the parent's, as after years of changes.
    bench.conn.execute(
        "CREATE TABLE public.split_1 (id int NOT NULL, gone int, part int NOT NULL, who text,"
        " points int)"
    )
    bench.conn.execute("ALTER TABLE public.split_1 DROP gone")
    bench.conn.execute("ALTER TABLE public.split ATTACH PARTITION public.split_1 FOR VALUES IN (1)")
    bench.conn.execute(
        "CREATE TABLE public.split_2 PARTITION OF public.split FOR VALUES IN (2)"
        " PARTITION BY LIST (part)"
    )
    bench.conn.execute("CREATE TABLE public.split_2a PARTITION OF public.split_2 DEFAULT")
    bench.conn.execute("INSERT INTO public.split (id, who, points, part) VALUES (0, 'A', 1, 1)")
    attached = bench.attach(table="split", occurred_at=None)
    bench.backfill(attached.id)

    bench.conn.execute("INSERT INTO public.split (id, who, points, part) VALUES (1, 'A', 2, 1)")
    bench.conn.execute("INSERT INTO public.split_1 (id, who, points, part) VALUES (2, 'A', 4, 1)")
    bench.conn.execute("INSERT INTO public.split_2a (id, who, points, part) VALUES (3, 'A', 8, 2)")
    before = bench.scores()
    bench.conn.execute("UPDATE public.split SET part = 2 WHERE id = 1")
    bench.conn.execute("UPDATE public.split_1 SET points = 16 WHERE id = 2")

    assert before == {"A": "15"}
    assert bench.live() == {"0": 1, "1": 2, "2~1": 16, "3": 8}
    with pytest.raises(psycopg.Error, match="truncate_refused"):
        bench.conn.execute("TRUNCATE public.split_2a")


def test_a_partition_that_comes_later_is_shown_and_covered_by_attaching_again(
    bench: Bench,
) -> None:
    bench.conn.execute(
        "CREATE TABLE public.split (id int PRIMARY KEY, who text, points int)"
        " PARTITION BY RANGE (id)"
    )
    attached = bench.attach(table="split", occurred_at=None)
    bench.conn.execute(
        "CREATE TABLE public.split_1 PARTITION OF public.split FOR VALUES FROM (0) TO (9)"
    )
    shown = bench.shown(attached.id)

    again = bench.attach(table="split", occurred_at=None)
    bench.conn.execute("INSERT INTO public.split_1 VALUES (1, 'A', 5)")

    assert (shown.state, shown.uncovered) == ("incomplete", ("public.split_1",))
    assert (again.id, again.created) == (attached.id, False)
    assert bench.shown(attached.id).state == "attached"
    assert bench.scores() == {"A": "5"}


def test_attaching_again_with_other_settings_is_refused(bench: Bench) -> None:
    first = bench.attach()

    assert bench.attach().id == first.id
    with pytest.raises(InvalidInput) as failed:
        bench.attach(condition="points > 1")
    assert failed.value.reason == "attachment_differs"


def test_two_tables_with_ids_of_their_own_need_prefixes_on_one_board(bench: Bench) -> None:
    bench.attach()
    bench.conn.execute("CREATE TABLE public.bonus (id int PRIMARY KEY, who text, points int)")
    with pytest.raises(InvalidInput) as failed:
        bench.attach(table="bonus", occurred_at=None)

    bench.attach(table="bonus", occurred_at=None, prefix="bonus:")
    bench.conn.execute(INSERT, ("1",))
    bench.conn.execute("INSERT INTO public.bonus VALUES (1, 'A', 3)")
    bench.conn.execute("UPDATE public.bonus SET points = 4")

    assert failed.value.reason == "prefix_needed"
    assert bench.live() == {"1": 5, "bonus:1~1": 4}


def test_warnings_tell_what_will_work_and_may_not_be_meant(bench: Bench) -> None:
    bench.conn.execute("CREATE TABLE public.loose (id text, who text, points int)")

    assert bench.attach(table="loose", occurred_at=None, prefix="l:").warnings == (
        "event_id_not_indexed",
        "event_id_not_unique",
        "event_id_nullable",
        "occurred_at_missing",
    )
    assert bench.attach().warnings == ()


def test_a_detached_table_feeds_nothing_and_its_events_stay(bench: Bench) -> None:
    attached = bench.attach()
    bench.conn.execute(INSERT, ("e1",))

    assert bench.detach(attached.id)
    bench.conn.execute(INSERT, ("e2",))
    bench.conn.execute("DELETE FROM public.completion")

    assert bench.live() == {"e1": 5}
    assert bench.shown(attached.id).state == "detached"
    assert bench.conn.execute(
        "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'truerank%'"
    ).fetchone() == (0,)
    with pytest.raises(InvalidInput, match="no attachment"):
        bench.detach(attached.id)
    assert bench.attach().id != attached.id


def test_a_dropped_table_leaves_other_attachments_alone(bench: Bench) -> None:
    bench.conn.execute("CREATE TABLE public.bonus (id int PRIMARY KEY, who text, points int)")
    gone = bench.attach(table="bonus", occurred_at=None, prefix="bonus:")
    bench.attach()

    bench.conn.execute("DROP TABLE public.bonus")
    bench.conn.execute(INSERT, ("e1",))

    assert bench.live() == {"e1": 5}
    assert bench.shown(gone.id).state == "gone"
    assert bench.shown(gone.id).spec.table == "attach:public.bonus"
    assert bench.detach(gone.id)


@pytest.mark.parametrize("column", ["points", "id"])
def test_rows_without_a_column_that_was_dropped_are_parked_as_broken(
    bench: Bench, column: str
) -> None:
    bench.attach()
    bench.conn.execute(f"ALTER TABLE public.completion DROP {column}")

    columns, values = ("who", "'A'") if column == "id" else ("id, who", "'e1', 'A'")
    bench.conn.execute(f"INSERT INTO public.completion ({columns}) VALUES ({values})")

    (parked,) = bench.parked()
    assert parked.code == "attachment_broken"
    assert parked.event_id == (None if column == "id" else "e1")
    assert f"column {column} of public.completion is gone" in parked.message


def test_a_condition_that_fails_is_parked_or_raised_as_refusals_are(bench: Bench) -> None:
    parking = bench.attach(condition="10 / points > 0")
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 0)")
    assert [(p.event_id, p.message) for p in bench.parked()] == [("e1", "division by zero")]
    bench.detach(parking.id)
    bench.attach(condition="10 / points > 0", on_refusal="raise")

    with pytest.raises(psycopg.errors.DivisionByZero):
        bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e2', 'A', 0)")


def test_a_caller_may_neither_attach_nor_look_after_what_is_parked(
    bench: Bench, connect: Connect
) -> None:
    bench.conn.execute("DROP ROLE IF EXISTS shop_caller")
    bench.conn.execute("CREATE ROLE shop_caller")
    try:
        bench.conn.execute("SELECT truerank.grant_caller('shop_caller')")
        caller = connect()
        caller.execute("SET ROLE shop_caller")

        attach = (
            "truerank.attach_table('b', 'completion', 'id', 'who', 'points', NULL, 'at', NULL,"
            " '{}', NULL, '', 'correct', 'void', 'park', 'x', 'x')"
        )
        for call in (
            attach,
            "truerank.attachments()",
            "truerank.detach_table(1, 'x', 'x')",
            "truerank.backfill_attached(1, 10, 'x')",
            "truerank.retry_parked(1, NULL, NULL, NULL, 'x', 'x')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                caller.execute(f"SELECT {call}")
    finally:
        bench.conn.execute("DROP OWNED BY shop_caller")
        bench.conn.execute("DROP ROLE shop_caller")


def test_an_owner_without_rights_of_a_superuser_attaches_the_table_of_another_role(
    empty_database_url: str, redis_url: str
) -> None:
    database = conninfo_to_dict(empty_database_url)["dbname"]
    roles = ("shop", "keeper")  # triggers of the one call functions of the other
    with psycopg.connect(empty_database_url, autocommit=True) as root:
        for role in roles:
            root.execute(f"DROP ROLE IF EXISTS {role}")
            root.execute(f"CREATE ROLE {role} LOGIN")
        try:
            root.execute(f"GRANT CREATE ON DATABASE {database} TO keeper")
            root.execute("GRANT CREATE ON SCHEMA public TO keeper, shop")
            owner_url = empty_database_url.replace("truerank@", "keeper@")
            migrate(owner_url)
            with (
                psycopg.connect(
                    empty_database_url.replace("truerank@", "shop@"), autocommit=True
                ) as shop,
                psycopg.connect(owner_url, autocommit=True) as conn,
                truerank.connect(owner_url, redis_url) as tr,
            ):
                tr.create_board("b", seasons=("all",))
                bench = Bench(tr, conn)
                shop.execute("CREATE TABLE public.sale (id int PRIMARY KEY, who text, points int)")
                shop.execute("INSERT INTO public.sale VALUES (1, 'A', 5)")
                with pytest.raises(InvalidInput) as failed:
                    bench.attach(table="sale", occurred_at=None)
                shop.execute("GRANT SELECT, UPDATE, TRIGGER ON public.sale TO keeper")

                attached = bench.attach(table="sale", occurred_at=None)
                shop.execute("INSERT INTO public.sale VALUES (2, 'A', 6)")
                bench.backfill(attached.id)
                whole = bench.detach(attached.id)
                shop.execute("INSERT INTO public.sale VALUES (3, 'A', 7)")
                shop.execute("TRUNCATE public.sale")

                assert failed.value.reason == "privilege_missing"
                assert not whole
                assert bench.live() == {"1": 5, "2": 6}
        finally:
            for role in roles:
                root.execute(f"DROP OWNED BY {role}")
                root.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_a_snapshot_older_than_the_attachment_is_a_serialization_failure(
    bench: Bench, connect: Connect, level: IsolationLevel
) -> None:
    old = connect(autocommit=False)
    old.isolation_level = level
    old.execute("SELECT 1 FROM public.completion")
    old.rollback()
    old.execute("SELECT count(*) FROM truerank.board")
    bench.attach()

    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute(INSERT, ("e1",))


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_an_id_withdrawn_since_the_snapshot_is_a_serialization_failure(
    bench: Bench, connect: Connect, level: IsolationLevel
) -> None:
    bench.conn.execute("ALTER TABLE public.completion DROP CONSTRAINT completion_pkey")
    bench.attach()
    bench.conn.execute(INSERT, ("e1",))
    old = connect(autocommit=False)
    old.isolation_level = level
    old.execute("SELECT count(*) FROM truerank.board")

    bench.conn.execute("DELETE FROM public.completion")
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute(INSERT, ("e1",))
    old.rollback()
    old.execute(INSERT, ("e1",))
    old.commit()

    assert bench.live() == {"e1~1": 5}


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
def test_the_higher_isolation_levels_insert_change_and_delete(
    bench: Bench, connect: Connect, level: IsolationLevel
) -> None:
    bench.attach()
    conn = connect(autocommit=False)
    conn.isolation_level = level

    for statement in (
        "INSERT INTO public.completion VALUES ('e1', 'A', 5), ('e2', 'A', 6)",
        "UPDATE public.completion SET points = points + 1",
        "DELETE FROM public.completion WHERE id = 'e2'",
        "INSERT INTO public.completion VALUES ('e2', 'B', 9)",
    ):
        conn.execute(statement)
    conn.commit()

    assert bench.live() == {"e1~1": 6, "e2~2": 9}
