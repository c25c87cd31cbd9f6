/** Letters that stand each by itself: below one another as one word, as on signs, and side by side as in forms. */
import { greyAt, boundsOf, rowsOfBoxes } from "./lettergaps.js";
import { emptyPixels, roundEven } from "./image.js";
import { mergeQuads, uprightBoxes } from "./order.js";
import { median } from "./regions.js";
import { resize } from "./resize.js";
export const LEAST_STACKED = 3; // letters of a word
const LEVEL = 0.4; // of a letter's height: how far middles of one column are apart
const PITCH = [0.7, 2.4]; // of the height: from a letter's middle to the next one's
const HEIGHTS = 1.6; // the highest letter over the lowest
const EVEN = 1.5; // the largest distance over the least
const BESIDE = 1.2; // times the distance to the next letter: how far away what stands beside has to be
const MARGIN = 0.2; // of a letter's height: what the detector adds at either side
const SHAPES = [0.3, 1.6]; // a quad's width to its height that may be of one letter
const LETTER = [0.45, 0.95]; // of the height of the quads: a letter's own
const ASIDE = 0.25; // of that height: how far a letter's middle is aside
const ALONE = 0.6; // of the letters: beside which nothing may stand but letters of other such words
const INK = 60; // of 255: how far ink is from its ground
const ALIKE = { "0": "O", "1": "I", 一: "I" };
const [LEAST, APART] = [3, 1.2]; // letters of a row; of letters' height: the least pitch
const LETTERS = 0.5; // of a row's characters that are letters, at least, where the others are letters, too
const FIRST_IDEOGRAM = "\u2e80"; // from there on a line alone may be the sign of one
const SAME_LOOKS = { "0": "O", "1": "I", l: "I", "|": "I", 一: "I" };
const f = Math.fround;
const isAlpha = (text) => /^\p{L}+$/u.test(text);
const isAlnum = (text) => /^[\p{L}\p{N}]+$/u.test(text);
const isDigit = (text) => /^\p{Nd}+$/u.test(text);
const isUpper = (text) => text === text.toUpperCase() && text !== text.toLowerCase();
const middleOf = ([x0, y0, x1, y1]) => [(x0 + x1) / 2, (y0 + y1) / 2];
const stepsOf = (values) => values.slice(1).map((value, i) => value - values[i]);
/** Columns of single letters, each from the top: the numbers of their lines. */
export function findStacks(polygons, texts) {
    const single = texts
        .map((_, i) => i)
        .filter((i) => [...texts[i].trim()].length === 1 && isAlnum(texts[i].trim()));
    if (single.length < LEAST_STACKED)
        return [];
    const boxes = uprightBoxes(polygons);
    const heights = boxes.map((box) => box[3] - box[1]);
    const middles = boxes.map(middleOf);
    return chainsOf(single, middles, heights).filter((stack) => isWord(stack, single, boxes, middles, heights, texts));
}
/** The quads with those of letters that the detector missed above, between and below letters of a column. */
export function addMissedBelow(image, quads) {
    if (quads.length < LEAST_STACKED)
        return [...quads];
    const boxes = quads.map(boundsOf);
    const [middles, heights] = [boxes.map(middleOf), boxes.map((box) => box[3] - box[1])];
    const shape = boxes.map(([x0, y0, x1, y1]) => (x1 - x0) / Math.max(y1 - y0, 1));
    const single = boxes.map((_, i) => i).filter((i) => shape[i] >= SHAPES[0] && shape[i] <= SHAPES[1]);
    const more = [];
    for (const stack of chainsOf(single, middles, heights)) {
        const steps = stepsOf(stack.map((i) => middles[i][1]));
        if (stack.length < LEAST_STACKED || Math.max(...steps) > EVEN * Math.min(...steps))
            continue;
        const [height, pitch] = [median(stack.map((i) => heights[i])), median(steps)];
        const across = median(stack.map((i) => middles[i][0]));
        for (const [step, end] of [
            [-pitch, stack[0]],
            [pitch, stack[stack.length - 1]],
        ]) {
            let down = middles[end][1] + step;
            for (;;) {
                const box = loneLetter(image, across, down, height, pitch);
                if (box === null)
                    break;
                const [x, y] = middleOf(box);
                if ([...boxes, ...more].some(([x0, y0, x1, y1]) => x0 < x && y0 < y && x < x1 && y < y1))
                    break;
                more.push(box);
                down += step;
            }
        }
    }
    const corners = more.map((box) => {
        const [x0, y0, x1, y1] = box.map(f);
        return [
            [x0, y0],
            [x1, y0],
            [x1, y1],
            [x0, y1],
        ];
    });
    return [...quads, ...corners];
}
/** The box with its margin of a letter whose middle is about here, alone in as much room as those of its stack have. */
function loneLetter(image, across, down, height, pitch) {
    const [left, right] = [roundEven(across - height), roundEven(across + height)];
    const [top, bottom] = [roundEven(down - pitch / 2), roundEven(down + pitch / 2)];
    if (left < 0 || top < 0 || right > image.width || bottom > image.height)
        return null;
    const grey = [];
    for (let y = top; y < bottom; y++)
        for (let x = left; x < right; x++)
            grey.push(greyAt(image, y, x));
    const [ground, columns] = [median(grey), right - left];
    let [x0, y0, x1, y1] = [columns, bottom - top, 0, 0];
    grey.forEach((value, i) => {
        if (Math.abs(value - ground) <= INK)
            return;
        const [x, y] = [i % columns, Math.floor(i / columns)];
        [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x + 1), Math.max(y1, y + 1)];
    });
    if (x1 === 0)
        return null;
    const inside = x0 > 0 && y0 > 0 && x1 < columns && y1 < bottom - top;
    const level = Math.abs((x0 + x1) / 2 - (across - left)) <= ASIDE * height;
    const high = y1 - y0 >= LETTER[0] * height && y1 - y0 <= LETTER[1] * height;
    if (!inside || !level || !high || x1 - x0 > height)
        return null;
    const margin = MARGIN * height;
    return [left + x0 - margin, top + y0 - margin, left + x1 + margin, top + y1 + margin];
}
/** One line of letters below one another; `text` is what it says, as long, where the letters alone do not tell. */
export function joinStack(lines, text) {
    const own = text !== null && isAlnum(text) ? text : lines.map((line) => line.text.trim()).join("");
    const letters = [...own];
    const capitals = letters.every((letter) => isUpper(letter) || letter in ALIKE);
    return {
        text: capitals ? letters.map((letter) => ALIKE[letter] ?? letter).join("") : own,
        score: lines.reduce((sum, line) => sum + line.score, 0) / lines.length,
        polygon: mergeQuads(lines.map((line) => line.polygon)),
        first: lines[0].polygon,
    };
}
/** Images of letters side by side, at the height of the lowest, without their margins at the sides. */
export function lettersInARow(crops) {
    const height = Math.min(...crops.map((crop) => crop.height));
    const scaled = crops.map((crop) => resize(crop, [height, Math.max(roundEven((crop.width * height) / crop.height), 1)]));
    const cut = scaled.map(({ width }) => Math.max(Math.min(roundEven(MARGIN * height), Math.floor(width / 5)), 0));
    const width = scaled.reduce((sum, image, i) => sum + image.width - 2 * cut[i], 0);
    const out = emptyPixels(height, width, 3);
    let left = 0;
    scaled.forEach((image, i) => {
        const columns = image.width - 2 * cut[i];
        for (let y = 0; y < height; y++) {
            const start = (y * image.width + cut[i]) * 3;
            out.data.set(image.data.subarray(start, start + columns * 3), (y * width + left) * 3);
        }
        left += columns;
    });
    return out;
}
/** Letters below one another, each from the top. */
function chainsOf(single, middles, heights) {
    const below = new Map(single.map((i) => [i, nextBelow(i, single, middles, heights)]));
    const targets = new Set(below.values());
    return single
        .filter((start) => !targets.has(start))
        .map((start) => {
        const chain = [start];
        let item = below.get(start);
        while (item !== undefined && !chain.includes(item)) {
            chain.push(item);
            item = below.get(item);
        }
        return chain;
    });
}
function nextBelow(item, single, middles, heights) {
    let [best, nearest] = [undefined, Number.POSITIVE_INFINITY];
    for (const other of single) {
        const height = Math.max(heights[item], heights[other]);
        const [across, down] = [
            Math.abs(middles[other][0] - middles[item][0]),
            middles[other][1] - middles[item][1],
        ];
        const fits = across <= LEVEL * height && PITCH[0] * height <= down && down <= PITCH[1] * height;
        if (fits && down < nearest && height <= HEIGHTS * Math.min(heights[item], heights[other])) {
            [best, nearest] = [other, down];
        }
    }
    return best;
}
function isWord(stack, single, boxes, middles, heights, texts) {
    const letters = stack.map((i) => texts[i].trim());
    if (stack.length < LEAST_STACKED || 2 * letters.filter(isAlpha).length <= letters.length)
        return false;
    const steps = stepsOf(stack.map((i) => middles[i][1]));
    const high = stack.map((i) => heights[i]);
    if (Math.max(...steps) > EVEN * Math.min(...steps) || Math.max(...high) > HEIGHTS * Math.min(...high)) {
        return false;
    }
    const pitch = median(steps);
    let alone = 0;
    for (const i of stack) {
        const beside = boxes
            .map((_, other) => other)
            .filter((other) => !stack.includes(other))
            .filter((other) => Math.abs(middles[other][1] - middles[i][1]) < Math.max(heights[other], heights[i]) / 2);
        for (const other of beside) {
            const gap = Math.max(boxes[other][0] - boxes[i][2], boxes[i][0] - boxes[other][2]);
            const width = (boxes[other][2] - boxes[other][0] + boxes[i][2] - boxes[i][0]) / 2;
            if (gap + width < BESIDE * pitch)
                return false;
        }
        if (beside.every((other) => single.includes(other)))
            alone += 1;
    }
    return alone >= ALONE * stack.length;
}
/** Lines, with digits and signs that look like letters as those, where letters stand apart in a row; `upright` says
 * which lines are. */
export function asLetters(lines, upright) {
    const out = [...lines];
    const apart = lines.map((_, i) => i).filter((i) => upright[i] && standApart(lines[i]));
    if (!apart.some((i) => [...lines[i].text].some((char) => char in SAME_LOOKS)))
        return out;
    for (const row of rowsOfBoxes(apart.map((i) => boundsOf(lines[i].polygon)))) {
        const numbers = row.map((i) => apart[i]);
        const texts = numbers.flatMap((i) => [...lines[i].text].filter((char) => char.trim()));
        const sure = texts.filter((char) => !(char in SAME_LOOKS));
        const letters = sure.filter((char) => isAlpha(char) && char < FIRST_IDEOGRAM).length;
        if (texts.length < LEAST || sure.some(isDigit) || letters < LETTERS * texts.length)
            continue;
        for (const i of numbers) {
            const text = [...lines[i].text].map((char) => SAME_LOOKS[char] ?? char).join("");
            out[i] = { ...lines[i], text };
        }
    }
    return out;
}
/** Whether the characters of a line stand each by itself. */
function standApart(line) {
    const tokens = line.text
        .split(/\s+/u)
        .filter(Boolean)
        .map((token) => [...token].length);
    if (tokens.every((length) => length === 1))
        return true;
    const [left, top, right, bottom] = boundsOf(line.polygon);
    return right - left >= APART * (bottom - top) * tokens.reduce((a, b) => a + b, 0);
}
