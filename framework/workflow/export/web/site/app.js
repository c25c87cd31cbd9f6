/** The page: takes images, hands them to the worker, shows what it says. */
import { decode, fromBitmap, toImageData } from "./decode.js";
import { classColor, drawBoxes, drawLines } from "./drawing.js";
import { cutOut, overlay, shares } from "./masks.js";
function element(id) {
    const found = document.getElementById(id);
    if (found === null)
        throw new Error(`the page has no #${id}`);
    return found;
}
const canvas = element("canvas");
const status = element("status");
const bar = element("bar");
const input = element("file");
const list = element("list");
const json = element("json");
const time = element("time");
const notes = element("notes");
const video = element("video");
const threshold = element("threshold");
const cut = element("cut");
let manifest;
let worker;
let image = null;
let result = null;
let fileName = "image";
let waiting = null;
let busy = true;
let runs = 0;
/** Classes that a cut-out is without. */
const removed = new Set();
/** What the page is doing, for readers of screens and for tests: loading, ready, busy, done or error. */
function setState(state, text) {
    document.documentElement.dataset.state = state;
    status.textContent = text;
    bar.hidden = state !== "loading" && state !== "busy";
}
function send(request, transfer = []) {
    worker.postMessage(request, transfer);
}
/** Waits until the service worker answers for this page, and isolates it once, so that WebAssembly has threads. */
async function register() {
    if (!("serviceWorker" in navigator))
        return;
    try {
        await navigator.serviceWorker.register("sw.js");
        const claimed = new Promise((done) => {
            if (navigator.serviceWorker.controller)
                done();
            else
                navigator.serviceWorker.addEventListener("controllerchange", () => done(), { once: true });
        });
        await Promise.race([claimed, new Promise((done) => setTimeout(done, 3000))]);
        if (!navigator.serviceWorker.controller || crossOriginIsolated || sessionStorage.getItem("reloaded"))
            return;
        sessionStorage.setItem("reloaded", "yes");
        location.reload();
        await new Promise(() => undefined);
    }
    catch {
        notes.textContent = "This browser does not keep the page for use without a network.";
    }
}
function show(reply) {
    switch (reply.type) {
        case "progress":
            setState(document.documentElement.dataset.state ?? "busy", `${reply.step} … ${Math.round(100 * reply.share)} %`);
            bar.value = reply.share;
            return;
        case "ready": {
            const first = document.documentElement.dataset.state === "loading";
            const where = reply.engine === "webgpu"
                ? "GPU"
                : `CPU, ${reply.threads} ${reply.threads === 1 ? "thread" : "threads"}`;
            element("engine-note").textContent = [where, ...reply.notes].join("; ");
            if (!first)
                return; // the engine changed in mid-run
            busy = false;
            setState("ready", "Ready. Images stay on this device.");
            start();
            return;
        }
        case "result":
            busy = false;
            result = reply.result;
            runs += 1;
            present();
            document.documentElement.dataset.runs = String(runs);
            setState("done", "Done.");
            document.dispatchEvent(new CustomEvent("oar:result", { detail: toPlain(reply.result) }));
            start();
            return;
        case "error":
            busy = false;
            setState("error", reply.message);
    }
}
/** Runs the newest image that waits. */
function start() {
    if (busy || waiting === null)
        return;
    image = waiting;
    waiting = null;
    busy = true;
    result = null;
    draw();
    setState("busy", "working …");
    bar.removeAttribute("value");
    const data = image.data.slice();
    const request = { type: "run", id: runs, height: image.height, width: image.width, data };
    send(manifest.module === "boxes" ? { ...request, threshold: Number(threshold.value) } : request, [
        data.buffer,
    ]);
}
function take(pixels, name) {
    waiting = pixels;
    fileName = name.replace(/\.[^.]*$/, "") || "image";
    start();
}
async function takeFile(file, name = "image") {
    if (!file)
        return;
    try {
        take(await decode(file), file instanceof File ? file.name : name);
    }
    catch (error) {
        setState("error", error instanceof Error ? error.message : String(error));
    }
}
function draw(selected = null) {
    if (image === null)
        return;
    document.body.classList.add("has-image");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    if (context === null)
        return;
    if (result?.kind === "masks" && manifest.module === "masks") {
        const { parameters } = manifest;
        const { masks } = result;
        const pixels = cut.checked ? cutOut(image, masks, removed) : overlay(image, masks, parameters);
        const data = new ImageData(image.width, image.height);
        data.data.set(pixels);
        context.putImageData(data, 0, 0);
        return;
    }
    context.putImageData(toImageData(image), 0, 0);
    if (result?.kind === "boxes")
        drawBoxes(context, result.boxes);
    if (result?.kind === "lines")
        drawLines(context, result.lines, selected);
}
/** The result as JSON: masks as their shares, for a map has a number for each pixel. */
function toPlain(one) {
    const size = { width: image?.width ?? 0, height: image?.height ?? 0 };
    if (one.kind === "masks" && manifest.module === "masks") {
        const classes = Object.fromEntries(shares(one.masks, manifest.parameters).map(({ label, ...rest }) => [label, rest]));
        return { source: fileName, ...size, classes, seconds: one.seconds };
    }
    const { kind, ...rest } = one;
    return { source: fileName, ...size, ...rest };
}
function row(label, value, color) {
    const item = document.createElement("li");
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    if (color !== null) {
        swatch.style.background = color;
        item.append(swatch);
    }
    const name = document.createElement("span");
    name.className = "label";
    name.textContent = label;
    const number = document.createElement("span");
    number.className = "number";
    number.textContent = value;
    item.append(name, number);
    return item;
}
/** A class of pixels; a click takes it out of the cut-out or puts it back. */
function shareRow(share) {
    const item = row(share.label, `${(100 * share.share).toFixed(1)} %`, `rgb(${share.color.join()})`);
    const mark = () => item.classList.toggle("removed", removed.has(share.category_id));
    item.addEventListener("click", () => {
        if (!cut.checked)
            return;
        if (!removed.delete(share.category_id))
            removed.add(share.category_id);
        mark();
        draw();
    });
    mark();
    return item;
}
function present() {
    if (result === null)
        return;
    draw();
    list.replaceChildren();
    const one = result;
    if (one.kind === "boxes")
        list.append(...one.boxes.map((b) => row(b.label, b.score.toFixed(3), classColor(b.category_id))));
    if (one.kind === "classes") {
        for (const c of one.classes) {
            const item = row(c.label, `${(100 * c.score).toFixed(1)} %`, null);
            item.style.setProperty("--share", String(c.score));
            item.classList.add("share");
            list.append(item);
        }
    }
    if (one.kind === "masks" && manifest.module === "masks") {
        for (const share of shares(one.masks, manifest.parameters))
            list.append(shareRow(share));
    }
    if (one.kind === "lines") {
        one.lines.forEach((line, i) => {
            const item = row(line.text, line.score.toFixed(2), null);
            item.addEventListener("pointerenter", () => draw(i));
            item.addEventListener("pointerleave", () => draw());
            list.append(item);
        });
        notes.textContent = one.warnings.join(" ");
    }
    element("count").textContent =
        one.kind === "classes" || one.kind === "masks" ? "" : `${list.childElementCount} found`;
    if (!list.childElementCount)
        list.append(row("Nothing was found.", "", null));
    json.textContent = JSON.stringify(toPlain(one), (_, value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toFixed(4)) : value), 1);
    time.textContent = `${one.seconds.total.toFixed(2)} s`;
}
/** The result as a person would copy it. */
function plainText() {
    if (result?.kind === "lines")
        return result.lines.map((line) => line.text).join("\n");
    return [...list.children]
        .map((item) => [...item.querySelectorAll(".label, .number")].map((one) => one.textContent).join("\t"))
        .join("\n");
}
async function copy(text, button) {
    try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
    }
    catch {
        button.textContent = "The browser forbids it";
    }
    setTimeout(() => {
        button.textContent = "Copy";
    }, 1500);
}
function download(blob, name) {
    if (blob === null)
        return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
let stream = null;
async function toggleCamera() {
    const dialog = element("camera-dialog");
    try {
        stream = await navigator.mediaDevices.getUserMedia({
            video: { facingMode: "environment", width: { ideal: 1920 } },
        });
    }
    catch (error) {
        setState("error", `No camera: ${error instanceof Error ? error.message : error}`);
        return;
    }
    video.srcObject = stream;
    dialog.showModal();
    await video.play();
}
function closeCamera() {
    for (const track of stream?.getTracks() ?? [])
        track.stop();
    video.srcObject = null;
}
function listen() {
    element("choose").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
        void takeFile(input.files?.[0]);
        input.value = "";
    });
    element("drop").addEventListener("click", () => {
        if (!document.body.classList.contains("has-image"))
            input.click();
    });
    for (const name of ["dragenter", "dragover"]) {
        document.addEventListener(name, (event) => {
            event.preventDefault();
            document.body.classList.add("dragging");
        });
    }
    for (const name of ["dragleave", "drop"]) {
        document.addEventListener(name, (event) => {
            event.preventDefault();
            document.body.classList.remove("dragging");
        });
    }
    document.addEventListener("drop", (event) => void takeFile(event.dataTransfer?.files[0]));
    document.addEventListener("paste", (event) => {
        const files = [...(event.clipboardData?.files ?? [])];
        void takeFile(files.find((file) => file.type.startsWith("image/")), "pasted");
    });
    element("camera").addEventListener("click", () => void toggleCamera());
    element("shoot").addEventListener("click", () => {
        if (video.videoWidth)
            take(fromBitmap(video), "photo");
        element("camera-dialog").close();
    });
    element("camera-dialog").addEventListener("close", closeCamera);
    const copyText = element("copy");
    copyText.addEventListener("click", () => void copy(element("json-panel").hidden ? plainText() : (json.textContent ?? ""), copyText));
    element("save").addEventListener("click", () => canvas.toBlob((blob) => download(blob, `${fileName}_result.png`)));
    threshold.addEventListener("input", () => {
        element("threshold-value").textContent = Number(threshold.value).toFixed(2);
    });
    threshold.addEventListener("change", () => {
        if (image !== null)
            take(image, fileName);
    });
    cut.addEventListener("change", () => {
        document.body.classList.toggle("cutting", cut.checked);
        draw();
    });
    const tabs = [element("tab-result"), element("tab-json")];
    tabs.forEach((tab, i) => {
        tab.addEventListener("click", () => {
            tabs.forEach((other, k) => {
                other.setAttribute("aria-selected", String(k === i));
            });
            element("result-panel").hidden = i !== 0;
            element("json-panel").hidden = i !== 1;
        });
    });
}
const PURPOSES = {
    boxes: "Finds objects in an image.",
    classes: "Says what an image shows.",
    masks: "Shows the class of every pixel, and cuts out what is not background.",
    lines: "Reads the text of an image.",
};
async function main() {
    setState("loading", "loading …");
    bar.removeAttribute("value");
    listen();
    await register();
    const response = await fetch("manifest.json", { cache: "no-cache" });
    if (!response.ok)
        throw new Error(`manifest.json cannot be had: ${response.status}`);
    manifest = await response.json();
    document.title = manifest.name;
    element("name").textContent = manifest.name;
    element("purpose").textContent = PURPOSES[manifest.module];
    document.body.dataset.module = manifest.module;
    if (manifest.module === "masks")
        removed.add(manifest.parameters.background);
    if (manifest.module === "boxes") {
        threshold.value = String(manifest.parameters.threshold);
        element("threshold-value").textContent = manifest.parameters.threshold.toFixed(2);
    }
    worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => show(data);
    worker.onerror = (event) => setState("error", event.message || "the worker cannot start");
    const asked = new URLSearchParams(location.search).get("engine");
    const engine = asked === "wasm" || asked === "webgpu" ? asked : "auto";
    send({ type: "open", manifest, engine });
}
/** The map of classes of the last image, for programs that drive the page. */
export function lastResult() {
    return result;
}
main().catch((error) => setState("error", error instanceof Error ? error.message : String(error)));
