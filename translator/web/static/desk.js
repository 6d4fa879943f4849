// Ctrl+Enter in a text area sends its form; after an answer the reader is taken to it. All works without this file.
"use strict";
for (const area of document.querySelectorAll("textarea")) {
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) area.form.requestSubmit();
  });
}
const found = document.getElementById("error") || document.getElementById("result");
if (found) found.scrollIntoView({ block: "start" });
