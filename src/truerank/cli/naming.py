"""`truerank profile`: what is shown beside a member's id."""

import json as json_module
from typing import Annotated

from cyclopts import Parameter

from truerank.cli.options import Given
from truerank.errors import InvalidInput
from truerank.model import Profile


def profile(
    member: str,
    /,
    *,
    name: str | None = None,
    details: Annotated[str | None, Parameter(help="JSON, at most 1 KB.")] = None,
    given: Given,
) -> None:
    """Give a member a name and public details; what isn't given is taken away.

    Args:
        member: The member's id.
        name: At most 200 characters.
    """
    try:
        value = None if details is None else json_module.loads(details)
    except ValueError as exc:
        raise InvalidInput(f"--details is no JSON: {exc}", field="details") from exc
    with given.client() as client:
        client.set_profiles([Profile(member=member, name=name, details=value)])
