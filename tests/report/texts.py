"""What a reader sees of a page, as text; and which percentages in it do not say what they are
shares of.
"""

import html
import re
from collections.abc import Iterator

# Where a text of a page begins or ends: a sentence never goes on beyond these.
_BLOCKS = (
    r"</?(?:td|th|tr|p|li|dd|dt|h\d|div|section|figcaption|text|option|pre|table|button|label|a"
    r"|title)\b[^>]*>"
)
_HIDDEN = r"<(script|style|metadata|defs)\b.*?</\1>|<!--.*?-->"

# After the sign: the whole that it is a share of, or what it is more than; or it is the probability
# of an interval.
_WHOLE = r"(?:of|over) (?:(?:the|a|an|its|their|such|them|that|this|these)\b|it\b|[a-z_]+)"
_NAMED = re.compile(rf"%(?:\s{_WHOLE}|\s(?:bootstrap )?intervals?\b)")
_PROBABILITY = re.compile(r"probability of \d+(?:\.\d+)?%")
_HEAD = re.compile(rf"(?:^|, )%\s{_WHOLE}")
_SHARE = re.compile(r"^-?\d+(?:\.\d+)?\s?%$")
_WORD = re.compile(r"\bper\s?cent\b(?! of\b)", re.IGNORECASE)


def plain_text(page: str) -> str:
    return " ".join(" ".join(blocks(page)).split())


def blocks(page: str) -> list[str]:
    """Texts of a page or a figure that stand alone: cells, paragraphs, labels."""
    page = re.sub(_HIDDEN, "", page, flags=re.DOTALL)
    parts = re.sub(r"<[^>]+>", "", re.sub(_BLOCKS, "\0", page)).split("\0")
    return [text for part in parts if (text := " ".join(html.unescape(part).split()))]


def tables(page: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Heads and rows of each."""
    for table in re.findall(r"<table.*?</table>", page, flags=re.DOTALL):
        rows = [
            re.findall(r"<(?:th|td)\b[^>]*>(.*?)</(?:th|td)>", row, flags=re.DOTALL)
            for row in table.split("</tr>")
        ]
        rows = [
            [html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in row]
            for row in rows
            if row
        ]
        yield rows[0], rows[1:]


def markdown_tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        rows = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in table.splitlines()
        ]
        yield rows[0], rows[2:]


def unnamed(text: str) -> list[str]:
    """Sentences of a text with a percentage whose whole is not named beside it."""
    return [sentence for sentence in re.split(r"(?<=[.;:?!])\s+", text) if _lacks(sentence)]


def _lacks(sentence: str) -> bool:
    rest = _NAMED.sub("", _PROBABILITY.sub("", sentence))
    return "%" in rest or bool(_WORD.search(sentence))


def unnamed_cells(heads: list[str], rows: list[list[str]]) -> list[str]:
    """Cells that are a bare percentage below a head that does not say of what; and any other text
    that lacks it.
    """
    found = [head for head in heads if "%" in head and not _HEAD.search(head)]
    for row in rows:
        for head, cell in zip(heads, row, strict=True):
            bare = _SHARE.match(cell)
            if not _HEAD.search(head) if bare else unnamed(cell):
                found.append(f"{head}: {cell}")
    return found
