"""Where each key of a TOML text stands. `tomllib` reads values but keeps no lines; errors and origins need them.

The text must have passed `tomllib` already: this scanner finds keys and skips values, it does not check grammar again.
"""

from __future__ import annotations

import tomllib

KeyPath = tuple[str | int, ...]

_SPACE = " \t"
_GAP = " \t\r\n"
_QUOTES = "\"'"


def key_lines(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every table, key and array element: `("trainer", "hidden", 1)` is the second element of trainer.hidden.

    A table or key given in several places has the line of the first.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.array_tables: dict[KeyPath, int] = {}
        self._counted_to = 0
        self._line = 1

    def scan(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip_gaps():
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self._next_of_array(self._resolve(self._key()))
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self._resolve(self._key())
                for length in range(1, len(table) + 1):
                    self._note(table[:length])
                self.at += 1
            else:
                self._pair(table)
        return self.lines

    def _resolve(self, path: KeyPath) -> KeyPath:
        """The path of a header with the current element of each array of tables that it passes through."""
        found: KeyPath = ()
        for part in path[:-1]:
            found += (part,)
            if found in self.array_tables:
                found += (self.array_tables[found],)
        return found + path[-1:]

    def _next_of_array(self, path: KeyPath) -> KeyPath:
        self._note(path)
        self.array_tables[path] = self.array_tables.get(path, -1) + 1
        element = (*path, self.array_tables[path])
        self._note(element)
        return element

    def _pair(self, table: KeyPath) -> None:
        start = self.at
        path = table + self._key()
        end, self.at = self.at, start
        for length in range(len(table) + 1, len(path) + 1):
            self._note(path[:length])
        self.at = end
        self._skip(_SPACE)
        self.at += 1  # the sign =
        self._skip(_SPACE)
        self._value(path)

    def _key(self) -> KeyPath:
        parts: list[str | int] = []
        while True:
            self._skip(_SPACE)
            if self.text[self.at] in _QUOTES:
                start = self.at
                self._string()
                parts.append(str(tomllib.loads("k = " + self.text[start : self.at])["k"]))
            else:
                start = self.at
                while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "_-"):
                    self.at += 1
                parts.append(self.text[start : self.at])
            self._skip(_SPACE)
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        letter = self.text[self.at]
        if letter in _QUOTES:
            self._string()
        elif letter == "[":
            self._array(path)
        elif letter == "{":
            self._inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\r\n":
                self.at += 1

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        element = 0
        while self._skip_gaps() and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._note((*path, element))
            self._value((*path, element))
            element += 1
        self.at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while self._skip_gaps() and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _string(self) -> None:
        quote = self.text[self.at]
        mark = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(mark)
        while not self.text.startswith(mark, self.at):
            self.at += 2 if self.text[self.at] == "\\" and quote == '"' else 1
        self.at += len(mark)
        if len(mark) == 3:  # up to two more quotes belong to the text before the closing mark
            while self.text[self.at : self.at + 1] == quote:
                self.at += 1

    def _skip(self, letters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in letters:
            self.at += 1

    def _skip_gaps(self) -> bool:
        """Passes blanks, line ends and comments; says whether anything follows."""
        while True:
            self._skip(_GAP)
            if self.text[self.at : self.at + 1] != "#":
                return self.at < len(self.text)
            while self.at < len(self.text) and self.text[self.at] != "\n":
                self.at += 1

    def _note(self, path: KeyPath) -> None:
        if self.at < self._counted_to:
            self._counted_to, self._line = 0, 1
        self._line += self.text.count("\n", self._counted_to, self.at)
        self._counted_to = self.at
        self.lines.setdefault(path, self._line)
