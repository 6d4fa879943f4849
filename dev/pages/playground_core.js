// The translator in the page: Python as WebAssembly, from files next to this one. Loaded with the first message.
import { loadPyodide } from "./pyodide.mjs";

const read = async (name) => {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.arrayBuffer();
};

const started = (async () => {
  const [python, core] = await Promise.all([loadPyodide(), read("core.zip")]);
  python.unpackArchive(core, "zip", { extractDir: "/core" });
  python.runPython("import sys; sys.path.insert(0, '/core')");
  const page = python.pyimport("translator.web.playground_page");
  return (fields) => page.answer_in_files(python.toPy(fields));
})();

// Returns the part of the page that shows the message in the fields.
export const answer = async (fields) => (await started)(fields);
