// The service worker without a browser: what it asks the server for, and what it keeps.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";

const site = path.join(
  path.dirname(fileURLToPath(import.meta.url)),
  "../../../framework/workflow/export/web/site",
);

test("files are asked for anew, and kept", async () => {
  const listeners = {};
  const kept = new Map();
  const asked = [];
  const cache = {
    match: async (address) => kept.get(address),
    put: async (address, response) => kept.set(address, response),
  };
  runInNewContext(await readFile(path.join(site, "sw.js"), "utf-8"), {
    caches: { open: async () => cache },
    fetch: async (request) => {
      asked.push(request.cache);
      const response = new Response("model");
      return Object.defineProperty(response, "type", { value: "basic" });
    },
    Headers,
    Request,
    Response,
    self: {
      addEventListener: (type, listener) => {
        listeners[type] = listener;
      },
      registration: { scope: "https://a/page/" },
    },
  });
  for (const query of ["", "?again"]) {
    let answer;
    listeners.fetch({
      request: new Request(`https://a/page/model.onnx${query}`),
      respondWith: (response) => {
        answer = response;
      },
      waitUntil: () => {},
    });
    assert.equal(await (await answer).text(), "model");
  }
  assert.deepEqual(asked, ["no-cache"]);
  assert.deepEqual([...kept.keys()], ["https://a/page/model.onnx"]);
});

test("a file comes also where the browser has no room to keep it", async () => {
  const listeners = {};
  runInNewContext(await readFile(path.join(site, "sw.js"), "utf-8"), {
    caches: {
      open: async () => ({
        match: async () => undefined,
        put: async () => {
          throw new Error("QuotaExceededError");
        },
      }),
    },
    fetch: async () => Object.defineProperty(new Response("model"), "type", { value: "basic" }),
    Headers,
    Request,
    Response,
    self: {
      addEventListener: (type, listener) => {
        listeners[type] = listener;
      },
      registration: { scope: "https://a/page/" },
    },
  });
  let answer;
  const kept = [];
  listeners.fetch({
    request: new Request("https://a/page/model.onnx"),
    respondWith: (response) => {
      answer = response;
    },
    waitUntil: (promise) => kept.push(promise),
  });
  assert.equal(await (await answer).text(), "model");
  await Promise.all(kept);
  assert.equal(kept.length, 1);
});
