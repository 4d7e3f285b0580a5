"""JUnit XML: a test case for the verdict of the comparison, for each family and for each point.

A slowdown is one failure, of the widest family that shares it. A case without a clear answer is
skipped, with the reason. The comparison's verdict is a case of its own: if nothing could be judged,
readers must not see a success.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from kvbench.exports.causes import Cause, headline, sensitivity, told
from kvbench.exports.causes import sentence as cause
from kvbench.exports.wording import counts, sentence, sides
from kvbench.model import Comparison, Judged
from kvbench.model.verdict import CONTAMINATED, INCONCLUSIVE, NOT_COMPARABLE, REGRESSION

_OUTCOMES = {REGRESSION: "failure", CONTAMINATED: "skipped", INCONCLUSIVE: "skipped"}
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(comparison: Comparison) -> str:
    numbers = [counts(comparison.families, "family"), counts(comparison.points, "point")]
    said = [
        *numbers,
        sides(comparison),
        *filter(None, [sensitivity(comparison)]),
        *comparison.notes,
    ]
    found = [line for line in told(comparison) if line.judged.verdict == REGRESSION]
    whole = _case(
        "comparison",
        "verdict",
        comparison.verdict,
        headline(comparison),
        said,
        "error",
        bool(found),
    )
    suites = [
        _suite(comparison, "comparison", [whole]),
        _suite(
            comparison, "families", [_judged(one, "families", found) for one in comparison.families]
        ),
        _suite(
            comparison, "points", [_judged(one, one.family, found) for one in comparison.points]
        ),
        _suite(
            comparison,
            "missing",
            [_case("missing", why, NOT_COMPARABLE, why) for why in comparison.missing],
        ),
    ]
    root = Element("testsuites", name=f"kvbench {comparison.command}")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    ElementTree.indent(root)
    return (
        '<?xml version="1.0"'
        f' encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
    )


def _suite(comparison: Comparison, name: str, cases: list[Element]) -> Element:
    suite = Element(
        "testsuite", name=f"kvbench {comparison.command}: {name}", tests=str(len(cases))
    )
    for attribute, outcome in _COUNTED.items():
        suite.set(attribute, str(sum(case.find(outcome) is not None for case in cases)))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.9f}")
    created = datetime.fromisoformat(comparison.created).astimezone(UTC).replace(tzinfo=None)
    suite.set("timestamp", created.isoformat(timespec="seconds"))
    suite.set("hostname", comparison.machine)
    properties = SubElement(suite, "properties")
    for key in ("base", "head", "machine", "verdict"):
        SubElement(properties, "property", name=key, value=getattr(comparison, key))
    suite.extend(cases)
    return suite


def _judged(judged: Judged, group: str, found: Sequence[Cause]) -> Element:
    """The test case of a point or family. Its time is head's time of a pass. `found`: all
    causes.
    """
    line = next((line for line in found if line.judged is judged), None)
    said = f"{cause(line)}; {sentence(judged)}" if line else sentence(judged)
    more = (
        [f"{point.name}: {sentence(point)}" for point in line.points if point != judged]
        if line
        else []
    )
    case = _case(group, judged.name, judged.verdict, said, more, elsewhere=not line)
    if judged.head_seconds is not None:
        case.set("time", f"{max(judged.head_seconds, 0):.9f}")
    return case


def _case(
    group: str,
    name: str,
    word: str,
    text: str,
    more: Iterable[str] = (),
    lost: str = "skipped",
    elsewhere: bool = False,
) -> Element:
    """A test case. Some readers keep the message of an outcome, some its text. `lost`: the outcome
    if it cannot be compared. `elsewhere`: another case reports this slowdown as a failure.
    """
    case, said = Element("testcase", classname=group, name=name), f"{word}: {text}"
    outcome = lost if word == NOT_COMPARABLE else _OUTCOMES.get(word)
    outcome = None if elsewhere and outcome == "failure" else outcome
    place = (
        SubElement(case, outcome, type=word, message=said)
        if outcome
        else SubElement(case, "system-out")
    )
    place.text = "\n".join([said, *more])
    return case
