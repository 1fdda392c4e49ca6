"""What the page is made of: tags that escape whatever they are given, and the one style sheet."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any


class Html(str):
    """Text that is markup already; only `tag` and `raw` make it."""


def tag(name: str, /, *inside: Any, **attributes: Any) -> Html:
    """<name attributes>inside</name>; texts are escaped, None is left out, klass stands for class and _ for -."""
    given = {key.replace("klass", "class").replace("_", "-"): v for key, v in attributes.items() if v is not None}
    opened = name + "".join(f' {key}="{html.escape(str(value), quote=True)}"' for key, value in given.items())
    return Html(f"<{opened}>{together(inside)}</{name}>")


def together(parts: Iterable[Any]) -> Html:
    """One after the other, texts escaped, nested ones flattened."""
    return Html("".join(_escaped(part) for part in parts))


def box(table: Html, name: str) -> Html:
    """What is too wide scrolls by itself, also by keyboard."""
    return tag("div", table, klass="box", tabindex=0, role="region", aria_label=name)


def raw(text: str) -> Html:
    """Markup written by ourselves, never by a report."""
    return Html(text)


def _escaped(part: Any) -> str:
    if part is None:
        return ""
    if isinstance(part, Html):
        return part
    if isinstance(part, list | tuple):
        return together(part)
    return html.escape(str(part), quote=True)


# Dark is bad: the order survives grey, and the hatching and the letters survive everything.
STYLE = """
:root { color-scheme: light; --line: #bbb; --soft: #f5f5f3; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1.2rem; font: 1rem/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .6rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; border-top: 2px solid #1a1a1a; padding-top: .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, ul, ol, dl { max-width: 46rem; margin: .4rem 0; }
ul, ol { padding-left: 1.3rem; }
li { margin: .25rem 0; }
.stamp { display: inline-block; border: 2px solid #1a1a1a; padding: .1rem .6rem; font-weight: 600; margin: .2rem 0 .6rem; }
.note { color: #444; font-size: .9rem; }
.words { display: grid; grid-template-columns: max-content 1fr; gap: .35rem .8rem; align-items: baseline; }
.words dd { margin: 0; }
.found { list-style: none; padding: 0; }
.found li { display: grid; grid-template-columns: 7.6rem 1fr; gap: .8rem; margin: .45rem 0; align-items: baseline; }
.mark { display: inline-block; border: 1px solid #1a1a1a; border-radius: 3px; padding: 0 .4rem; font-weight: 600; font-size: .85rem;
  white-space: nowrap; text-align: center; }
.read { background: #8c1d18; color: #fff; }
.upto { background: #d9772b; color: #1a1a1a; }
.narrowed { background: #f3cf6d; color: #1a1a1a; }
.open { background: repeating-linear-gradient(45deg, #fff 0 4px, #dcdcdc 4px 6px); color: #1a1a1a; }
.witnessed { background: #e3eefb; color: #1a1a1a; }
.box { overflow-x: auto; border: 1px solid var(--line); margin: .5rem 0; max-width: 100%; }
table { border-collapse: collapse; font-size: .9rem; }
.box > table { width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .55rem; border-bottom: 1px solid #ddd; }
thead th { background: var(--soft); border-bottom: 1px solid #888; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.verdicts { min-width: 50rem; }
.box > table.heat { width: auto; }
.heat th, .heat td { text-align: center; border: 1px solid #999; padding: .2rem .3rem; min-width: 1.9rem; }
.heat td { font-weight: 600; }
.heat .self { background: #fff; color: #767676; font-weight: 400; }
.heat tbody th { position: sticky; left: 0; background: #fff; white-space: nowrap; text-align: right; }
.heat thead th { vertical-align: bottom; }
.tall { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; margin: 0 auto; }
.sides { display: grid; grid-template-columns: minmax(0, 27rem) minmax(0, 1fr); gap: 2rem; align-items: start; }
.sides.wide { grid-template-columns: minmax(0, 1fr); }
svg { display: block; width: 100%; height: auto; max-width: 27rem; }
svg.large { max-width: 46rem; min-width: 34rem; }
details { border: 1px solid var(--line); padding: .3rem .7rem; margin: .4rem 0; }
details .box { border-width: 1px 0 0; margin: .3rem 0 0; }
td details { border: 0; padding: 0; margin: .1rem 0 0; font-size: .85rem; }
td details summary { font-weight: 400; text-decoration: underline dotted; }
summary { cursor: pointer; font-weight: 600; }
code, pre { font-family: ui-monospace, monospace; font-size: .85rem; }
pre { background: var(--soft); padding: .6rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.facts th { font-weight: 600; white-space: nowrap; }
.facts td { overflow-wrap: anywhere; }
@media (max-width: 46rem) {
  body { padding: .8rem; }
  .sides { grid-template-columns: minmax(0, 1fr); gap: .5rem; }
  .words, .found li { grid-template-columns: 1fr; gap: .1rem; }
  .words dd { margin-bottom: .5rem; }
  .mark { justify-self: start; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 9.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .box { overflow: visible; border: 0; }
  .verdicts, svg.large { min-width: 0; }
  table { font-size: 8pt; }
  tr, svg, figure { break-inside: avoid; }
  thead { display: table-header-group; }
  h2, h3, summary { break-after: avoid; }
  details { border: 0; padding: 0; }
  details::details-content { display: block; content-visibility: visible; height: auto; opacity: 1; }
  .heat tbody th { position: static; }
}
"""
