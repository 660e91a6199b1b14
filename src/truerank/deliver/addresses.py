"""Which addresses a worker may call: public ones, and those of networks that the settings name.

Whoever may add a receiver could otherwise let a worker look around in its own network. A name is
resolved once, and the connection goes to the very address that was judged.
"""

import ipaddress
import socket
from collections.abc import Callable, Iterator, Sequence

from truerank.errors import SettingsInvalid

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that is given to anybody; the rest is special
# Global by their registry's word, and answered by the platform that a machine runs on.
_INSIDE: tuple[Network, ...] = (
    ipaddress.IPv4Network("168.63.129.16/32"),  # Azure
    ipaddress.IPv4Network("192.0.0.0/24"),  # Oracle's metadata, and what carriers use inside
    ipaddress.IPv6Network("3fff::/20"),  # for documents; not known as such by all Pythons
)


class AddressRefused(OSError):
    """A name stands for no address that may be called."""


def read_networks(text: str) -> list[Network]:
    """Networks as the settings name them, with commas between.

    Raises:
        SettingsInvalid: one can't be read.
    """
    try:
        return [ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as exc:
        raise SettingsInvalid(f"TRUERANK_WEBHOOK_NETWORKS: {exc}") from exc


def may_call(text: str, networks: Sequence[Network]) -> bool:
    """Whether an address is public, or in one of the networks."""
    address = ipaddress.ip_address(text.partition("%")[0])
    inner = list(_inner(address))
    return any(each in network for each in (address, *inner) for network in networks) or (
        _public(address) and all(_public(each) for each in inner)
    )


def connect(
    host: str, port: int, networks: Sequence[Network], left_s: Callable[[], float]
) -> socket.socket:
    """Connect to the first address of a host that may be called and answers.

    Args:
        host: its name, or an address.
        port: of it.
        networks: private ones that may be called.
        left_s: how many seconds there are still for all of its addresses; each gets its share, so
            that one which is silent leaves time for the next. It may raise `TimeoutError`.

    Raises:
        AddressRefused: none may be called.
        OSError: as of `socket`; `socket.gaierror` where the name isn't known.
    """
    failure: OSError = AddressRefused(f"{host} has no address that may be called")
    found = [
        each
        for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        if may_call(str(each[4][0]), networks)
    ]
    for number, (family, kind, protocol, _, address) in enumerate(found):
        share_s = left_s() / (len(found) - number)
        opened = socket.socket(family, kind, protocol)
        try:
            opened.settimeout(share_s)
            opened.connect(address)
        except OSError as exc:
            opened.close()
            failure = exc
        else:
            return opened
    raise failure


def _public(address: Address) -> bool:
    special = isinstance(address, ipaddress.IPv6Address) and not (
        address in _UNICAST or address in _NAT64
    )
    return (
        address.is_global
        and not address.is_multicast
        and not special
        and not any(address in network for network in _INSIDE)
    )


def _inner(address: Address) -> Iterator[Address]:
    """The IPv4 addresses that an IPv6 one leads to."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            yield address.ipv4_mapped
        if address.sixtofour is not None:
            yield address.sixtofour
        if address.teredo is not None:
            yield address.teredo[1]
        if address in _NAT64:
            yield ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
