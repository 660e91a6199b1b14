"""What only a server for operators does, and the fields that say who did it and why."""

import msgspec
from starlette.requests import Request

from truerank.aio import Truerank
from truerank.errors import InvalidInput
from truerank.serve.errors import HttpRefusal
from truerank.serve.params import Params, board_of
from truerank.serve.service import service_of

_WAIT_S_MAX = 60.0


class ByIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who does it, and why, for the audit."""

    actor: str
    reason: str


def operators_client(request: Request) -> Truerank:
    """The client behind a route that is for operators.

    Raises:
        HttpRefusal: 403; the server was started for everybody.
    """
    service = service_of(request)
    if not service.settings.operator:
        raise HttpRefusal(
            403, "operators_only", "this is for operators: ask a server with TRUERANK_OPERATOR=true"
        )
    return service.truerank


def operators_board(request: Request) -> tuple[Truerank, str]:
    """The same with the board's key, of a route that takes no parameters.

    Raises:
        HttpRefusal: 403; the server was started for everybody.
        InvalidInput: there is a parameter, or the key is malformed.
    """
    client = operators_client(request)
    Params(request, ())
    return client, board_of(request)


def check_wait(seconds: float) -> float:
    """How long a command may wait for others, in seconds.

    Raises:
        InvalidInput: it isn't 0 to 60.
    """
    if not 0 <= seconds <= _WAIT_S_MAX:
        raise InvalidInput(f"wait_s is 0 to {_WAIT_S_MAX:g} seconds", field="wait_s")
    return seconds
