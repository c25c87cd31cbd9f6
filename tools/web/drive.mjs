// Drives the page in headless Chromium and prints a line of JSON once it is ready and one for each file:
// node drive.mjs ADDRESS CHROMIUM [--offline] [--screenshots FOLDER] [--width PIXELS] [--cut] FILE…
// With --offline the page is opened again without a network after the first file.
import path from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    offline: { type: "boolean" },
    screenshots: { type: "string" },
    width: { type: "string", default: "1280" },
    cut: { type: "boolean" },
    flag: { type: "string", multiple: true, default: [] },
  },
});
const [address, executablePath, ...files] = positionals;
const args = ["--no-sandbox", "--disable-quic", ...options.flag];
const browser = await chromium.launch({ executablePath, args });
const context = await browser.newContext({ viewport: { width: Number(options.width), height: 800 } });
const page = await context.newPage();
const started = Date.now();
page.on("pageerror", (error) => console.error(`page: ${error}`));
page.on("console", (message) => message.type() === "error" && console.error(`console: ${message.text()}`));
const seconds = () => (Date.now() - started) / 1000;
const print = (value) => console.log(JSON.stringify(value));

/** Waits until the page is in a state and has made more runs than `before`. */
async function settled(state, before = null) {
  for (;;) {
    const data = await page.evaluate(() => ({ ...document.documentElement.dataset })).catch(() => ({}));
    if (data.state === "error") throw new Error(await page.locator("#status").textContent());
    if (data.state === state && data.runs !== before) return data.runs;
    await new Promise((done) => setTimeout(done, 50));
  }
}

try {
  await page.goto(address);
  await settled("ready");
  print({ ready: seconds(), engine: await page.locator("#engine-note").textContent() });
  let runs;
  for (const [index, file] of files.entries()) {
    if (options.offline && index === 1) {
      await context.setOffline(true);
      const online = await page.evaluate(() =>
        fetch("no such file").then(
          () => true,
          () => false,
        ),
      );
      if (online) throw new Error("the network is still there");
      await page.reload();
      await settled("ready");
      runs = undefined;
    }
    await page.locator("#file").setInputFiles(file);
    runs = await settled("done", runs);
    const result = await page.evaluate(async () => {
      const { lastResult } = await import("./app.js");
      const last = lastResult();
      return last.kind === "masks"
        ? { ...last, masks: { ...last.masks, labels: [...last.masks.labels] } }
        : last;
    });
    print({ file, seconds: seconds(), result });
    if (options.cut) await page.locator("#cut").check();
    if (options.screenshots) {
      const name = `${path.parse(file).name}_${options.width}.png`;
      await page.screenshot({ path: path.join(options.screenshots, name), fullPage: true });
    }
  }
} finally {
  await browser.close();
}
