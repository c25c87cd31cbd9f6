// The worker without a browser, beside an ONNX Runtime Web whose threads do not start, as on some iPhones.
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const site = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  "../../../framework/workflow/export/web/site",
);
const ORT = `
let failed = false;
export const env = { wasm: {} };
export const Tensor = class {};
export const InferenceSession = {
  create: async () => {
    if (failed) throw new Error("a call before has failed");
    failed = env.wasm.numThreads > 1;
    if (failed) throw new RangeError(\`Out of memory, \${env.wasm.wasmBinary.length}, \${env.wasm.initTimeout > 0}\`);
    return { inputNames: [] };
  },
};
`;

test("one thread takes the place of threads that do not start", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "page-"));
  try {
    await cp(site, folder, { recursive: true });
    await mkdir(path.join(folder, "ort"));
    await writeFile(path.join(folder, "package.json"), '{"type": "module"}');
    await writeFile(path.join(folder, "ort/ort.wasm.min.mjs"), ORT);
    await writeFile(path.join(folder, "ort/ort-wasm-simd-threaded.wasm"), "wasm");
    await writeFile(path.join(folder, "model.onnx"), "");
    const replies = [];
    globalThis.crossOriginIsolated = true;
    Object.defineProperty(globalThis, "navigator", { value: { hardwareConcurrency: 4 }, configurable: true });
    globalThis.self = { postMessage: (reply) => replies.push(reply) };
    globalThis.fetch = async (address) => new Response(await readFile(fileURLToPath(address)));
    await import(pathToFileURL(path.join(folder, "worker.js")).href);
    const sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    const models = { model: { file: "model.onnx", bytes: 0, sha256 } };
    const manifest = { runtime: { webgpu: false }, models };
    await self.onmessage({ data: { type: "open", manifest, engine: "auto" } });
    assert.deepEqual(replies.at(-1), {
      type: "ready",
      engine: "wasm",
      threads: 1,
      notes: ["threads failed (Out of memory, 4, true)"],
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
