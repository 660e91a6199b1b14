// The board as it is: fetched again on every hint and after every reconnect, with its age.
//
// Names of members and boards are only ever set as text. One answer of a view is asked for at a
// time, and an answer to an older question is dropped, so nothing older replaces something newer.
"use strict";

const ROWS_STEP = 50;
const ROWS_MAX = 1000;
const AROUND_ROWS = 11;
const POLL_MS = 5000; // without any hint, for hints may be lost
const RETRY_MS_MAX = 30000;
const LISTS_MS = 10000; // lists of boards and seasons are asked for at most so often by themselves

const $ = (id) => document.getElementById(id);
const view = { board: null, season: null, cohort: null, cohort_of: null, member: null };
const state = {
  question: 0, // counts what was asked for: an answer to an older one is dropped
  busy: null, // the AbortController of the answer that is on its way
  again: false, // something changed while an answer was on its way
  rows: ROWS_STEP,
  shown: null, // { page, sentAt, at } of the answer that is shown
  failures: 0,
  retry: 0,
  stream: null,
  streamFailures: 0,
  streamRetry: 0,
  seasonsAt: 0, // when the seasons were last asked for
};

// ---- what is looked at, kept in the address -------------------------------------------------

function readAddress() {
  const given = new URLSearchParams(location.search);
  for (const name of Object.keys(view)) view[name] = given.get(name) || null;
}

function look(change, { replace = false } = {}) {
  const before = view.board;
  Object.assign(view, change);
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(view)) if (value) given.set(name, value);
  const address = `${location.pathname}${given.size ? `?${given}` : ""}`;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  viewChanged(before);
}

function viewChanged(boardBefore) {
  state.rows = ROWS_STEP;
  if (view.board !== boardBefore) {
    state.shown = null;
    listen();
    setOptions($("season"), [], view.season);
    listSeasons();
  }
  chooseOptions();
  ask({ anew: true });
}

// ---- questions and answers ------------------------------------------------------------------

async function get(path, options = {}) {
  const answer = await fetch(path, { headers: { accept: "application/json" }, ...options });
  const body = await answer.json().catch(() => null);
  if (answer.ok && body) return body;
  const failure = new Error(body?.message || `the server answered ${answer.status}`);
  failure.status = answer.status;
  failure.code = body?.code;
  throw failure;
}

function boardPath(rest) {
  return `/v1/boards/${encodeURIComponent(view.board)}/${rest}`;
}

function ask({ anew = false } = {}) {
  if (!view.board) return;
  if (state.busy && !anew) {
    state.again = true;
    return;
  }
  state.busy?.abort();
  clearTimeout(state.retry);
  fetchPage();
}

async function fetchPage() {
  const question = ++state.question;
  const busy = new AbortController();
  state.busy = busy;
  state.again = false;
  const query = new URLSearchParams({ limit: state.rows });
  for (const name of ["season", "cohort", "cohort_of"]) if (view[name]) query.set(name, view[name]);
  if (view.member) {
    query.set("member", view.member);
    query.set("around_limit", AROUND_ROWS);
  }
  const sentAt = performance.now();
  try {
    const page = await get(boardPath(`top?${query}`), { signal: busy.signal });
    if (question !== state.question) return;
    state.failures = 0;
    state.shown = { page, sentAt, at: new Date() };
    show(page);
  } catch (failure) {
    if (question !== state.question) return;
    showFailure(failure);
    if (failure.status !== 404 && failure.status !== 422) {
      const wait = Math.min(RETRY_MS_MAX, 1000 * 2 ** state.failures++);
      state.retry = setTimeout(() => ask(), wait);
    }
  } finally {
    if (question === state.question) {
      state.busy = null;
      if (state.again) ask();
    }
  }
}

async function listBoards() {
  try {
    const { boards } = await get("/v1/boards");
    const keys = boards.map((board) => board.board);
    const listed = Array.from($("board").options, (option) => option.value);
    if (keys.join("\n") !== listed.join("\n")) {
      setOptions($("board"), keys.map((key) => [key, key]), view.board);
    }
    if (!keys.length && !view.board) {
      say("There is no board yet. Make one with “truerank board create”, then look again.");
      setTimeout(listBoards, LISTS_MS / 5);
    } else if (!view.board) {
      look({ board: keys[0] }, { replace: true });
    }
  } catch (failure) {
    if (!view.board) say(`The boards can't be listed: ${failure.message}. Trying again.`, "bad");
    if (!view.board) setTimeout(listBoards, LISTS_MS / 5);
  }
}

async function listSeasons() {
  const board = view.board;
  state.seasonsAt = performance.now();
  if (!board) return;
  try {
    const { seasons } = await get(boardPath("seasons?limit=300"));
    if (board !== view.board) return;
    const groups = {};
    for (const { season, period } of seasons) {
      (groups[period] ??= []).push([season, capital(seasonName(season, period))]);
    }
    setOptions($("season"), Object.entries(groups), view.season || state.shown?.page.season, true);
  } catch {
    // The board itself says what is wrong; the season that is shown stays chosen.
  }
}

// ---- live hints -----------------------------------------------------------------------------

function listen() {
  state.stream?.close();
  clearTimeout(state.streamRetry);
  state.stream = null;
  setLive("off", "not live");
  // A browser holds six connections to one server: tabs that nobody sees must not keep them.
  if (!view.board || document.visibilityState !== "visible") return;
  setLive("off", "connecting");
  const stream = new EventSource(boardPath("live"));
  state.stream = stream;
  const heard = (event) => {
    if (stream !== state.stream) return;
    state.streamFailures = 0;
    setLive("on", "live");
    const hint = JSON.parse(event.data);
    if (event.type !== "hint" || !state.shown || concerns(hint, state.shown.page)) ask();
    noteSeasons(hint.seasons ?? []);
  };
  for (const name of ["tick", "hint", "resync"]) stream.addEventListener(name, heard);
  stream.onerror = () => {
    if (stream !== state.stream) return;
    const refused = stream.readyState === EventSource.CLOSED;
    setLive("away", refused ? "not live" : "reconnecting");
    if (!refused) return; // the browser tries again by itself
    const wait = Math.min(RETRY_MS_MAX, 1000 * 2 ** state.streamFailures++);
    state.streamRetry = setTimeout(listen, wait);
  };
}

function concerns({ seasons, cohorts }, { season, cohort }) {
  if (cohort === undefined) return !seasons || seasons.includes(season);
  return !cohorts || (Object.hasOwn(cohorts, season) && cohorts[season].includes(cohort));
}

function noteSeasons(labels) {
  if (seasonsListed(labels) || performance.now() - state.seasonsAt < LISTS_MS) return;
  listSeasons();
}

function seasonsListed(labels) {
  const listed = new Set(Array.from($("season").options, (option) => option.value));
  return labels.every((label) => listed.has(label));
}

function setLive(dot, words) {
  $("dot").dataset.state = dot;
  $("live").textContent = words;
}

// ---- what is seen ---------------------------------------------------------------------------

function show(page) {
  document.title = `${page.board} · Truerank`;
  $("title").textContent = page.board;
  const cohort = page.cohort === undefined ? "" : `, cohort ${page.cohort}`;
  $("total").textContent = `${count(page.total, "member")}, ${seasonName(page.season)}${cohort}`;
  $("message").hidden = true;
  if (!page.total) say(`Nobody has a score in this season yet (${seasonName(page.season)}).`);
  if (!seasonsListed([page.season])) {
    $("season").append(new Option(capital(seasonName(page.season)), page.season));
    noteSeasons([page.season]);
  }
  $("season").value = page.season;
  fill($("top").tBodies[0], page.entries);
  $("list").hidden = !page.total;
  $("more").hidden = page.entries.length >= page.total || state.rows >= ROWS_MAX;
  showOwn(page);
  showAge();
}

function showOwn({ place, around }) {
  $("own").hidden = !place;
  if (!place) return;
  $("own-name").textContent = place.member;
  const told = $("own-place");
  if (place.rank === null) {
    told.textContent = "has no place in this season.";
  } else {
    const rank = document.createElement("strong");
    rank.textContent = `Rank ${place.rank}`;
    const score = document.createElement("strong");
    score.append(digits(place.score));
    told.replaceChildren(rank, ", score ", score);
  }
  fill($("around").tBodies[0], around);
  $("around").hidden = !around.length;
}

function fill(body, entries) {
  const before = new Map(Array.from(body.rows, (row) => [row.dataset.member, row]));
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  entries.forEach((entry, at) => {
    const row = before.get(entry.member) ?? newRow(entry.member);
    before.delete(entry.member);
    const changed = row.dataset.score !== undefined && row.dataset.score !== entry.score;
    row.classList.remove("changed");
    if (row.dataset.score !== entry.score) row.cells[2].replaceChildren(digits(entry.score));
    if (changed) {
      void row.offsetWidth; // so that the animation begins again
      row.classList.add("changed");
    }
    row.dataset.score = entry.score;
    row.dataset.rank = entry.rank;
    row.cells[0].textContent = entry.rank;
    row.ariaCurrent = entry.member === view.member ? "true" : null;
    if (body.rows[at] !== row) body.insertBefore(row, body.rows[at] ?? null);
  });
  for (const row of before.values()) row.remove();
  const widest = Math.max(6, ...entries.map((entry) => entry.score.length));
  body.parentElement.style.setProperty("--score-chars", widest);
  if (focused?.isConnected && document.activeElement !== focused) focused.focus();
}

function newRow(member) {
  const row = document.createElement("tr");
  row.dataset.member = member;
  const name = document.createElement("button");
  name.type = "button";
  name.dir = "auto";
  name.textContent = member;
  name.title = member;
  name.addEventListener("click", () => look({ member }));
  row.append(document.createElement("td"), document.createElement("td"), document.createElement("td"));
  row.cells[1].append(name);
  return row;
}

// Every digit stays in the text; the groups of three are only set apart.
function digits(score) {
  const all = document.createElement("span");
  all.className = "digits";
  const [whole, fraction] = score.replace("-", "\u2212").split(".");
  const groups = whole.split(/(?=(?:\d{3})+$)/);
  if (fraction !== undefined) groups[groups.length - 1] += `.${fraction}`;
  for (const group of groups) {
    const part = document.createElement("span");
    part.textContent = group;
    all.append(part);
  }
  return all;
}

function showAge() {
  if (!state.shown) {
    $("age").textContent = "";
    return;
  }
  const { page, sentAt } = state.shown;
  const { staleness_ms: bound, source } = page.freshness;
  const words = bound === null ? "of unknown age" : `as of ${ago(bound + performance.now() - sentAt)}`;
  $("age").textContent = source === "database" ? `${words}, from the database` : words;
}

function ago(ms) {
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms ago`;
  const seconds = ms / 1000;
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}

function showFailure(failure) {
  if (failure.status === 404 || failure.status === 422) {
    state.shown = null;
    $("title").textContent = view.board;
    $("total").textContent = "";
    $("list").hidden = true;
    $("own").hidden = true;
    const words = {
      board_unknown: `There is no board called “${view.board}”.`,
      season_unknown: view.season
        ? `This board keeps no season called “${view.season}”.`
        : "This board has no season that runs now. Choose one.",
      not_in_cohort: view.cohort_of
        ? `“${view.cohort_of}” is in no cohort of this season, or in none yet.`
        : "This season has no such cohort.",
    };
    say(words[failure.code] ?? `The server refuses this: ${failure.message}.`, "bad");
  } else {
    const shown = state.shown;
    const rest = shown ? `What you see is from ${shown.at.toLocaleTimeString()}.` : "";
    say(`The board can't be fetched: ${failure.message}. ${rest} Trying again.`, "bad");
  }
  showAge();
}

function say(words, kind = "note") {
  const message = $("message");
  message.dataset.kind = kind;
  if (message.textContent !== words) message.textContent = words;
  message.hidden = false;
}

function setOptions(select, options, chosen, grouped = false) {
  const nodes = grouped
    ? options.map(([period, seasons]) => {
        const group = document.createElement("optgroup");
        group.label = PERIODS[period] ?? "Other";
        group.append(...seasons.map(([value, text]) => new Option(text, value)));
        return group;
      })
    : options.map(([value, text]) => new Option(text, value));
  select.replaceChildren(...nodes);
  if (chosen) {
    const listed = Array.from(select.options, (option) => option.value).includes(chosen);
    const name = select.id === "season" ? capital(seasonName(chosen)) : chosen;
    if (!listed) select.append(new Option(name, chosen));
    select.value = chosen;
  }
}

function chooseOptions() {
  if (view.board) $("board").value = view.board;
  $("member").value = view.member ?? "";
}

const PERIODS = { all: "All time", day: "Days", week: "Weeks", month: "Months", year: "Years", custom: "Seasons" };

function seasonName(label, period = periodOf(label)) {
  if (period === "all") return "all time";
  if (period === "week") {
    const [year, week] = label.split("-W");
    return `week ${Number(week)}, ${year}`;
  }
  if (period === "month" || period === "day") {
    const [year, month, day] = label.split("-").map(Number);
    const date = new Date(Date.UTC(year, month - 1, day ?? 1));
    const parts = { year: "numeric", month: "long", timeZone: "UTC", ...(day && { day: "numeric" }) };
    return date.toLocaleDateString("en-GB", parts);
  }
  return label;
}

function periodOf(label) {
  if (label === "all") return "all";
  if (/^\d{4}-W\d{2}$/.test(label)) return "week";
  if (/^\d{4}-\d{2}-\d{2}$/.test(label)) return "day";
  if (/^\d{4}-\d{2}$/.test(label)) return "month";
  if (/^\d{4}$/.test(label)) return "year";
  return "custom";
}

function capital(words) {
  return words[0].toUpperCase() + words.slice(1);
}

function count(number, noun) {
  return `${number.toLocaleString("en-GB")} ${noun}${number === 1 ? "" : "s"}`;
}

// ---- begin ----------------------------------------------------------------------------------

$("board").addEventListener("change", (event) => look({ board: event.target.value, season: null, cohort: null, cohort_of: null }));
$("season").addEventListener("change", (event) => look({ season: event.target.value, cohort: null }));
$("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  look({ member: $("member").value || null });
});
$("close").addEventListener("click", () => {
  look({ member: null });
  $("member").focus();
});
$("more").addEventListener("click", () => {
  state.rows = Math.min(ROWS_MAX, state.rows + ROWS_STEP);
  ask({ anew: true });
});
addEventListener("popstate", () => {
  const before = view.board;
  readAddress();
  viewChanged(before);
});
document.addEventListener("visibilitychange", () => {
  listen();
  if (document.visibilityState === "visible") ask();
});
setInterval(() => {
  if (document.visibilityState !== "visible") return;
  ask();
  listBoards();
}, POLL_MS);
setInterval(showAge, 500);

readAddress();
listBoards();
if (view.board) viewChanged(null);
