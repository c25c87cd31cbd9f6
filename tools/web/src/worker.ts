/** Runs the models away from the page's own thread, so that the page stays responsive. */

import { detect } from "./boxes.js";
import { classify } from "./classes.js";
import type { Pixels } from "./image.js";
import { readPage } from "./lines.js";
import type { Manifest, ModelFile } from "./manifest.js";
import { segment } from "./masks.js";
import type { Request, Reply, Result } from "./messages.js";
import { type Engine, hasWebGpu, type Model, Runtime, threadCount } from "./runtime.js";

declare const self: {
  postMessage(message: Reply, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
};

interface Opened {
  readonly manifest: Manifest;
  readonly engine: Engine;
  readonly models: Readonly<Record<string, Model>>;
}

let opened: Opened | undefined;

const folder = new URL("./", import.meta.url).href;

/** The bytes of a file of the folder; tells how many are here. */
async function fetchFile(name: string, told: (bytes: number) => void = () => {}): Promise<Uint8Array> {
  const response = await fetch(folder + name, { cache: "no-cache" });
  if (!response.ok || response.body === null)
    throw new Error(`${name} cannot be had: ${response.status} ${response.statusText}`);
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    told(size);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const one of parts) {
    bytes.set(one, at);
    at += one.length;
  }
  return bytes;
}

/** Raises an error where the file was exported anew since the page was opened: its classes may be others. */
async function check(bytes: Uint8Array, file: ModelFile): Promise<void> {
  let same = bytes.length === file.bytes;
  if (same && globalThis.crypto?.subtle !== undefined) {
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
    same = [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("") === file.sha256;
  }
  if (!same)
    throw new Error(`${file.file} is another one than this page's: close its tabs and open it again.`);
}

async function open(manifest: Manifest, wanted: Engine | "auto", notes: string[] = []): Promise<void> {
  const files = Object.entries(manifest.models);
  const total = files.reduce((sum, [, file]) => sum + file.bytes, 0);
  const here = new Map<string, number>();
  const bytes = new Map<string, Uint8Array>();
  const tell = (name: string, size: number) => {
    here.set(name, size);
    const all = [...here.values()].reduce((a, b) => a + b, 0);
    self.postMessage({ type: "progress", step: "loading the model", share: all / total });
  };
  const load = async (name: string) => {
    const known = bytes.get(name);
    if (known !== undefined) return known;
    const fresh = await fetchFile(name, (size) => tell(name, size));
    for (const [, file] of files) if (file.file === name) await check(fresh, file);
    bytes.set(name, fresh);
    return fresh;
  };
  const start = async (engine: Engine, threads?: number) => {
    const [runtime] = await Promise.all([
      Runtime.load(`${folder}ort/`, engine, (name) => fetchFile(name), threads),
      ...files.map(([, file]) => load(file.file)),
    ]);
    const models: Record<string, Model> = {};
    for (const [name, file] of files) models[name] = await runtime.open(file, load);
    opened = { manifest, engine, models };
    return runtime;
  };
  const gpu = wanted !== "wasm" && manifest.runtime.webgpu && (await hasWebGpu());
  if (wanted === "webgpu" && !gpu) notes.push("no GPU that WebGPU reaches");
  let runtime: Runtime | undefined;
  if (gpu) {
    try {
      runtime = await start("webgpu");
    } catch (error) {
      notes.push(`WebGPU failed (${message(error)})`);
    }
  }
  if (runtime === undefined && threadCount() > 1) {
    try {
      runtime = await start("wasm");
    } catch (error) {
      notes.push(`threads failed (${message(error)})`);
    }
  }
  runtime ??= await start("wasm", 1);
  self.postMessage({ type: "ready", engine: runtime.engine, threads: runtime.threads, notes });
}

async function run(image: Pixels, threshold: number | undefined): Promise<Result> {
  if (opened === undefined) throw new Error("The model is not loaded.");
  const { manifest, models } = opened;
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  switch (manifest.module) {
    case "boxes": {
      const boxes = await detect(image, models.model, manifest.parameters, threshold);
      return { kind: "boxes", boxes, seconds: { total: seconds() } };
    }
    case "classes": {
      const classes = await classify(image, models.model, manifest.parameters);
      return { kind: "classes", classes, seconds: { total: seconds() } };
    }
    case "masks": {
      const masks = await segment(image, models.model, manifest.parameters);
      return { kind: "masks", masks, seconds: { total: seconds() } };
    }
    case "lines": {
      const { detector, recognizer, orientation } = models;
      const page = await readPage(
        image,
        orientation === undefined ? { detector, recognizer } : { detector, recognizer, orientation },
        manifest.parameters,
        (step, share) => self.postMessage({ type: "progress", step, share }),
      );
      return {
        kind: "lines",
        lines: page.lines,
        warnings: page.warnings,
        seconds: { ...page.seconds, total: seconds() },
      };
    }
  }
}

/** Where a GPU fails in mid-run the CPU takes its place, and the page says so. */
async function runAnywhere(image: Pixels, threshold: number | undefined): Promise<Result> {
  try {
    return await run(image, threshold);
  } catch (error) {
    if (opened?.engine !== "webgpu") throw error;
    await open(opened.manifest, "wasm", [`WebGPU failed (${message(error)})`]);
    return run(image, threshold);
  }
}

const message = (error: unknown) => (error instanceof Error ? error.message : String(error));

self.onmessage = async ({ data }) => {
  try {
    if (data.type === "open") await open(data.manifest, data.engine);
    else {
      const image = { height: data.height, width: data.width, channels: 3, data: data.data };
      self.postMessage({ type: "result", id: data.id, result: await runAnywhere(image, data.threshold) });
    }
  } catch (error) {
    self.postMessage({ type: "error", message: message(error) });
  }
};
