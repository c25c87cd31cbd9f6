// The page of a server: a file or a text in, the drawing, the text and the JSON of a model out.

import { showChat } from "./chat.js";

const byId = (id) => document.getElementById(id);
const view = {
  model: byId("model"), file: byId("file"), fileInput: byId("file-input"), textForm: byId("text-form"),
  text: byId("text"), pair: byId("pair"), pairRow: byId("pair-row"), message: byId("message"),
  result: byId("result"), name: byId("name"), facts: byId("facts"), downloads: byId("downloads"),
  columns: document.querySelector(".columns"), drawingBox: byId("drawing-box"), drawing: byId("drawing"),
  caption: byId("drawing-caption"), panelText: byId("panel-text"), panelJson: byId("panel-json"),
  copy: byId("copy"), keyForm: byId("key-form"), key: byId("key"),
};
const KEY = "oar-api-key";
const SHOWN_FORMATS = new Set(["json", "ndjson", "png"]);

let models = [];
let last = null; // the input that was sent last, to be sent to another model
let running = null; // the AbortController of the request that runs
let waiting = null; // what is to be done again with a key

// -- requests --------------------------------------------------------------------------------------------------------

class ServerError extends Error {
  constructor(status, facts) {
    const lines = [facts.problem ?? facts.message ?? `The server answered with status ${status}.`];
    for (const name of ["where", "received", "allowed", "fix"]) {
      if (facts[name]) lines.push(`${name === "fix" ? "what to do" : name}: ${facts[name]}`);
    }
    super(lines.join("\n"));
    this.status = status;
  }
}

async function ask(path, options = {}) {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem(KEY);
  if (key) headers.set("X-API-Key", key);
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server cannot be reached.");
  }
  if (answer.ok) return answer;
  const content = await answer.json().catch(() => ({}));
  throw new ServerError(answer.status, content.error ?? {});
}

/** With a drawing in the JSON of an image, so that the model runs once for both. */
function predict(input, model, format, signal) {
  const path = `v1/models/${encodeURIComponent(model)}:predict?format=${format}${format === "ndjson" && isImage(input) ? "&drawing=true" : ""}`;
  if (!input.file) {
    const body = JSON.stringify(input.pair ? { text: input.text, pair: input.pair } : { text: input.text });
    return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });
  }
  const form = new FormData();
  form.append("file", input.file, input.file.name || "pasted.png");
  return ask(path, { method: "POST", body: form, signal });
}

const isImage = (input) => Boolean(input.file) && !/pdf/i.test(input.file.type || input.file.name);

async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const ready = rest.split("\n");
    rest = done ? "" : ready.pop();
    for (const line of ready) if (line.trim()) yield JSON.parse(line);
    if (done) return;
  }
}

// -- models ----------------------------------------------------------------------------------------------------------

async function loadModels() {
  try {
    models = (await (await ask("v1/models")).json()).data;
  } catch (error) {
    return showError(error, loadModels);
  }
  const chosen = view.model.value;
  view.model.replaceChildren(...models.map((one) => new Option(one.ready ? one.name : `${one.name} (loading)`, one.name)));
  if (models.some((one) => one.name === chosen)) view.model.value = chosen;
  view.model.disabled = models.length === 0;
  if (models.length === 0) say("This server has no models.");
  else if (models.some((one) => !one.ready)) setTimeout(loadModels, 2000);
  showInput();
}

const currentModel = () => models.find((one) => one.name === view.model.value);

function showInput() {
  const model = currentModel();
  const takes = model?.takes ?? "image";
  const writes = takes === "chat" || takes === "prompt";
  showChat(writes ? model : null, ask, (error) => showError(error));
  view.fileInput.hidden = takes !== "image";
  view.textForm.hidden = takes === "image" || writes;
  view.pairRow.hidden = takes !== "text pair";
  view.pair.required = takes === "text pair";
}

// -- one run ---------------------------------------------------------------------------------------------------------

async function run(input) {
  const model = currentModel();
  if (!model || model.slots || (model.takes !== "image") !== !input.file) return;
  last = input;
  running?.abort();
  const control = new AbortController();
  running = control;
  say(`${model.name} is running …`, "busy");
  view.result.hidden = true;
  const started = performance.now();
  try {
    const answer = await predict(input, model.name, "ndjson", control.signal);
    const results = [];
    let drawing = null;
    for await (const { drawing: drawn, ...entry } of lines(answer)) {
      drawing ??= drawn ?? null;
      results.push(entry);
      if (results.length === 1) startResult(input, model);
      showResults(results, performance.now() - started);
    }
    if (results.length === 1 && results[0].error) throw new ServerError(results[0].error.status, results[0].error);
    say("");
    if (results.length === 1 && input.file) await showDrawing(drawing, input, model, control.signal);
  } catch (error) {
    if (error.name !== "AbortError") showError(error, () => run(input));
  } finally {
    if (running === control) running = null;
  }
}

function startResult(input, model) {
  document.body.classList.add("done");
  view.result.hidden = false;
  view.name.textContent = input.file ? input.file.name || "pasted image" : model.name;
  view.columns.classList.remove("with-drawing");
  view.drawingBox.hidden = true;
  const formats = input.file ? (model.formats ?? []).filter((name) => !SHOWN_FORMATS.has(name)) : [];
  view.downloads.replaceChildren(...formats.map((name) => downloadButton(input, model, name)));
}

function downloadButton(input, model, format) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = format;
  button.title = `Download as ${format}`;
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const blob = await (await predict(input, model.name, format)).blob();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${(input.file.name || "result").replace(/\.[^.]*$/, "")}.${format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      showError(error);
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

function showResults(results, milliseconds) {
  const texts = results.map(textOf);
  view.panelText.textContent = results.length === 1 ? texts[0]
    : texts.map((text, index) => `— ${index + 1} —\n${text}`).join("\n\n");
  view.panelJson.textContent = JSON.stringify(results.length === 1 ? results[0] : results, null, 1);
  const facts = results.length === 1 ? factsOf(results[0]) : [`${results.length} pages`];
  view.facts.textContent = [...facts, `${Math.round(milliseconds).toLocaleString("en")} ms`].join(" · ");
}

/** The drawing that came with the result; of a PDF of one page it is asked for. */
async function showDrawing(drawing, input, model, signal) {
  const blob = drawing ? fromDataUrl(drawing) : await (await predict(input, model.name, "png", signal)).blob();
  if (view.drawing.src) URL.revokeObjectURL(view.drawing.src);
  view.drawing.src = URL.createObjectURL(blob);
  view.drawingBox.hidden = false;
  view.drawingBox.classList.remove("large");
  view.columns.classList.add("with-drawing");
}

function fromDataUrl(url) {
  const [head, content] = url.split(",");
  const bytes = Uint8Array.from(atob(content), (sign) => sign.charCodeAt(0));
  return new Blob([bytes], { type: head.slice(5).split(";")[0] });
}

// -- what a result says ------------------------------------------------------------------------------------------------

const percent = (value) => `${(100 * value).toFixed(1)} %`;

function textOf(result) {
  if (result.error) return `This cannot be read: ${result.error.problem}`;
  if (result.lines) return result.lines.map((line) => line.text).join("\n") || "No text.";
  if (result.boxes) return result.boxes.map((box) => `${box.label}  ${percent(box.score)}`).join("\n") || "Nothing found.";
  if (Array.isArray(result.classes)) {
    return result.classes.map((one) => `${one.label}  ${percent(one.score)}`).join("\n") || "No class.";
  }
  if (result.classes) return Object.entries(result.classes).map(([name, one]) => `${name}  ${percent(one.share)}`).join("\n");
  if (result.spans) return result.spans.map((span) => `${span.text}  ${span.label}`).join("\n") || "Nothing found.";
  if (result.answers) return result.answers.map((one) => `${one.text || "no answer"}  ${percent(one.score)}`).join("\n");
  if (result.masks) return result.masks.flatMap((mask) => mask.candidates.map((one) => `${one.sequence}  ${percent(one.score)}`)).join("\n");
  return result.translation ?? JSON.stringify(result, null, 1);
}

function factsOf(result) {
  const facts = result.width ? [`${result.width} × ${result.height}`] : [];
  for (const name of ["lines", "boxes", "spans"]) {
    const count = result[name]?.length;
    if (count !== undefined) facts.push(`${count} ${count === 1 ? name.slice(0, -1).replace("boxe", "box") : name}`);
  }
  return facts;
}

// -- messages --------------------------------------------------------------------------------------------------------

function say(text, kind = "") {
  view.message.className = `message ${kind}`;
  view.message.textContent = text;
  view.message.hidden = !text;
}

function showError(error, again) {
  if (error.status === 401 && again) {
    waiting = again;
    view.keyForm.hidden = false;
    view.key.focus();
  }
  say(error.message, "error");
}

// -- events ----------------------------------------------------------------------------------------------------------

view.file.addEventListener("change", () => {
  const [file] = view.file.files;
  view.file.value = "";
  if (file) run({ file });
});

view.textForm.addEventListener("submit", (event) => {
  event.preventDefault();
  run({ text: view.text.value, pair: view.pairRow.hidden ? "" : view.pair.value });
});

view.model.addEventListener("change", () => {
  showInput();
  if (last) run(last);
});

view.keyForm.addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(KEY, view.key.value);
  view.keyForm.hidden = true;
  say("");
  waiting?.();
});

const takesFiles = () => !view.fileInput.hidden;
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.toggle("over", takesFiles());
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("over");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("over");
  const [file] = event.dataTransfer.files;
  if (file && takesFiles()) run({ file });
});
document.addEventListener("paste", (event) => {
  const [file] = event.clipboardData.files;
  if (file && takesFiles()) run({ file });
});

view.drawing.addEventListener("click", () => view.drawingBox.classList.toggle("large"));

const tabs = [...document.querySelectorAll("[role=tab]")];
function select(tab) {
  for (const one of tabs) {
    const selected = one === tab;
    one.setAttribute("aria-selected", String(selected));
    one.tabIndex = selected ? 0 : -1;
    byId(one.getAttribute("aria-controls")).hidden = !selected;
  }
}
for (const tab of tabs) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = tabs[(tabs.indexOf(tab) + 1) % tabs.length];
    select(other);
    other.focus();
  });
}

view.copy.addEventListener("click", async () => {
  const panel = view.panelText.hidden ? view.panelJson : view.panelText;
  let done = true;
  try {
    await navigator.clipboard.writeText(panel.textContent);
  } catch { // not over HTTPS or localhost: select it, for Ctrl+C
    getSelection().selectAllChildren(panel);
    done = false;
  }
  view.copy.textContent = done ? "Copied" : "Press Ctrl+C";
  setTimeout(() => { view.copy.textContent = "Copy"; }, 2000);
});

loadModels();
