/** Images whose letters are too small at the size at which a detector sees the whole: what to look at again, and how. */
import { quadSize } from "./crops.js";
import { boundsOf } from "./lettergaps.js";
import { median } from "./regions.js";
export const READ_WELL = 0.8; // score of a line
export const SHRUNK = 0.75; // from here on small letters may be lost
const [SHARE, LEAST] = [0.15, 3]; // of all lines, and how many: so many not read well call for another look
const FAR = 0.35; // at this scale and below the edges of a line are off by three pixels and more
const NARROW = 2.8; // pixels of a character from left to right
const LOW = 12.5; // pixels of a line where it is seen, with the detector's margin
const [HEIGHT, TALL] = [24, 48]; // pixels that a line has to have in another look; of lines that need none
const [LEAST_CLOSER, MOST_CLOSER] = [2, 4]; // times
const SAME = 0.5; // of a line that lies in another one: it is that one
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;
/** How many of `detected` lines and `faint` regions are not read well, where these are many; else 0. */
export function badlyRead(lines, detected, faint) {
    const bad = detected + faint - lines.filter(({ score }) => score >= READ_WELL).length;
    return bad >= Math.max(LEAST, SHARE * (detected + faint)) ? bad : 0;
}
/** Whether most lines of an image that is seen at `scale` are lower than is good for them. */
export function areLow(quads, scale) {
    return scale <= FAR && quads.length >= LEAST && medianHeight(quads) * scale < LOW;
}
/** Whether many lines of an image seen at `scale` have characters too narrow for their ends to be seen well. */
export function areNarrow(lines, scale) {
    const widths = lines.map(({ text }) => [...text].reduce((sum, char) => sum + (WIDE.test(char) ? 2 : 1), 0));
    if (scale > FAR || !widths.some(Boolean))
        return false;
    const narrow = lines.filter(({ polygon }, i) => Math.max(...quadSize(polygon)) * scale < NARROW * widths[i]).length;
    return narrow >= Math.max(LEAST, SHARE * lines.length);
}
/** The scale at which to look again at an image that was seen at `scale`, at most 1; null where that is no closer. */
export function closerScale(quads, scale) {
    if (scale > SHRUNK)
        return null;
    const times = HEIGHT / Math.max(medianHeight(quads) * scale, 1);
    return Math.min(1, scale * Math.min(Math.max(times, LEAST_CLOSER), MOST_CLOSER));
}
/** Quads of a first look at `scale` and of a closer one as one set: of the first stay tall lines, and those that the
 * closer one lacks. */
export function mergeLooks(first, second, scale) {
    const isTall = first.map((quad) => Math.min(...quadSize(quad)) * scale >= TALL);
    const tall = first.filter((_, i) => isTall[i]);
    const inTall = areAmong(second, tall);
    const fresh = second.filter((_, i) => !inTall[i]);
    const isSeen = areAmong(first, fresh);
    return [...first.filter((_, i) => isTall[i] || !isSeen[i]), ...fresh];
}
/** Which of quads share more than half of their own or another one's area with one of the others. */
export function areAmong(quads, others) {
    const area = ([x0, y0, x1, y1]) => (x1 - x0) * (y1 - y0);
    const around = others.map(boundsOf);
    return quads.map(boundsOf).map((box) => around.some((other) => {
        const width = Math.max(Math.min(box[2], other[2]) - Math.max(box[0], other[0]), 0);
        const height = Math.max(Math.min(box[3], other[3]) - Math.max(box[1], other[1]), 0);
        return width * height > SAME * Math.min(area(box), area(other));
    }));
}
const medianHeight = (quads) => quads.length ? median(quads.map((quad) => Math.min(...quadSize(quad)))) : 0;
