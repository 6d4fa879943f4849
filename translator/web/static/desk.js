// Ctrl+Enter in a text area submits its form, and focus moves to the result. Everything works without this file.
"use strict";
for (const area of document.querySelectorAll("textarea")) {
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
  });
}
// Refreshes the status, except while the page is hidden.
const live = document.getElementById("live");
if (live) {
  setInterval(async () => {
    if (document.hidden) return;
    const stale = document.getElementById("stale");
    try {
      const response = await fetch("/status?part", { headers: { Accept: "text/html" } });
      stale.hidden = response.ok;
      if (response.ok) live.innerHTML = await response.text();
    } catch {
      stale.hidden = false;
    }
  }, 2000);
}
const found = document.getElementById("error") || document.getElementById("result");
if (found) found.scrollIntoView({ block: "start" });
