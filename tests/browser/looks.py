"""What can be wrong with how a page looks, as questions to the page itself."""

from __future__ import annotations

from tests.browser.chromium import Browser

#: Text below this contrast with its ground is hard to read (WCAG AA).
LEAST_CONTRAST = 4.5

_PALE = """
const parse = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
const found = [];
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !e.checkVisibility() || e.closest("script, noscript, style")) continue;
  const style = getComputedStyle(e);
  const ink = light(parse(e instanceof SVGElement ? style.fill : style.color));
  const paper = light(ground(e));
  const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  if (ratio < arguments[0]) found.push(`${e.textContent.trim()}: ${ratio.toFixed(2)}`);
}
return found;
"""

_CUT = """
const found = [], page = document.documentElement;
if (page.scrollWidth > page.clientWidth) found.push("wider than the window");
for (const e of document.querySelectorAll("body *")) {
  if (!e.checkVisibility() || e instanceof SVGElement) continue;
  if (e.closest("pre, dialog, noscript, thead")) continue;
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  const out = box.right > page.clientWidth + 1 || box.left < -1;
  const cut = e.scrollWidth > e.clientWidth + 1 && style.overflowX !== "visible";
  if (out || cut) found.push(`cut: ${e.textContent.slice(0, 60)}`);
}
for (const svg of document.querySelectorAll("svg[role=img]")) {
  const paper = svg.getBoundingClientRect();
  const words = [...svg.querySelectorAll("text")];
  const boxes = words.map((t) => t.getBoundingClientRect());
  boxes.forEach((b, k) => {
    const aside = b.left < paper.left - 1 || b.right > paper.right + 1;
    const name = words[k].textContent;
    if (aside || b.bottom > paper.bottom + 1) found.push(`beyond the picture: ${name}`);
    boxes.slice(k + 1).forEach((c, m) => {
      const beside = b.right <= c.left || c.right <= b.left;
      const below = b.bottom <= c.top + 1 || c.bottom <= b.top + 1;
      const other = words[k + 1 + m].textContent;
      if (!beside && !below) found.push(`crossed: ${name}, ${other}`);
    });
  });
}
return found;
"""


def pale_words(browser: Browser) -> list[str]:
    """Words whose contrast with what is behind them is too low."""
    return browser.run(_PALE, LEAST_CONTRAST)


def cut_or_crossed(browser: Browser) -> list[str]:
    """What is cut, wider than the page, or drawn over something else."""
    return browser.run(_CUT)
