// Drives the page in headless Chromium: node drive.mjs ADDRESS CHROMIUM FILE… prints a line of JSON for each file.
import { chromium } from "playwright-core";

const [address, executablePath, ...files] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const started = Date.now();
page.on("pageerror", (error) => console.error(`page: ${error}`));
page.on("console", (message) => message.type() === "error" && console.error(`console: ${message.text()}`));
const state = () => page.locator("html").getAttribute("data-state");

async function settled(states) {
  for (;;) {
    const now = await state();
    if (states.includes(now)) return now;
    await new Promise((done) => setTimeout(done, 30));
  }
}

try {
  await page.goto(address);
  if ((await settled(["ready", "error"])) === "error")
    throw new Error(await page.locator("#status").textContent());
  console.log(
    JSON.stringify({
      ready: (Date.now() - started) / 1000,
      engine: await page.locator("#engine-note").textContent(),
    }),
  );
  for (const file of files) {
    const runs = await page.evaluate(() => document.documentElement.dataset.runs ?? "0");
    await page.locator("#file").setInputFiles(file);
    await page.waitForFunction(
      (before) => {
        const { runs = "0", state: now } = document.documentElement.dataset;
        return now === "error" || runs !== before;
      },
      runs,
      { timeout: 120_000 },
    );
    if ((await state()) === "error") throw new Error(await page.locator("#status").textContent());
    const result = await page.evaluate(async () => {
      const { lastResult } = await import("./app.js");
      const found = lastResult();
      if (found.kind !== "masks") return found;
      return { ...found, masks: { ...found.masks, labels: [...found.masks.labels] } };
    });
    console.log(JSON.stringify({ file, since_open: (Date.now() - started) / 1000, result }));
  }
} finally {
  await browser.close();
}
