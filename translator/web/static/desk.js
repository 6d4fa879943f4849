// Ctrl+Enter in a text area submits its form, and the playground translates while one types. Everything else works
// without this file.
"use strict";
for (const area of document.querySelectorAll("textarea")) {
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
  });
}
// Refreshes the home page and the status, except while the page is hidden.
const live = document.getElementById("live");
if (live) {
  // The refreshed part is new to the browser, so the keyboard would start again at the top.
  const target = (element) => element.getAttribute("href") ?? element.getAttribute("aria-labelledby");
  const refresh = (text) => {
    const focused = live.contains(document.activeElement) && target(document.activeElement);
    live.innerHTML = text;
    const same = (element) => target(element) === focused;
    if (focused) [...live.querySelectorAll("a, [tabindex]")].find(same)?.focus({ preventScroll: true });
  };
  setInterval(async () => {
    if (document.hidden) return;
    const stale = document.getElementById("stale");
    try {
      const response = await fetch(live.dataset.part, { headers: { Accept: "text/html" } });
      stale.hidden = response.ok;
      if (response.ok) refresh(await response.text());
    } catch {
      stale.hidden = false;
    }
  }, 2000);
}
// The fields of the playground are in the fragment of a permanent link, which browsers do not send to the server.
const question = document.getElementById("question");
if (question) {
  const answer = document.getElementById("answer");
  const permalink = document.getElementById("permalink");
  const names = ["message", "dialect", "encoding", "options", "before", "key"];
  let timer, request;
  const fields = () => Object.fromEntries(names.map((name) => [name, question.elements[name].value]));
  // A page that is a file has no server, so the translator runs in the page.
  const core = question.dataset.core;
  const translated = async (signal) => {
    if (core) return (await import(core)).answer(fields());
    const response = await fetch("/?part", { method: "POST", body: new FormData(question), signal });
    return response.text();
  };
  const ask = async () => {
    request?.abort();
    const own = (request = new AbortController());
    if (core) document.getElementById("said").textContent = "Translating. The first message takes some seconds.";
    try {
      const text = await translated(own.signal);
      if (own.signal.aborted) return;
      answer.innerHTML = text;
      document.getElementById("said").textContent = answer.querySelector(".outcome, .alert")?.textContent ?? "";
    } catch (error) {
      if (error.name !== "AbortError") answer.textContent = core ? "The translator could not be loaded." : "The desk does not respond.";
    }
  };
  const link = () => {
    permalink.href = question.getAttribute("action") + "#m=" + encodeURIComponent(JSON.stringify(fields()));
    permalink.hidden = !question.elements.message.value;
  };
  const open = () => {
    if (!location.hash.startsWith("#m=")) return;
    try {
      const given = JSON.parse(decodeURIComponent(location.hash.slice(3)));
      for (const name of names) if (typeof given[name] === "string") question.elements[name].value = given[name];
    } catch {
      answer.textContent = "The link is incomplete: it contains no message.";
      return;
    }
    link();
    ask();
  };
  const changed = () => {
    link();
    clearTimeout(timer);
    if (question.elements.message.value) timer = setTimeout(ask, 300);
  };
  if (core) {
    question.addEventListener("submit", (event) => {
      event.preventDefault();
      ask();
    });
  }
  question.addEventListener("input", changed);
  question.addEventListener("change", changed);
  addEventListener("hashchange", open);
  link();
  open();
}
// On a narrow screen, the result is below the form.
const found = document.getElementById("error") || document.getElementById("result");
if (found && found.getBoundingClientRect().top > innerHeight) found.scrollIntoView({ block: "start" });
