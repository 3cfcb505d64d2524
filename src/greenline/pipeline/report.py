"""The report of an audit: one page of HTML for a person, that needs no network and runs no script.

What ran, how much there was of what, each rule with its verdict and its cost; and of each broken rule the first
violations: the because, the witness, a space-time diagram of what was going on, and the story of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from html import escape
from pathlib import Path

from greenline import __version__
from greenline.pipeline.report_counts import Counts
from greenline.pipeline.report_scene import Scene, SceneOf, scenes
from greenline.pipeline.report_style import STYLE
from greenline.pipeline.report_trace import Select
from greenline.pipeline.report_words import number, plain, seconds, shown, tame
from greenline.pipeline.verdicts import Verdict, Verdicts, whole
from greenline.spec.judge import Broken
from greenline.trace.diagram import OMITTED, draw
from greenline.trace.story import Line, tell

SHOWN = 3
"""Violations that are shown of one rule."""
_ENGINES = {"duckdb": "DuckDB", "spark": "Spark"}
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Should a trace ever get a script past us, a browser does not run it."""


def write_report(path: Path, audit: Verdicts, begun: datetime, select: Select) -> None:
    with whole(path) as aside:
        text = "\n".join(page(audit, begun, scenes(select, shown_of(audit))))
        aside.write_text(text + "\n", encoding="utf-8", errors="replace")


def shown_of(audit: Verdicts) -> list[Broken]:
    """The violations that a report shows."""
    return [broken for verdict in audit.broken for broken in verdict.broken[:SHOWN]]


def page(audit: Verdicts, begun: datetime, scene_of: SceneOf) -> Iterator[str]:
    broken = audit.broken
    rules = f"{len(audit.verdicts)} rules"
    title = f"{len(broken)} of {rules} broken" if broken else f"All {rules} hold"
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>Audit: {shown(title)}</title><style>{STYLE}</style></head><body>"
    yield from _head(title, audit, begun)
    yield from _numbers(audit.counts)
    yield from _rules(audit)
    if broken:
        yield "<h2>Violations</h2>"
        yield from _legend()
    for each in broken:
        yield from _violations(audit, each, scene_of)
    yield f'<p class="quiet">greenline {shown(__version__)}</p></body></html>'


def _head(title: str, audit: Verdicts, begun: datetime) -> Iterator[str]:
    counts = audit.counts
    runs = f"{number(counts.runs)} {'run' if counts.runs == 1 else 'runs'}"
    yield f'<header class="verdict {"broken" if audit.broken else "holds"}"><h1>{shown(title)}</h1>'
    yield (
        f"<p>{number(counts.events)} events of {runs}, judged by {shown(_ENGINES.get(audit.engine, audit.engine))}"
        f" in {seconds(audit.seconds)}</p></header>"
    )
    yield (
        f'<p class="quiet"><code>{shown(audit.place)}</code>, {shown(begun.astimezone().isoformat(" ", "seconds"))}</p>'
    )


def _numbers(counts: Counts) -> Iterator[str]:
    named = {
        "events": counts.events,
        "runs": counts.runs,
        "processes, at most": counts.most_in_a_run,
        "lives": counts.lives,
        "configurations": counts.configurations,
        "merges": counts.merges,
        "splits": counts.splits,
        "crashes": counts.crashes,
        "messages": counts.messages,
        "deliveries": counts.deliveries,
        "actions applied": counts.actions,
    }
    yield '<dl class="numbers">'
    for name, value in named.items():
        yield f"<div><dt>{name}</dt><dd>{number(value)}</dd></div>"
    yield "</dl>"


def _rules(audit: Verdicts) -> Iterator[str]:
    dearest = max((each.seconds for each in audit.verdicts), default=0.0) or 1.0
    yield "<h2>Rules</h2><table><thead><tr><th>rule</th><th>verdict</th>"
    yield '<th class="figure">cost</th><th class="figure rate">events/s</th></tr></thead><tbody>'
    for each in audit.verdicts:
        said = '<td class="good">holds</td>'
        if each.count:
            link = f'<a class="because" href="#{_anchor(each)}">broken</a>'
            said = f'<td class="bad">{link} {number(each.count)}</td>'
        rate = number(audit.counts.events / each.seconds) if each.seconds > 0 else ""
        yield f'<tr><td>{shown(each.rule.title)}<br><span class="claim">{escape(each.rule.claim)}</span></td>{said}'
        yield f'<td class="figure cost" style="--part: {each.seconds / dearest:.1%}">{seconds(each.seconds)}</td>'
        yield f'<td class="figure rate">{rate}</td></tr>'
    yield (
        '<tr><td class="claim">what rules have in common: tables, the certificate of order</td><td></td>'
        f'<td class="figure">{seconds(audit.preparing)}</td><td class="rate"></td></tr></tbody></table>'
    )


def _legend() -> Iterator[str]:
    yield (
        '<p class="quiet">In a diagram each process has a lane, and time goes from left to right as the clocks in the'
        " trace have it. A colour is a configuration. A square is where a message was generated, a circle where it was"
        " delivered, and a line leads from one to the other; a cross is a crash, a small ring a start. What a violation"
        " is about is ringed in red, and whom it names is named in red. Dotted lines are where rows were left out.</p>"
    )


def _violations(audit: Verdicts, verdict: Verdict, scene_of: SceneOf) -> Iterator[str]:
    yield f'<section id="{_anchor(verdict)}"><h3>{shown(verdict.rule.title)}</h3>'
    yield f'<p class="quiet">{escape(verdict.rule.claim)}</p>'
    for each in verdict.broken[:SHOWN]:
        yield from _violation(audit, each, scene_of(each))
    more = verdict.count - len(verdict.broken[:SHOWN])
    if more > 0:
        yield f'<p class="quiet">and {number(more)} more</p>'
    yield "</section>"


def _violation(audit: Verdicts, broken: Broken, scene: Scene) -> Iterator[str]:
    yield f'<article class="violation"><h4>{shown(broken.run)}</h4><dl class="witness">'
    for name, value in broken.witness.items():
        if value is not None:
            yield f"<div><dt>{shown(name)}</dt><dd>{shown(value)}</dd></div>"
    yield f'</dl><p class="because">because {shown(broken.because)}</p>'
    yield from _seen(broken, scene)
    again = shlex.join(["greenline", "trace", "story", audit.place, "--run", broken.run])
    yield f'<p class="quiet">the whole story: <code>{shown(again)}</code></p></article>'


def _seen(broken: Broken, scene: Scene) -> Iterator[str]:
    seen = _tame(scene)
    yield '<div class="drawing" tabindex="0">'
    yield draw(plain(broken.run), seen.rows, is_marked=seen.is_marked, accused=seen.accused, style="")
    yield "</div><details open><summary>the story around it</summary><pre>"
    for line in tell(seen.rows, everything=True):
        yield _line(line, is_marked=any(map(seen.is_marked, line.rows)))
    yield "</pre></details>"


def _tame(scene: Scene) -> Scene:
    return Scene(
        [tame(row) for row in scene.rows],
        frozenset((plain(process), life, place) for process, life, place in scene.marked),
        frozenset(map(plain, scene.accused)),
    )


def _line(line: Line, *, is_marked: bool) -> str:
    if line.rows[0].kind == OMITTED:
        return "…"
    text = shown(f"{line.process:<4} {line.phase:<11} {line.conf:<8} {line.text}")
    return f'<span class="is-marked">{text}</span>' if is_marked else text


def _anchor(verdict: Verdict) -> str:
    return shown(verdict.rule.name.replace("/", "-"))
