// The chat of the page: messages to a language model, its answer as it comes.

const byId = (id) => document.getElementById(id);
const view = {
  chat: byId("chat"), log: byId("chat-log"), form: byId("chat-form"), text: byId("chat-text"), send: byId("chat-send"),
  stop: byId("chat-stop"), reset: byId("chat-reset"), system: byId("chat-system"), heat: byId("chat-temperature"),
  most: byId("chat-tokens"), settings: byId("chat-settings"),
};

let context = { ask: null, model: null, onError: null };
let messages = [];
let running = null; // the AbortController of the answer that comes

/** Show the chat with a model of `GET v1/models`, or hide it. */
export function showChat(model, ask, onError) {
  view.chat.hidden = !model;
  if (model?.name !== context.model?.name) reset();
  context = { ask, model, onError };
  view.text.placeholder = model?.takes === "prompt" ? "A text to go on with" : "Message";
  view.settings.querySelector(".system").hidden = model?.takes === "prompt";
}

function reset() {
  running?.abort();
  messages = [];
  view.log.replaceChildren();
}

function addBubble(role, text) {
  const bubble = document.createElement("div");
  bubble.className = `bubble ${role}`;
  const thoughts = document.createElement("details");
  thoughts.hidden = true;
  thoughts.append(Object.assign(document.createElement("summary"), { textContent: "Thoughts" }), document.createElement("p"));
  const content = Object.assign(document.createElement("p"), { textContent: text });
  const facts = Object.assign(document.createElement("small"), { hidden: true });
  bubble.append(thoughts, content, facts);
  view.log.append(bubble);
  bubble.scrollIntoView({ block: "end" });
  return { bubble, thoughts, content, facts };
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const ready = rest.split("\n\n");
    rest = done ? "" : ready.pop();
    for (const line of ready) {
      const data = line.replace(/^data: /, "");
      if (data.trim() && data !== "[DONE]") yield JSON.parse(data);
    }
    if (done) return;
  }
}

async function send(text) {
  const { ask, model, onError } = context;
  const plain = model.takes === "prompt";
  const control = new AbortController();
  running = control;
  addBubble("user", text);
  const shown = addBubble("assistant", plain ? text : "");
  const body = { model: model.name, stream: true, stream_options: { include_usage: true } };
  if (view.heat.value !== "") body.temperature = Number(view.heat.value);
  if (view.most.value !== "") body.max_tokens = Number(view.most.value);
  if (plain) body.prompt = text;
  else {
    const first = view.system.value.trim() ? [{ role: "system", content: view.system.value }] : [];
    body.messages = [...first, ...messages, { role: "user", content: text }];
  }
  let content = "";
  let reasoning = "";
  let first = 0;
  let usage = null;
  const started = performance.now();
  setBusy(true);
  try {
    const answer = await ask(plain ? "v1/completions" : "v1/chat/completions", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal: control.signal,
    });
    for await (const event of events(answer)) {
      if (event.error) throw new Error(event.error.message);
      usage = event.usage ?? usage;
      const choice = event.choices[0];
      if (!choice) continue;
      const delta = plain ? { content: choice.text } : choice.delta;
      if (delta.content || delta.reasoning_content) first ||= performance.now();
      content += delta.content ?? "";
      reasoning += delta.reasoning_content ?? "";
      shown.content.textContent = (plain ? text : "") + content;
      if (reasoning) {
        shown.thoughts.hidden = false;
        shown.thoughts.lastChild.textContent = reasoning;
      }
      shown.bubble.scrollIntoView({ block: "end" });
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      shown.bubble.remove();
      onError(error);
      return;
    }
  } finally {
    if (running === control) running = null;
    setBusy(false);
  }
  if (!plain && content) messages.push({ role: "user", content: text }, { role: "assistant", content });
  const seconds = (performance.now() - (first || started)) / 1000;
  const speed = usage && seconds > 0 ? `, ${(usage.completion_tokens / seconds).toFixed(1)} tokens/s` : "";
  shown.facts.textContent = `${usage ? `${usage.completion_tokens} tokens` : "stopped"}${speed}`;
  shown.facts.hidden = false;
}

function setBusy(busy) {
  view.send.disabled = busy;
  view.stop.hidden = !busy;
}

view.form.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = view.text.value;
  if (!text.trim() || running || !context.model) return;
  view.text.value = "";
  send(text);
});
view.text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    view.form.requestSubmit();
  }
});
view.stop.addEventListener("click", () => running?.abort());
view.reset.addEventListener("click", reset);
