"""What an operator reads."""

from __future__ import annotations

from io import StringIO

from greenline.node.logs import Logger


class Pieces(StringIO):
    """A file that others write to as well: what is not written at once may be torn."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)


def test_a_line_is_written_at_once_with_its_end() -> None:
    file = Pieces()
    logger = Logger("p", None, file)
    logger.info("begins")
    logger.warning("is full", disk="d")
    assert [(each[0], each[-1]) for each in file.written] == [("{", "\n")] * 2
