// Keys, countdowns, "was it shown in full?", and what arrives while the page is open. Pages can be read without it.
const $ = (q, from = document) => from.querySelector(q);
const $$ = (q, from = document) => [...from.querySelectorAll(q)];
const base = document.body.dataset.base;
const root = document.documentElement;
root.classList.add("js");
const GUARD = 600; // ms in which a question that has just appeared cannot be approved: the key was meant for another

// --- time ---------------------------------------------------------------------------------------------------
const span = (ms) => {
  const s = Math.max(0, ms) / 1000;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
};
const tick = () => {
  const now = Date.now();
  for (const t of $$("time[data-at]")) {
    const passed = now - t.dataset.at;
    const words = passed < 5000 ? "just now" : `${span(passed)} ago`;
    if (t.textContent !== words) t.textContent = words;
  }
  for (const t of $$("time[data-until]")) {
    const left = t.dataset.until - now;
    const words = left > 0 ? `${span(left)} left` : "expired";
    if (t.textContent !== words) t.textContent = words;
  }
};
setInterval(tick, 1000);
{ const here = $(".rail [aria-current]"); if (here) here.closest("ul").scrollLeft = here.offsetLeft - innerWidth / 2 + 31; } // in view on a phone

// --- shown in full? -----------------------------------------------------------------------------------------
let since = 0;
let shown = false;
let watcher = null;
const ready = () => shown && performance.now() - since > GUARD;
function watch() {
  watcher?.disconnect();
  const question = $("#question");
  const end = $("#end");
  const button = $("#approve-button");
  since = performance.now();
  shown = false;
  if (!question || !end || !button) return;
  mark(false);
  watcher = new IntersectionObserver((seen) => {
    if (seen.some((each) => each.isIntersecting)) { shown = true; watcher.disconnect(); mark(true); }
  }, { rootMargin: `0px 0px -${covered()}px 0px` });
  watcher.observe(end);
}
// what lies over the end of the page: the answers, and on a phone the way to other pages
function covered() {
  const rail = $(".rail").getBoundingClientRect();
  return Math.round(($("#question .bar")?.offsetHeight ?? 0) + (rail.top > innerHeight / 2 ? rail.height : 0));
}
function mark(yes) {
  const button = $("#approve-button");
  const note = $("#not-yet");
  if (yes) button.removeAttribute("aria-disabled"); else button.setAttribute("aria-disabled", "true");
  if (note) note.hidden = yes;
  for (const each of $$("#grant .go")) yes ? each.removeAttribute("aria-disabled") : each.setAttribute("aria-disabled", "true");
}
document.addEventListener("submit", (event) => {
  const pressed = event.submitter;
  if (pressed?.classList.contains("go") && pressed.closest("#question .bar") && $("#end") && !ready()) {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!shown) $("#end")?.scrollIntoView({ block: "center" });
  }
}, true);
document.addEventListener("click", (event) => {
  if (event.target.closest("#to-end")) $("#end").scrollIntoView({ block: "center" });
  if (event.target.closest("#theme")) theme();
  if (event.target.closest("#help-open")) $("#help").showModal();
  if (event.target.closest("#waiting")) { scrollTo(0, 0); refreshFeed(); }
});

function theme() {
  const dark = root.dataset.theme === "dark" || (root.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `toolgate_theme=${root.dataset.theme}; path=${base}; max-age=31536000; samesite=strict`;
}

// --- several at once ----------------------------------------------------------------------------------------
function selection() {
  const boxes = $$("#several input[type=checkbox]");
  const chosen = boxes.filter((box) => box.checked);
  const kind = chosen[0]?.dataset.kind;
  for (const box of boxes) box.disabled = kind !== undefined && box.dataset.kind !== kind;
  const bar = $("#several .together");
  if (bar) { bar.hidden = chosen.length < 2; $("b", bar).textContent = chosen.length; }
}
document.addEventListener("change", (event) => {
  if (event.target.closest("#several")) selection();
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
});

// --- keys ---------------------------------------------------------------------------------------------------
const busy = (el) => el && (el.isContentEditable || /^(INPUT|SELECT|TEXTAREA|BUTTON|A|SUMMARY)$/.test(el.tagName));
function move(step) {
  const links = $$("#list .item a, #feed .call");
  if (!links.length) return;
  const at = links.indexOf(document.activeElement);
  const here = at >= 0 ? at : links.findIndex((a) => a.getAttribute("aria-current"));
  const next = links[Math.min(links.length - 1, Math.max(0, here < 0 ? 0 : here + step))];
  if (next.closest("#list")) next.click(); else next.focus();
}
const open = (id, field) => { const box = $(id); if (box) { box.open = true; $(field).focus(); } };
const KEYS = {
  j: () => move(1), k: () => move(-1), "?": () => $("#help").showModal(), x: () => open("#refuse", "#refuse-reason"),
  g: () => open("#grant", $("#grant-paths") ? "#grant-paths" : "#grant-seconds"), o: () => $("#open-ledger")?.click(), "/": () => $("#q")?.focus(),
  Enter: () => $("#approve-button")?.form.requestSubmit($("#approve-button")),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || $("dialog[open]")) return;
  if (event.key === "Escape") { const box = $(".bar details[open]"); if (box) { box.open = false; $("summary", box).focus(); } return; }
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (typing || (event.key === "Enter" && busy(event.target)) || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});

// --- after a part was replaced ------------------------------------------------------------------------------
document.addEventListener("htmx:afterSwap", (event) => {
  const id = event.detail.target?.id;
  if (id === "question") {
    const question = $("#question");
    for (const item of $$("#list .item")) {
      const link = $("a", item);
      const on = link.id === `q-${question.dataset.id}`;
      item.classList.toggle("on", on);
      if (on) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
    watch();
    if (quiet) quiet = false; else { question.focus({ preventScroll: true }); if (innerWidth <= 1000 || scrollY > 0) question.scrollIntoView({ block: "start" }); }
    if (question.dataset.state !== "open") { say($("#question-title")?.textContent.trim() ?? ""); catchUp(question); }
  }
  if (id === "list") { selection(); if (document.activeElement === document.body) $("#question")?.focus({ preventScroll: true }); }
});
document.addEventListener("htmx:responseError", (event) => { if (event.detail.xhr.status === 401) location.reload(); });
const say = (text) => { $("#live").textContent = text; };

// --- what arrives -------------------------------------------------------------------------------------------
let quiet = false;
let missed = 0;
const later = {};
// at most once in `ms`, but at least that: whoever keeps talking must not keep the page from changing
const soon = (name, work, ms = 150) => { later[name] ??= setTimeout(() => { delete later[name]; work(); }, ms); };
const query = (name) => new URLSearchParams(location.search).get(name) ?? "";

async function refreshList(ids) {
  const before = ($("#list").dataset.ids ?? "").split(" ").filter(Boolean);
  const chosen = $$("#several input:checked").map((box) => box.id);
  const selected = $("#question")?.dataset.id ?? "";
  await htmx.ajax("GET", `${base}/parts/list?selected=${encodeURIComponent(selected)}&persona=${encodeURIComponent(query("persona"))}&after=${Number($("#list").dataset.after) || 0}`, { target: "#list", swap: "outerHTML" });
  for (const id of chosen) { const box = document.getElementById(id); if (box) box.checked = true; }
  selection();
  const fresh = ids.filter((id) => !before.includes(id));
  for (const id of fresh) {
    const link = document.getElementById(`q-${id}`);
    link?.closest(".item").classList.add("new");
    if (link) say(`New question: ${$(".ti", link).textContent}`);
  }
  const question = $("#question");
  const state = question?.dataset.state;
  if (state === "none" && ids.length) await showQuestion(ids[0]);
  else if (state === "open" && !ids.includes(question.dataset.id)) await showQuestion(question.dataset.id);
}
async function showQuestion(id) {
  quiet = !$("#question")?.contains(document.activeElement);
  await htmx.ajax("GET", `${base}/questions/${encodeURIComponent(id)}`, { target: "#question", swap: "outerHTML" });
}
async function refreshFeed() {
  missed = 0;
  const feed = $("#feed");
  $("#waiting").hidden = true;
  if (feed.dataset.before !== "0") return;
  await htmx.ajax("GET", `${base}/activity${location.search}`, { target: "#feed", swap: "outerHTML" });
}
// An outcome may have been made before, and arrive after, the event that it lacks: then it is asked for once more.
const newest = new Map();
function remember(row) {
  for (const id of [row.ref, row.call]) if (id) { newest.delete(id); newest.set(id, row.seq); }
  for (const id of newest.keys()) { if (newest.size <= 200) break; newest.delete(id); }
}
function catchUp(question) {
  const ids = [question.dataset.id, question.dataset.call];
  const behind = ids.some((id) => newest.get(id) > Number(question.dataset.seq));
  for (const id of ids) newest.delete(id);
  if (behind) soon("question", () => showQuestion(question.dataset.id));
}
function heard(row) {
  remember(row);
  const number = $("#events");
  if (number) number.textContent = `${row.seq.toLocaleString("en")} events`;
  if ($("#feed")) {
    if (scrollY > 80 || $("#feed").dataset.before !== "0") {
      missed += 1;
      $("#waiting").hidden = false;
      $("#waiting").textContent = `${missed} new, show`;
    } else soon("feed", refreshFeed, 300);
  }
  const question = $("#question");
  const mine = question?.dataset.id && (row.ref === question.dataset.id || (row.call && row.call === question.dataset.call));
  if (mine && question.dataset.state !== "open") soon("question", () => showQuestion(question.dataset.id));
  const life = $("#life");
  if (life?.dataset.call && life.dataset.call === row.call) {
    soon("life", () => htmx.ajax("GET", location.pathname, { target: "#life", swap: "outerHTML" }));
  }
}
function count(open) {
  document.title = (open ? `(${open}) ` : "") + document.body.dataset.title;
  const badge = $("#nav-count");
  badge.hidden = !open;
  $("b", badge).textContent = open;
}
const KINDS = ["asked", "approved", "refused", "expired", "granted", "revoked", "denied", "rejected", "limited", "started", "committed", "failed", "unknown", "resolved", "undone", "paused", "resumed"];
let source = null;
let known = null;
let lost = false;
function tell() {
  $("#offline").hidden = !lost;
  $("#offline").textContent = lost ? "The connection is lost. What you see may be old; it comes back by itself." : "";
}
function listen() {
  source?.close();
  source = new EventSource(`${base}/api/v1/stream`);
  source.addEventListener("questions", (event) => {
    const { open: number, ids } = JSON.parse(event.data);
    count(number);
    if ($("#list") && (known !== null || ids.join() !== ($("#list").dataset.ids ?? "").trim().split(" ").join())) soon("list", () => refreshList(known), 50);
    known = ids;
  });
  for (const kind of KINDS) source.addEventListener(kind, (event) => heard(JSON.parse(event.data)));
  source.onopen = () => { document.body.dataset.live = "yes"; if (lost) { lost = false; tell(); if ($("#feed") && scrollY <= 80) refreshFeed(); } };
  source.onerror = () => {
    lost = true;
    document.body.dataset.live = "no";
    soon("offline", tell, 400); // a server that restarts is back before anybody needs to know
    if (source.readyState === EventSource.CLOSED) soon("listen", listen, 3000);
  };
}
addEventListener("offline", () => { lost = true; tell(); });
addEventListener("online", () => soon("listen", listen, 0));
document.addEventListener("DOMContentLoaded", listen, { once: true });
if (document.readyState !== "loading") { watch(); selection(); tick(); }
if (document.readyState === "complete") listen();
