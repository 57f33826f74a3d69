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
function card([name, value]) {
  const found = /^(.*) \((.*)\)$/.exec(value);
  const told = found ? [found[1], make("small", {}, found[2])] : [value];
  return make("div", {}, make("dt", {}, name), make("dd", {}, ...told));
}

function showCards(part) {
  return make("dl", { class: "cards" }, ...part.pairs.map(card));
}

function pairList(pairs) {
  const items = pairs.flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]);
  return make("dl", { class: "notes" }, ...items);
}

function showPairs(part) {
  const made = section(part.title);
  made.append(make("details", {}, make("summary", {}, "Show them"), pairList(part.pairs)));
  return made;
}

function showTable(part, old) {
  const same = old && old.dataset.columns === JSON.stringify(part.columns);
  const made = same ? old : section(part.title);
  if (!same) {
    made.dataset.columns = JSON.stringify(part.columns);
    const heads = part.columns.map((c) => make("th", { scope: "col" }, c));
    const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}));
    const box = { class: "scroll", tabindex: "0", role: "region", "aria-label": part.title };
    made.append(make("div", box, table), make("p", { class: "note" }));
  }
  const body = made.querySelector("tbody");
  while (body.rows.length > part.rows.length) body.deleteRow(-1);
  part.rows.forEach((cells, k) => {
    const row = body.rows[k] || body.insertRow();
    cells.forEach((words, column) => {
      if (!row.cells[column]) {
        row.append(column ? make("td", {}) : make("th", { scope: "row" }));
      }
      say(row.cells[column], words);
      row.cells[column].classList.toggle("long", words.length > LONG);
    });
  });
  say(made.querySelector("p.note"), part.note);
  made.querySelector("p.note").hidden = !part.note;
  return made;
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

// Once they are on the page, their width is known.
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
    ? `It would release: ${offer.facts[0][1]}. The policy and the ledger still have their say.`
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
      shown.delete(name);
    } else if (name === "head") {
      showHead(part);
    } else if (name !== "order") {
      const old = shown.get(name), made = SHOW[part.kind](part, old);
      if (old && old !== made) old.replaceWith(made);
      parts.set(name, part);
      shown.set(name, made);
    }
  }
  if (changed.order) arrange(changed.order);
  for (const name of Object.keys(changed)) {
    if (parts.get(name)?.kind === "curves") drawCurves(parts.get(name), shown.get(name));
  }
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
  for (const [name, part] of parts) if (part.kind === "curves") drawCurves(part, shown.get(name));
}).observe(here("parts"));
here("no").addEventListener("click", () => here("ask").close());
listen();
