"""What was decided, in words."""

from collections.abc import Callable, Mapping
from typing import Any

TitleOf = Callable[[int], str]


def decision_sentence(kind: str, payload: Mapping[str, Any], title_of: TitleOf) -> str:
    """A decision in words; `title_of` gives what a category is called.

    >>> decision_sentence("merge", {"category": 7, "into": 2, "n_photos": 1}, {7: "new 7", 2: "owl"}.__getitem__)
    'merged new 7 into owl (1 photo)'
    """
    match kind:
        case "name":
            return f"named {payload['was'] or 'new ' + str(payload['category'])} “{payload['name']}”"
        case "accept":
            return f"accepted {title_of(payload['category'])}"
        case "merge":
            into = title_of(payload["into"])
            return f"merged {title_of(payload['category'])} into {into} ({_photos(payload['n_photos'])})"
        case "split":
            origin = f" off {_listed(payload['from'], title_of)}" if payload["from"] else ""
            return f"split {_photos(payload['n_photos'])}{origin} as {title_of(payload['new'])}"
        case "reject":
            return f"rejected {title_of(payload['category'])} ({_photos(payload['n_photos'])} unsure)"
        case "unsure" if "category" in payload:
            return f"put off {title_of(payload['category'])}"
        case "unsure":
            return f"set {_photos(payload['n_photos'])} to unsure"
        case "move" if payload["from"] == [payload["to"]]:
            return f"confirmed {_photos(payload['n_photos'])} of {title_of(payload['to'])}"
        case "move":
            return f"moved {_photos(payload['n_photos'])} to {title_of(payload['to'])}"
        case "close":
            return f"closed stage {payload['stage']}"
        case "undo" if payload["kind"] == "undo":
            taken_back = payload["undone"]
            return f"redid: {decision_sentence(taken_back['kind'], taken_back['undone'], title_of)}"
        case "undo":
            return f"undid: {decision_sentence(payload['kind'], payload['undone'], title_of)}"
    return kind


def _photos(n_photos: int) -> str:
    return f"{n_photos:,} {'photo' if n_photos == 1 else 'photos'}"


def _listed(category_ids: list[int], title_of: TitleOf) -> str:
    first = title_of(category_ids[0])
    return first if len(category_ids) == 1 else f"{first} and {len(category_ids) - 1} more"
