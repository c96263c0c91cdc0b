# SPDX-License-Identifier: Apache-2.0
"""Named values that a matrix carries along: attributes, and leaves of its pytree."""

from typing import Any

from brainevent._error import OptionError, expect

__all__ = ['Buffers']


class Buffers:
    """Registers named values, and shows them as attributes."""

    _buffers: dict[str, Any]

    def register_buffer(self, name: str, value: Any = None) -> None:
        """Carry a named value along with the representation.

        Parameters
        ----------
        name : str
            The value is then an attribute of this name.
        value : pytree of arrays, optional
            A leaf of the matrix in every transformation.

        Raises
        ------
        OptionError
            If the representation has another attribute of that name.
        """
        expect(
            name in self._buffers or (name not in self.__dict__ and not hasattr(type(self), name)),
            OptionError,
            f'{type(self).__name__}.register_buffer',
            'there is an attribute of that name.',
            expected='another name',
            got=lambda: repr(name),
        )
        self._replace(name, value)

    def set_buffer(self, name: str, value: Any) -> None:
        """Replace a named value.

        Raises
        ------
        ValueError
            If no buffer of that name was registered.
        """
        expect(
            name in self._buffers,
            ValueError,
            'set_buffer',
            'unknown buffer',
            expected=lambda: f'one of {sorted(self._buffers)}',
            got=lambda: repr(name),
            remedy='register it first with register_buffer',
        )
        self._replace(name, value)

    def _replace(self, name: str, value: Any) -> None:
        # matrices made from one another share the dict, so it is never changed
        self.__dict__['_buffers'] = {**self._buffers, name: value}

    @property
    def buffers(self) -> dict[str, Any]:
        """A copy of the named values."""
        return dict(self._buffers)

    def __getattr__(self, name: str) -> Any:
        """Return the buffer of a name that is no other attribute."""
        try:
            return self.__dict__['_buffers'][name]
        except (KeyError, TypeError):  # leaves may be replaced by anything
            text = f'{type(self).__name__!r} object has no attribute {name!r}'
            raise AttributeError(text, name=name, obj=self) from None
