/**
 * The service worker: keeps every file of the folder, so that the page opens without a network the second time, and
 * sets the headers that isolate the page, which WebAssembly needs for threads and plain servers do not send.
 */

interface WorkerScope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: string, listener: (event: WorkerEvent) => void): void;
}
interface WorkerEvent {
  readonly request: Request;
  waitUntil(promise: Promise<unknown>): void;
  respondWith(response: Promise<Response>): void;
}

const scope = self as unknown as WorkerScope;
/** Of what the folder holds; `oar export` writes it. */
const VERSION = "development";
const PREFIX = `oar ${scope.registration.scope} `;
const CACHE = PREFIX + VERSION;
const CODE = [
  "./",
  "manifest.json",
  "style.css",
  ...["app", "boxes", "classes", "contours", "crops", "ctc", "decode", "directions", "drawing", "image"].map(
    (name) => `${name}.js`,
  ),
  ...[
    "closerlook",
    "lettergaps",
    "letters",
    "lines",
    "manifest",
    "masks",
    "messages",
    "order",
    "regions",
    "resize",
    "runtime",
    "tiles",
  ].map((name) => `${name}.js`),
  ...["transforms", "worker"].map((name) => `${name}.js`),
];

scope.addEventListener("install", (event) => {
  const files = CODE.map((file) => new Request(file, { cache: "reload" }));
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(files)));
});

scope.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) {
        if (name.startsWith(PREFIX) && name !== CACHE) await caches.delete(name);
      }
      await scope.clients.claim();
    })(),
  );
});

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(scope.registration.scope)) return;
  event.respondWith(answer(event));
});

async function answer(event: WorkerEvent): Promise<Response> {
  const { request } = event;
  const cache = await caches.open(CACHE);
  const address = request.url.replace(/(\/index\.html)?[?#].*$|\/index\.html$/, (whole) =>
    whole.startsWith("/") ? "/" : "",
  );
  const stored = await cache.match(address);
  if (stored !== undefined) return isolated(stored);
  // Browsers keep what servers send without a word about it: for days, a model among them that was exported anew since.
  const response = await fetch(
    request.mode === "navigate" ? request : new Request(request, { cache: "no-cache" }),
  );
  if (response.status === 200 && response.type === "basic") {
    // The page has its bytes as they come, and also where the browser has no room to keep them.
    event.waitUntil(cache.put(address, response.clone()).catch(() => undefined));
  }
  return isolated(response);
}

function isolated(response: Response): Response {
  if (response.type === "opaque" || response.type === "error") return response;
  const headers = new Headers(response.headers);
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Embedder-Policy", "require-corp");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
