"""Names and public details, checked before they are sent."""

from collections.abc import Sequence

from truerank.command.submit import check_member, check_text, json_text
from truerank.errors import InvalidInput
from truerank.model import Profile

_NAME_CHARS_MAX = 200
_DETAILS_BYTES_MAX = 1024


def profile_parameters(
    profiles: Sequence[Profile],
) -> tuple[list[str], list[str | None], list[str | None]]:
    """The parameters of `truerank.set_profiles`.

    Raises:
        InvalidInput: an id, a name or details can't be stored; `field` names which.
    """
    for profile in profiles:
        check_member(profile.member)
        if profile.name is not None:
            check_text(profile.name, "name")
            if not 1 <= len(profile.name) <= _NAME_CHARS_MAX:
                raise InvalidInput("a name has 1 to 200 characters", field="name")
    details = [
        None if profile.details is None else json_text(profile.details, "details")
        for profile in profiles
    ]
    if any(text is not None and len(text.encode()) > _DETAILS_BYTES_MAX for text in details):
        raise InvalidInput(f"details need more than {_DETAILS_BYTES_MAX} bytes", field="details")
    return [p.member for p in profiles], [p.name for p in profiles], details
