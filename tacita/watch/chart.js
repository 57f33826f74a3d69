"use strict";
// Curves as inline SVG, drawn at the width they have: lines differ in colour, dashes
// and marks, so that they are told apart without colour.

const HEIGHT = 220, LEFT = 62, RIGHT = 16, TOP = 10, BOTTOM = 26;
const KINDS = 5, MARKS_ON_LINE = 6;

function draw(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const rounded = Number(value.toPrecision(4));
  return size >= 1e5 || size < 1e-3 ? rounded.toExponential() : String(rounded);
}

function linearTicks(low, high, most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(low, high) {
  const found = (steps) => {
    const ticks = [];
    for (let d = Math.floor(Math.log10(low)); d <= Math.ceil(Math.log10(high)); d++) {
      ticks.push(...steps.map((s) => s * 10 ** d));
    }
    return ticks.filter((t) => t >= low * 0.999 && t <= high * 1.001);
  };
  const fine = found([1, 2, 5]);
  if (fine.length <= 6) return fine;
  const powers = found([1]), every = Math.ceil(powers.length / 5);
  return powers.filter((_, k) => k % every === 0);
}

function mark(kind, x, y) {
  const r = 4, shapes = [
    `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    `M${x} ${y - r - 1}l${r + 1} ${2 * r}h${-2 * r - 2}z`,
    `M${x} ${y - r - 1}l${r + 1} ${r + 1}l${-r - 1} ${r + 1}l${-r - 1} ${-r - 1}z`,
    `M${x - r} ${y - r}l${2 * r} ${2 * r}M${x + r} ${y - r}l${-2 * r} ${2 * r}`,
  ];
  return draw("path", { class: `mark mark-${kind % KINDS}`, d: shapes[kind % KINDS] });
}

// Where values and rounds lie on the paper.
function scales(curve, width) {
  const values = curve.lines.flatMap((l) => l.values).filter((v) => v !== null);
  let low = Math.min(...values), high = Math.max(...values);
  if (curve.from_zero) low = Math.min(0, low);
  const log = curve.log && low > 0;
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 1, high + 1];
  const first = curve.rounds[0], last = curve.rounds.at(-1);
  const at = log ? Math.log : (v) => v;
  const across = width - LEFT - RIGHT, down = HEIGHT - TOP - BOTTOM;
  return {
    x: (r) => LEFT + (last === first ? 0.5 : (r - first) / (last - first)) * across,
    y: (v) => TOP + (1 - (at(v) - at(low)) / (at(high) - at(low))) * down,
    ticksY: log ? logTicks(low, high) : linearTicks(low, high, 6),
    ticksX: last === first ? [first]
      : linearTicks(first, last, width / 90).filter(Number.isInteger),
  };
}

function chart(curve, width) {
  const drawable = curve.lines.some((l) => l.values.some((v) => v !== null));
  const told = curve.lines.map((line) => `${line.label} ${summary(curve, line)}`);
  const words = `${curve.name} by round: ${told.join("; ")}`;
  const attributes = { class: "chart", role: "img", "aria-label": words, height: HEIGHT };
  const made = draw("svg", { ...attributes, viewBox: `0 0 ${width} ${HEIGHT}` });
  if (!drawable) return made;
  const { x, y, ticksX, ticksY } = scales(curve, width);
  for (const tick of ticksY) {
    const ends = { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) };
    made.append(draw("line", { class: "grid-line", ...ends }));
    const place = { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" };
    made.append(draw("text", place, short(tick)));
  }
  for (const tick of ticksX) {
    const place = { x: x(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" };
    made.append(draw("text", place, String(tick)));
  }
  made.append(draw("text", { x: 0, y: HEIGHT - BOTTOM + 18 }, "round"));
  curve.lines.forEach((line, kind) => {
    let path = "", pen = "M";
    line.values.forEach((value, k) => {
      if (value !== null) path += `${pen}${x(curve.rounds[k]).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = value === null ? "M" : "L";
    });
    made.append(draw("path", { class: `line line-${kind % KINDS}`, d: path }));
    const every = Math.ceil(line.values.length / MARKS_ON_LINE), last = line.values.length - 1;
    line.values.forEach((value, k) => {
      const several = curve.lines.length > 1 && k % every === 0;
      if (value !== null && (several || k === last)) made.append(mark(kind, x(curve.rounds[k]), y(value)));
    });
  });
  return made;
}

function summary(curve, line) {
  const last = line.values.at(-1);
  return `${last === null || last === undefined ? "no number" : short(last)} at round ${curve.rounds.at(-1)}`;
}

function legendSample(kind) {
  const path = { class: `line line-${kind % KINDS}`, d: "M0 6H44" };
  return draw("svg", { "aria-hidden": "true", viewBox: "0 0 44 12" }, draw("path", path), mark(kind, 22, 6));
}
