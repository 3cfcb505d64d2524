"""How the report looks: on a phone, on a screen that is light or dark, and on paper."""

from __future__ import annotations

from greenline.trace import diagram

STYLE = (
    """
:root { color-scheme: light dark; --ground: #fff; --sheet: #f6f7f9; --ink: #1c1f23; --quiet: #5b6470; --edge: #d9dde3;
  --good: #1b6e3c; --good-ground: #e5f4ea; --bad: #b3261e; --bad-ground: #fdeceb; --bar: #9db7e0 }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #16191d; --sheet: #1e2227; --ink: #e4e7eb;
  --quiet: #9aa3ae; --edge: #343a42; --good: #7fd6a0; --good-ground: #17301f; --bad: #ff8a80; --bad-ground: #3a1c1a;
  --bar: #3c5a8a } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .2rem 0 } h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem }
h3 { font-size: 1.05rem; margin: 2rem 0 .2rem } h4 { font-size: .95rem; margin: 0 } p { margin: .3rem 0 }
code, pre { font: .82rem/1.45 ui-monospace, monospace } .quiet { color: var(--quiet); font-size: .9rem }
.verdict { border-radius: .6rem; padding: 1rem 1.2rem } .verdict p { margin: .2rem 0 0 }
.holds { background: var(--good-ground) } .holds h1, td.good { color: var(--good) }
.broken { background: var(--bad-ground) } .broken h1, td.bad, .because, .is-marked { color: var(--bad) }
.numbers { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); gap: .6rem; margin: 1rem 0;
  padding: 0 }
.numbers div { background: var(--sheet); border-radius: .5rem; padding: .5rem .8rem }
.numbers dt { color: var(--quiet); font-size: .8rem } .numbers dd { margin: 0; font-size: 1.25rem; font-weight: 600;
  font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100% } th { text-align: left; font-size: .8rem; color: var(--quiet) }
th, td { padding: .4rem .5rem; border-bottom: 1px solid var(--edge); vertical-align: top }
td.figure, th.figure { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
td.good, td.bad { font-weight: 600; white-space: nowrap } .claim { color: var(--quiet); font-size: .85rem }
.cost { background: linear-gradient(var(--bar), var(--bar)) right top 1.95rem / var(--part) 3px no-repeat }
.violation { border: 1px solid var(--edge); border-left: 4px solid var(--bad); border-radius: .4rem;
  padding: .8rem 1rem; margin: .8rem 0 }
.witness { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .4rem 0 } .witness dt { color: var(--quiet) }
.witness div { display: flex; gap: .4rem } .witness dd { margin: 0; font-weight: 600 } .because { font-weight: 600 }
.drawing { overflow-x: auto; border: 1px solid var(--edge); border-radius: .3rem; margin: .6rem 0 }
.drawing svg { display: block } pre { overflow-x: auto; margin: .4rem 0; padding: .6rem .8rem; background: var(--sheet);
  border-radius: .3rem } summary { cursor: pointer; color: var(--quiet) } .is-marked { font-weight: 600 }
@media (max-width: 34rem) { .rate { display: none } th, td { padding: .35rem .25rem } h1 { font-size: 1.3rem } }
@media print { body { max-width: none; padding: 0; font-size: 10pt } .drawing { overflow: visible; border: 0 }
  .drawing svg { max-width: 100%; height: auto } .violation, tr { break-inside: avoid-page }
  pre { white-space: pre-wrap } details::details-content { content-visibility: visible; block-size: auto }
  .verdict, .numbers div { border: 1px solid var(--edge) } }
"""
    + diagram.STYLE
)
