"""Masks over the updates of clients: what each pair of clients adds and subtracts, so that only the sum is known.

Each client has a key pair of its own, for one run; the coordinator passes the public keys on. A mask is the key stream
of the secret that two clients share, new for each order. Weights travel as fixed-point numbers modulo 2**64.
"""

from __future__ import annotations

from jupyter_autotrain.agent.ranks.federated.weights import WeightsError

TYPE_CHECKING = False  # a client imports this module, and `typing` is slow to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from jupyter_autotrain.agent.ranks.federated.weights import Weights

_SCALE = 1 << 30
_MOST = float(1 << 32)  # of a weight times its samples, so that many of them can be summed
LEAST_CLIENTS = 3  # of two, each could subtract itself from the sum


class Masks:
    """The keys of one client."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - only secure clients pay
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415 - as above

        self._private = X25519PrivateKey.generate()
        raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        self.public = self._private.public_key().public_bytes(*raw).hex()

    def mask(self, weights: Weights, samples: int, members: Mapping[str, str], order: int) -> Weights:
        """Return the weights times the samples, masked.

        Args:
            weights: What is sent.
            samples: Their weight in the sum.
            members: The public keys of all clients of the order, by number.
            order: Its id.

        Raises:
            WeightsError: They cannot be sent without being seen, or are too large.
        """
        me = next((int(number) for number, key in members.items() if key == self.public), None)
        if me is None or len(set(members.values())) < LEAST_CLIENTS:
            raise WeightsError(f"would be seen: secure rounds have {LEAST_CLIENTS} clients or more, each with its key")
        import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

        found: Weights = {name: _fixed(array.astype(np.float64) * samples) for name, array in weights.items()}
        for number, key in members.items():
            if int(number) != me:
                self._add(found, key, order, is_first=me < int(number))
        return found

    def _add(self, weights: Weights, key: str, order: int, *, is_first: bool) -> None:
        import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

        stream = self._stream(key, order, sum(array.nbytes for array in weights.values()))
        begin = 0
        for array in weights.values():
            mask = np.frombuffer(stream, np.uint64, array.size, begin).reshape(array.shape)
            begin += array.nbytes
            array[...] = array + mask if is_first else array - mask

    def _stream(self, key: str, order: int, size_bytes: int) -> bytes:
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - only secure clients pay
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # noqa: PLC0415 - as above

        shared = self._private.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(key)))
        derived = HKDF(hashes.SHA256(), 32, None, b"autotrain order %d" % order).derive(shared)
        return Cipher(algorithms.ChaCha20(derived, bytes(16)), None).encryptor().update(bytes(size_bytes))


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

    if not np.all(np.abs(array) < _MOST):  # NaN is not
        raise WeightsError("has weights that are not finite, or too large to be masked")
    return np.asarray(np.rint(array * _SCALE).astype(np.int64).view(np.uint64))


def unmasked_mean(masked: Iterable[Weights], samples: int) -> Weights:
    """Return the mean of updates of all members of an order, whose masks cancel out.

    Args:
        masked: What each of them sent.
        samples: Their samples together.
    """
    import numpy as np  # noqa: PLC0415 - the supervisor has no use for it

    first, *others = masked
    found: Weights = {}
    for name, array in first.items():
        total = sum((other[name] for other in others), start=array)
        found[name] = np.asarray(total).view(np.int64) / (_SCALE * float(samples))
    return found
