/** The class of every pixel, its drawing, and what stands before the background. */

import type { Pixels } from "./image.js";
import type { MasksParameters } from "./manifest.js";
import { type Model, type Outputs, outputOf } from "./runtime.js";
import { floatsToSource, labelsToSource, type Prepared, prepare } from "./transforms.js";

export interface Masks {
  readonly height: number;
  readonly width: number;
  /** Indices of classes, row by row. */
  readonly labels: Uint16Array;
}

/** The classes of the image's own pixels; of equal scores the first class counts. */
export function readMasks(outputs: Outputs, prepared: Prepared): Masks {
  const [height, width] = prepared.source;
  if (outputs.labels !== undefined) {
    return { height, width, labels: labelsToSource(outputs.labels.data, prepared) };
  }
  const { data, shape } = outputOf(outputs, "scores");
  const classes = shape[shape.length - 1];
  const scores = data as Float32Array;
  const pixels = scores.length / classes;
  const labels = new Uint16Array(height * width);
  let best: Float32Array | null = null;
  for (let index = 0; index < classes; index++) {
    const channel = new Float32Array(pixels);
    for (let i = 0; i < pixels; i++) channel[i] = scores[i * classes + index];
    const values = floatsToSource(channel, prepared);
    if (best === null) best = values;
    else {
      for (let i = 0; i < values.length; i++) {
        if (values[i] > best[i]) {
          labels[i] = index;
          best[i] = values[i];
        }
      }
    }
  }
  return { height, width, labels };
}

export async function segment(image: Pixels, model: Model, parameters: MasksParameters): Promise<Masks> {
  const prepared = prepare(image, parameters.transforms);
  const { height, width, channels, data } = prepared.image;
  const outputs = await model.run({ image: { dtype: "uint8", data, shape: [1, height, width, channels] } });
  return readMasks(outputs, prepared);
}

/** RGBA of the image under the colours of its classes. */
export function overlay(image: Pixels, masks: Masks, parameters: MasksParameters): Uint8ClampedArray {
  const { palette, opacity } = parameters;
  const out = new Uint8ClampedArray(image.height * image.width * 4);
  for (let i = 0; i < masks.labels.length; i++) {
    const color = palette[masks.labels[i]] ?? [0, 0, 0];
    for (let c = 0; c < 3; c++) out[4 * i + c] = image.data[3 * i + c] * (1 - opacity) + color[c] * opacity;
    out[4 * i + 3] = 255;
  }
  return out;
}

/** RGBA without the pixels of the `removed` classes; along the edge it fades over three pixels. */
export function cutOut(image: Pixels, masks: Masks, removed: ReadonlySet<number>): Uint8ClampedArray {
  const { height, width, labels } = masks;
  const out = new Uint8ClampedArray(height * width * 4);
  const line = (y: number) => Math.min(Math.max(y, 0), height - 1) * width;
  const column = (x: number) => Math.min(Math.max(x, 0), width - 1);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let count = 0;
      for (let v = -1; v <= 1; v++) {
        for (let u = -1; u <= 1; u++) if (!removed.has(labels[line(y + v) + column(x + u)])) count++;
      }
      const i = y * width + x;
      for (let c = 0; c < 3; c++) out[4 * i + c] = image.data[3 * i + c];
      out[4 * i + 3] = Math.round((255 * count) / 9);
    }
  }
  return out;
}

export interface Share {
  readonly label: string;
  readonly category_id: number;
  readonly pixels: number;
  readonly share: number;
  readonly color: readonly number[];
}

/** How many pixels each class has that has any, in the order of the classes. */
export function shares(masks: Masks, parameters: MasksParameters): Share[] {
  const counts = new Map<number, number>();
  for (const label of masks.labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts.entries()]
    .sort(([a], [b]) => a - b)
    .map(([index, pixels]) => ({
      label: parameters.labels[index] ?? String(index),
      category_id: index,
      pixels,
      share: pixels / masks.labels.length,
      color: parameters.palette[index] ?? [0, 0, 0],
    }));
}
