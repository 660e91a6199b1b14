"""What readers notice of a rebuild: nothing."""

from typing import Any

from tests.projection.pipeline import Pipeline
from tests.rebuild.stages import ask, carry_out, generations, state, step_until

SCORES = {f"m{i}": i for i in range(40)}


def test_hints_come_from_the_live_copy_alone_before_and_after_the_switch(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    request = ask(single)
    step_until(projector, lambda: state(single, request).rows > 4, "some rows are in")
    hints: Any = single.redis.pubsub(ignore_subscribe_messages=True)
    hints.subscribe(single.keys().hints)

    def heard() -> list[str]:
        messages = iter(lambda: hints.get_message(timeout=0.05), None)
        return [each["data"].split()[2].decode() for each in messages]

    assert heard() == []
    old = single.generation()
    single.submit("b", {"m1": 1})
    projector.step()
    assert set(heard()) == {old}

    carry_out(single, projector, request)
    assert generations(single, "former") == [old]
    heard()
    single.submit("b", {"m1": 1})
    projector.step()

    assert heard() == [single.generation()]
    hints.close()


def test_a_group_is_rebuilt_without_touching_the_keys_of_another(several: Pipeline) -> None:
    for board in ("b0", "b1", "b2"):
        several.submit(board, SCORES)
    projector = several.projector()
    several.settle(projector)

    def others() -> dict[bytes, bytes | None]:
        names = [n for n in several.redis.scan_iter() if b"{1}" not in n and b":meta" not in n]
        return {name: several.redis.dump(name) for name in sorted(names)}

    before = others()
    carry_out(several, projector, ask(several, 1, keep_ms=0))

    assert others() == before
    several.settle(projector)


def test_status_tells_how_far_a_rebuild_is(single: Pipeline) -> None:
    single.submit("b", SCORES)
    projector = single.projector()
    single.settle(projector)
    request = ask(single)
    step_until(projector, lambda: state(single, request).rows > 4, "some rows are in")

    (filling,) = single.client.status().fillings

    assert (filling.group, filling.cause, filling.rows_about) == (0, "asked", 40)
    assert 4 < filling.rows <= 40
