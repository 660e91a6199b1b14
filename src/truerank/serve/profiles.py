"""Names and public details of members."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from truerank.model import Profile
from truerank.serve.bodies import convert, read_json
from truerank.serve.params import Params
from truerank.serve.replies import reply
from truerank.serve.service import service_of


class _ProfileIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    member: str
    name: str | None = None
    details: object = None


class _ProfilesIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    profiles: list[_ProfileIn]


async def set_profiles(request: Request) -> Response:
    """`POST /v1/profiles`: give members names; 200 with how many there were."""
    Params(request, ())
    given = convert(await read_json(request), _ProfilesIn)
    profiles = [
        Profile(member=one.member, name=one.name, details=one.details) for one in given.profiles
    ]
    service = service_of(request)
    await service.truerank.set_profiles(profiles)
    service.pages.clear()  # this process shows new names at once
    return reply({"profiles": len(profiles)})
