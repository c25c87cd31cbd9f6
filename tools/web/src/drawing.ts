/** Results on a canvas. */

import type { Box } from "./boxes.js";
import type { Line } from "./lines.js";

/** A colour for each class, as far from that of its neighbours as may be. */
export function classColor(index: number, alpha = 1): string {
  return `hsl(${(index * 137.5 + 205) % 360} 85% 45% / ${alpha})`;
}

export function drawBoxes(context: CanvasRenderingContext2D, boxes: readonly Box[]): void {
  const { width, height } = context.canvas;
  const line = Math.max(2, Math.round(Math.max(width, height) / 450));
  const font = Math.max(12, Math.round(Math.max(width, height) / 55));
  context.lineWidth = line;
  context.font = `600 ${font}px system-ui, sans-serif`;
  context.textBaseline = "top";
  for (const { box, category_id } of boxes) {
    context.strokeStyle = classColor(category_id);
    context.strokeRect(box[0], box[1], box[2] - box[0], box[3] - box[1]);
  }
  for (const { box, label, score, category_id } of boxes) {
    const text = `${label} ${score.toFixed(2)}`;
    const wide = context.measureText(text).width + font / 2;
    const y = box[1] >= font * 1.3 ? box[1] - font * 1.3 : box[1];
    const x = Math.min(box[0], Math.max(0, width - wide));
    context.fillStyle = classColor(category_id);
    context.fillRect(x - line / 2, y, wide, font * 1.3);
    context.fillStyle = "#fff";
    context.fillText(text, x + font / 4, y + font * 0.15);
  }
}

export function drawLines(
  context: CanvasRenderingContext2D,
  lines: readonly Line[],
  selected: number | null,
): void {
  const { width, height } = context.canvas;
  context.lineWidth = Math.max(1.5, Math.max(width, height) / 700);
  lines.forEach(({ polygon, score }, i) => {
    context.beginPath();
    polygon.forEach(([x, y], k) => {
      if (k === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    });
    context.closePath();
    const hue = Math.round(20 + 120 * Math.min(1, Math.max(0, (score - 0.5) / 0.5)));
    context.fillStyle = `hsl(${hue} 90% 45% / ${i === selected ? 0.45 : 0.14})`;
    context.strokeStyle = `hsl(${hue} 80% 32%)`;
    context.fill();
    context.stroke();
  });
}
