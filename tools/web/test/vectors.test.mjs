// What Python computed of drawn inputs (python -m tools.web.vectors), computed again by the page's code.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const site = path.join(here, "../../../framework/workflow/export/web/site");
const folder = process.env.OAR_WEB_VECTORS ?? path.join(here, "vectors");
const load = (name) => import(path.join(site, `${name}.js`));
const cases = (name) => JSON.parse(readFileSync(path.join(folder, `${name}.json`), "utf8"));

const kinds = { uint8: Uint8Array, float32: Float32Array };
function unpack({ shape, dtype, data }) {
  const bytes = Uint8Array.from(Buffer.from(data, "base64"));
  const array = new kinds[dtype](bytes.buffer);
  const [height, width, channels = 1] = shape;
  return { height, width, channels, data: array };
}
const largest = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);

test("resize gives the same pixels", async () => {
  const { resize } = await load("resize");
  for (const one of cases("resize")) {
    const expected = unpack(one.expected);
    const out = resize(unpack(one.image), one.size, one.interpolation);
    assert.deepEqual([out.height, out.width], one.size);
    // OpenCV's bicubic rows are summed in floats or in whole numbers, by the row's length.
    const allowed = one.interpolation === "cubic" ? 1 : 0;
    const label = `${one.interpolation} ${one.image.shape} to ${one.size}`;
    assert.ok(largest(out.data, expected.data) <= allowed, `${label}: ${largest(out.data, expected.data)}`);
  }
});

test("resize of floats agrees to rounding", async () => {
  const { resizeFloat } = await load("resize");
  for (const one of cases("float_resize")) {
    const values = unpack(one.values);
    const out = resizeFloat(values.data, [values.height, values.width], one.size);
    const difference = largest(out, unpack(one.expected).data);
    assert.ok(difference <= 1e-4, `${one.values.shape} to ${one.size}: ${difference}`);
  }
});

test("straightened crops have the same pixels", async () => {
  const { cutQuad } = await load("crops");
  for (const one of cases("crops")) {
    const expected = unpack(one.expected);
    const out = cutQuad(unpack(one.image), one.quad);
    assert.deepEqual([out.height, out.width], [expected.height, expected.width]);
    const wrong = out.data.filter((value, i) => value !== expected.data[i]).length;
    assert.ok(wrong <= out.data.length * 1e-2, `${JSON.stringify(one.quad)}: ${wrong} of ${out.data.length}`);
    assert.ok(largest(out.data, expected.data) <= 24, `${largest(out.data, expected.data)}`);
  }
});

test("contours and the rectangles around them are OpenCV's", async () => {
  const { findContours, meanInside, minAreaRect, threshold } = await load("contours");
  for (const one of cases("contours")) {
    const map = unpack(one.map);
    const contours = findContours(threshold(map, 0.3, one.dilate), [map.height, map.width]);
    assert.deepEqual(contours, one.contours);
    contours.forEach((points, i) => {
      const { quad, sides } = minAreaRect(points);
      assert.ok(largest(quad.flat(), one.quads[i].flat()) < 1e-4, `${quad} for ${one.quads[i]}`);
      assert.ok(largest([...sides].sort(), [...one.sides[i]].sort()) < 1e-4);
      assert.ok(Math.abs(meanInside(map, points) - one.outline_means[i]) < 0.02, `outline ${i}`);
      assert.ok(Math.abs(meanInside(map, one.quads[i]) - one.means[i]) < 0.02, `quad ${i}`);
    });
  }
});

test("regions of text are the same quads", async () => {
  const { countRegions, findRegions, turnedLines } = await load("regions");
  for (const one of cases("regions")) {
    const map = unpack(one.map);
    const regions = findRegions(map, one.options, one.size);
    assert.equal(regions.length, one.quads.length);
    regions.forEach(({ quad, score }, i) => {
      assert.ok(largest(quad.flat(), one.quads[i].flat()) <= 1, `${quad} for ${one.quads[i]}`);
      assert.ok(Math.abs(score - one.scores[i]) < 0.01, `${score} for ${one.scores[i]}`);
    });
    assert.equal(countRegions(map, one.options), one.regions);
    assert.deepEqual(turnedLines(one.quads, 1.5), one.turned);
  }
});

test("a detector sees images at the same sizes", async () => {
  const { detectorSize } = await load("regions");
  for (const one of cases("sizes")) assert.deepEqual(detectorSize(one.options, one.size), one.expected);
});

test("letters that a detector missed are the same quads", async () => {
  const { addMissed } = await load("lettergaps");
  for (const one of cases("letters")) {
    const quads = addMissed(unpack(one.image), one.quads);
    assert.equal(quads.length, one.expected.length);
    const difference = largest(quads.flat(2), one.expected.flat(2));
    assert.ok(difference < 1e-3, `${difference}`);
  }
});

test("letters below one another are the same words", async () => {
  const { addMissedBelow, findStacks, joinStack, lettersInARow } = await load("letters");
  const { cutQuad } = await load("crops");
  for (const one of cases("stacks")) {
    const image = unpack(one.image);
    const added = addMissedBelow(image, one.quads);
    assert.equal(added.length, one.added.length);
    assert.ok(largest(added.flat(2), one.added.flat(2)) < 1e-3);
    const stacks = findStacks(one.quads, one.texts);
    assert.deepEqual(stacks, one.stacks);
    stacks.forEach((stack, row) => {
      const expected = unpack(one.rows[row]);
      const out = lettersInARow(stack.map((i) => cutQuad(image, one.quads[i])));
      assert.deepEqual([out.height, out.width], [expected.height, expected.width]);
      assert.equal(largest(out.data, expected.data), 0);
      const lines = stack.map((i) => ({ text: one.texts[i], score: one.scores[i], polygon: one.quads[i] }));
      const { text, score, polygon } = joinStack(lines, null);
      assert.equal(text, one.joined[row].text);
      assert.ok(Math.abs(score - one.joined[row].score) < 1e-9);
      assert.ok(largest(polygon.flat(), one.joined[row].polygon.flat()) < 1e-6);
    });
  }
  assert.ok(cases("stacks").some((one) => one.stacks.length));
  assert.ok(cases("stacks").some((one) => one.added.length > one.quads.length));
});

test("signs that look like letters are read alike", async () => {
  const { asLetters } = await load("letters");
  const all = cases("alike");
  for (const one of all) {
    const lines = one.texts.map((text, i) => ({ text, score: 0.8, polygon: one.polygons[i] }));
    const upright = lines.map(() => true);
    assert.deepEqual(
      asLetters(lines, upright).map((line) => line.text),
      one.expected,
    );
  }
  assert.ok(all.some((one) => one.texts.join() !== one.expected.join()));
});

test("lines are batched alike", async () => {
  const { fitBatches } = await load("regions");
  for (const one of cases("batches")) {
    const out = fitBatches(one.lengths, one.widths, one.columns, one.most);
    assert.deepEqual(
      out.map(({ width, lines }) => [width, lines]),
      one.expected,
    );
  }
});

test("steps are decoded to the same text", async () => {
  const { ctcDecode } = await load("ctc");
  for (const one of cases("texts")) {
    const out = ctcDecode(one.indices, unpack(one.probabilities).data, one.symbols);
    assert.equal(out.text, one.text);
    assert.ok(Math.abs(out.score - one.score) < 1e-6);
    assert.deepEqual(
      out.chars.map((c) => [c.char, c.startStep, c.endStep]),
      one.steps,
    );
  }
});

test("what is seen too small is looked at again alike", async () => {
  const { areLow, areNarrow, badlyRead, closerScale, mergeLooks } = await load("closerlook");
  for (const one of cases("looks")) {
    const lines = one.texts.map((text, i) => ({ text, score: one.scores[i], polygon: one.quads[i] }));
    assert.equal(badlyRead(lines, lines.length, 2), one.bad);
    assert.equal(areLow(one.quads, one.scale), one.low);
    assert.equal(areNarrow(lines, one.scale), one.narrow, `${one.scale} ${one.texts}`);
    const closer = closerScale(one.quads, one.scale);
    assert.equal(closer === null, one.closer === null);
    assert.ok(Math.abs((closer ?? 0) - (one.closer ?? 0)) < 1e-6);
    assert.deepEqual(mergeLooks(one.quads, one.second, one.scale), one.merged);
  }
  assert.ok(cases("looks").some((one) => one.narrow) && cases("looks").some((one) => !one.narrow));
});

test("tiles are seen and joined alike", async () => {
  const { detectInGrid, detectInTiles } = await load("tiles");
  for (const one of cases("tiles")) {
    const [height, width] = one.size;
    const data = new Uint8Array(height * width * 3);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        data.set([x % 256, y % 256, (x >> 8) * 16 + (y >> 8)], (y * width + x) * 3);
      }
    }
    const detect = async (tile) => {
      const [left, top] = [
        tile.data[0] + (tile.data[2] >> 4) * 256,
        tile.data[1] + (tile.data[2] & 15) * 256,
      ];
      return one.boxes
        .map(([x0, y0, x1, y1]) => [
          Math.max(x0 - left, 0),
          Math.max(y0 - top, 0),
          Math.min(x1 - left, tile.width),
          Math.min(y1 - top, tile.height),
        ])
        .filter(([x0, y0, x1, y1]) => x1 - x0 > 2 && y1 - y0 > 2)
        .map(([x0, y0, x1, y1]) => [
          [x0, y0],
          [x1, y0],
          [x1, y1],
          [x0, y1],
        ]);
    };
    const image = { height, width, channels: 3, data };
    assert.deepEqual(await detectInGrid(detect, image, one.side), one.grid);
    assert.deepEqual(await detectInTiles(detect, image, 4), one.tiles);
  }
});
