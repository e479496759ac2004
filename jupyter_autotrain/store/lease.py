"""The lease of the one manager: only its last holder may write; earlier holders are fenced off.

A lock in the file system can be deleted or copied away; the lease lies in the store itself, and each write of a manager
checks it in its own transaction (a fencing token: a number that only grows).
"""

from __future__ import annotations

from jupyter_autotrain.store.mixin import StoreMixin

_TAKE = (
    "INSERT INTO lease (id, generation, owner) VALUES (1, 1, ?) "
    "ON CONFLICT (id) DO UPDATE SET generation = generation + 1, owner = excluded.owner RETURNING generation"
)


class LeaseTable(StoreMixin):
    """Who may write as the manager."""

    def take_lease(self, owner: str) -> int:
        """Take the lease from its present holder; from now on this handle writes under it.

        Args:
            owner: Who takes it, for people.

        Returns:
            The generation: one more than that of the owner before.
        """
        self._database.generation = None
        with self._database.write(durable=True) as connection:
            generation = int(connection.execute(_TAKE, (owner,)).fetchall()[0][0])
        self._database.generation = generation
        return generation

    def confirm_lease(self) -> None:
        """Check that this handle still has the lease.

        Raises:
            LeaseLostError: Another manager has taken it.
        """
        with self._database.write():
            pass
