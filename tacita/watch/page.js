"use strict";
// What is shown comes from the stream "events", as parts that changed. Words are put in
// as text, never as HTML: many of them were written by others.

const here = (id) => document.getElementById(id);
const parts = new Map(); // the newest state of every part
const shown = new Map(); // the element of every part that the page shows
const LONG = 30; // words that may need more than one line

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function section(title) {
  return make("section", {}, make("h2", {}, title));
}

function showHead(head) {
  say(here("role"), `Tacita · ${head.role}`);
  say(here("title"), head.title);
  say(here("lede"), head.lede);
  say(here("state"), head.state);
  here("state").className = `state ${head.tone}`;
  const bar = here("progress");
  bar.hidden = head.of === 0;
  bar.max = Math.max(1, head.of);
  bar.value = head.done;
  document.title = head.of ? `${head.done}/${head.of} ${head.title}` : head.title;
  const warnings = head.warnings.map((words) => make("p", { class: "warning" }, words));
  const box = here("warnings");
  if (box.textContent !== head.warnings.join("")) box.replaceChildren(...warnings);
}

// A value; what is in brackets behind it, such as a range, goes below it.
const said = new WeakMap(); // the words of every element that was filled
function fill(element, words) {
  if (said.get(element) === words) return element;
  said.set(element, words);
  const found = /^([-+\d.].*) \((.*)\)$/.exec(words);
  const only = element.childNodes.length === 1 && element.firstChild.nodeType === Node.TEXT_NODE;
  if (!found && only) element.firstChild.data = words;
  else element.replaceChildren(...(found ? [found[1], make("small", {}, found[2])] : [words]));
  return element;
}

function showCards(part) {
  const cards = part.pairs.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), fill(make("dd", {}), value)));
  return make("dl", { class: "cards" }, ...cards);
}

function pairList(pairs) {
  const items = pairs.flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]);
  return make("dl", { class: "notes" }, ...items);
}

function showPairs(part) {
  const made = section(part.title);
  made.append(pairList(part.pairs));
  return made;
}

function showTable(part, old) {
  const columns = JSON.stringify(part.columns), same = old && old.dataset.columns === columns;
  const made = same ? old : section(part.title);
  if (!same) {
    made.dataset.columns = columns;
    const heads = part.columns.map((c) => make("th", { scope: "col", role: "columnheader" }, c));
    const head = make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...heads));
    const table = make("table", { role: "table" }, head, make("tbody", { role: "rowgroup" }));
    const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": part.title };
    made.append(make("div", box, table), make("p", { class: "note" }));
  }
  fillRows(made.querySelector("table"), part);
  say(made.querySelector("p.note"), part.note);
  made.querySelector("p.note").hidden = !part.note;
  return made;
}

// Cells change where they are: a reader's place, focus and selection stay.
function fillRows(table, part) {
  const body = table.tBodies[0];
  while (body.rows.length > part.rows.length) body.deleteRow(-1);
  while (body.rows.length < part.rows.length) body.append(make("tr", { role: "row" }));
  const inWords = part.columns.map((_, column) => part.rows.some((cells) => /^[^-+\d]/.test(cells[column])));
  part.columns.forEach((_, column) => table.tHead.rows[0].cells[column].classList.toggle("words", inWords[column]));
  [...body.rows].forEach((row, k) => {
    const cells = [...row.children];
    part.columns.forEach((name, column) => {
      const kind = column ? ["td", { role: "cell" }] : ["th", { scope: "row", role: "rowheader" }];
      if (!cells[column]) row.append(cells[column] = make(kind[0], { ...kind[1], "data-head": name }));
      const words = part.rows[k][column], cell = fill(cells[column], words);
      cell.classList.toggle("words", inWords[column]);
      cell.classList.toggle("long", words.length > LONG);
    });
  });
}

// A table that is wider than its place shows its rows as lists instead. To try that
// costs a layout: it is done where the place or the longest words of a column changed.
const tried = new WeakMap();
function fit(element, part) {
  const box = element.querySelector(".scroll");
  const lengths = part.columns.map((_, k) => Math.max(0, ...part.rows.map((cells) => cells[k].length)));
  const room = [innerWidth, ...lengths].join();
  if (tried.get(element) === room) return;
  tried.set(element, room);
  element.classList.remove("stack");
  element.classList.toggle("stack", box.scrollWidth > box.clientWidth + 1);
}

function legend(curve) {
  const items = curve.lines.map((line, kind) => {
    const words = `${line.label}: ${summary(curve, line)}`.replace(/^: /, "");
    return make("li", {}, ...(curve.lines.length > 1 ? [legendSample(kind)] : []), words);
  });
  return make("ul", { class: "legend" }, ...items);
}

function showCurves(part, old) {
  const made = old || section(part.title);
  made.querySelectorAll(".note, .grid").forEach((one) => one.remove());
  const figures = part.curves.map((curve) =>
    make("figure", {}, make("figcaption", {}, curve.name), make("div", { class: "paper" }), legend(curve)));
  if (part.note) made.append(make("p", { class: "note" }, part.note));
  made.append(make("div", { class: "grid" }, ...figures));
  return made;
}

function drawCurves(part, element) {
  element.querySelectorAll(".paper").forEach((paper, k) => {
    paper.replaceChildren(chart(part.curves[k], Math.max(240, paper.clientWidth)));
  });
}

function showOffers(part, old) {
  const made = section(part.title);
  const known = new Map([...(old ? old.querySelectorAll(".offer") : [])].map((one) => [one.dataset.words, one]));
  for (const offer of part.offers) {
    const words = JSON.stringify(offer); // one that is the same keeps its focus
    made.append(known.get(words) || offerCard(offer, words));
  }
  return made;
}

function offerCard(offer, words) {
  const made = make("article", { class: "offer" });
  made.dataset.words = words;
  made.append(make("h3", {}, `${offer.name}: ${offer.decision}`), pairList(offer.facts));
  if (offer.decision !== "waits") return made;
  const yes = make("button", { type: "button" }, "Accept");
  const no = make("button", { type: "button", class: "quiet" }, "Decline");
  yes.addEventListener("click", () => ask(offer, true));
  no.addEventListener("click", () => ask(offer, false));
  made.append(make("p", { class: "buttons" }, yes, no));
  return made;
}

function ask(offer, accept) {
  const word = accept ? "Accept" : "Decline";
  say(here("question"), `${word} ${offer.name}?`);
  say(here("asked"), accept
    ? `It would release: ${offer.terms}. The policy and the ledger still have their say.`
    : "The coordinator is told that this run is refused, and not why.");
  say(here("yes"), word);
  here("yes").onclick = () => decide(offer.run, accept);
  here("ask").showModal();
}

async function decide(run, accept) {
  here("yes").disabled = true;
  let words = "the program that shows this page does not answer";
  try {
    const answer = await fetch("decide", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ run, accept }),
    });
    const told = await answer.json();
    words = told.told || `not done: ${told.error}`;
  } catch { /* said above */ }
  here("yes").disabled = false;
  here("ask").close();
  say(here("said"), words);
  here("said").hidden = false;
}

const SHOW = { cards: showCards, table: showTable, pairs: showPairs, curves: showCurves, offers: showOffers };

function update(changed) {
  for (const [name, part] of Object.entries(changed)) {
    if (part === null) {
      parts.delete(name);
      shown.get(name)?.remove();
      far.delete(shown.get(name));
      shown.delete(name);
    } else if (name === "head") {
      showHead(part);
    } else if (name !== "order") {
      parts.set(name, part);
      if (far.has(shown.get(name))) late.add(name);
      else show(name);
    }
  }
  if (changed.order) arrange(changed.order);
  Object.keys(changed).filter((name) => !late.has(name)).forEach(settle);
}

function show(name) {
  const part = parts.get(name), old = shown.get(name), made = SHOW[part.kind](part, old);
  if (old === made) return;
  if (old) { old.replaceWith(made); near.unobserve(old); }
  shown.set(name, made);
  if (part.kind === "table") near.observe(made);
}

// Tables that are far from what the window shows change once they come near.
const far = new Set(), late = new Set();
const near = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) far[isIntersecting ? "delete" : "add"](target);
  catchUp();
}, { rootMargin: "100%" });

function catchUp() {
  for (const name of late) {
    if (far.has(shown.get(name))) continue;
    late.delete(name);
    if (parts.has(name)) { show(name); settle(name); }
  }
}
addEventListener("beforeprint", () => { far.clear(); catchUp(); });

// What can be done only once a part has its place.
function settle(name) {
  const part = parts.get(name);
  if (part?.kind === "curves") drawCurves(part, shown.get(name));
  if (part?.kind === "table") fit(shown.get(name), part);
}

// Moves only what is not in its place: what moves loses its focus.
function arrange(order) {
  let place = here("parts").firstChild;
  for (const name of order.filter((one) => shown.has(one))) {
    const element = shown.get(name);
    if (element === place) place = place.nextSibling;
    else here("parts").insertBefore(element, place);
  }
}

let stream = null;
function listen() {
  if (stream || document.hidden) return;
  stream = new EventSource("events");
  let fresh = true;
  stream.onopen = () => { fresh = true; say(here("connection"), "live"); };
  stream.onerror = () => say(here("connection"), "no connection: was the program ended? Trying again.");
  stream.onmessage = (message) => {
    const changed = JSON.parse(message.data);
    if (fresh) for (const name of parts.keys()) if (!(name in changed)) changed[name] = null;
    fresh = false;
    update(changed);
  };
}

// Nobody looks at a hidden page: then nothing is asked for.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stream?.close(); stream = null; }
  listen();
});
let width = 0;
new ResizeObserver(() => {
  if (width === here("parts").clientWidth) return;
  width = here("parts").clientWidth;
  [...parts.keys()].forEach(settle);
}).observe(here("parts"));
here("no").addEventListener("click", () => here("ask").close());
listen();
