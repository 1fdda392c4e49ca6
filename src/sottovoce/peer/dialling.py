"""Dial a node and look at the certificate that answers, without Zenoh: who is there, and is it the one that is listed?"""

from __future__ import annotations

import socket
import ssl

from . import certificates
from . import identity as files
from .identity import Identity
from .reading import split

PATIENCE = 3.0  # seconds for one node


def dialled(who: Identity, address: str, name: str, fingerprint: str, patience: float = PATIENCE) -> str | None:
    """Why the node at this address is not the one that is listed; None where it is."""
    context = ssl.create_default_context(cafile=str(who.folder / files.AUTHORITY))
    context.load_cert_chain(who.folder / files.CERTIFICATE, who.folder / files.KEY)
    host, port = split(address)
    try:
        with socket.create_connection((host, port), patience) as plain, context.wrap_socket(plain, server_hostname=host) as tls:
            shown = certificates.read_certificate(ssl.DER_cert_to_PEM_cert(tls.getpeercert(True) or b"").encode())
    except ssl.SSLCertVerificationError as error:
        return f"{address} shows a certificate that is refused: {error.verify_message}"
    except OSError as error:
        return f"{address} cannot be reached: {error.strerror or type(error).__name__}; is {name} running, and its port open?"
    if certificates.common_name(shown) != name:
        return f"{address} is {certificates.common_name(shown)}, not {name}; correct its address in federation.toml"
    if certificates.fingerprint(shown) != fingerprint:
        return f"{name} shows another certificate than the one that federation.toml lists"
    return None
