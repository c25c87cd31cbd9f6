/**
 * Which way up lines stand: by a classifier of single lines, by how well they read, and by their page.
 *
 * The classifier errs on one line in a hundred, so the lines of a page vote, and a line is turned against its page only
 * where it reads badly as the page stands and well the other way. Lines that run up or down are a group of their own.
 */
import { rotate90 } from "./image.js";
export const SURE = 0.9; // text on its head hardly reaches this score
const DECISIVE = 0.05; // two readings whose scores are closer tell nothing
const QUESTIONED = 0.25; // of the sure lines: if so many are turned, the page may stand on its head
const SAMPLE = 48; // lines that are read both ways then
const FEW = 4; // numbers such as 66 and 99, of which the surer reading is an accident
/** Characters that are themselves or one another on their heads. */
const ROTATABLE = new Set("0125689 HINOSXZosxzl+-=.,:%/()[]");
class Readings {
    crops;
    read;
    found = [new Map(), new Map()];
    constructor(crops, read) {
        this.crops = crops;
        this.read = read;
    }
    /** Read these lines as they are, and those on their heads, all in one go. */
    async add(upright, turned) {
        const [first, second] = [upright, turned].map((lines, way) => [...new Set(lines)].filter((i) => !this.found[way].has(i)));
        if (!first.length && !second.length)
            return;
        const texts = await this.read([
            ...first.map((i) => this.crops[i]),
            ...second.map((i) => rotate90(this.crops[i], 2)),
        ]);
        first.forEach((i, k) => {
            this.found[0].set(i, texts[k]);
        });
        second.forEach((i, k) => {
            this.found[1].set(i, texts[first.length + k]);
        });
    }
    addWays(lines, ways) {
        return this.add(lines.filter((i) => !ways[i]), lines.filter((i) => ways[i]));
    }
    text(line, turned) {
        const text = this.found[turned ? 1 : 0].get(line);
        if (text === undefined)
            throw new Error(`line ${line} was not read this way`);
        return text;
    }
    score(line, turned) {
        return this.text(line, turned).score;
    }
    /** Whether the line says as much on its head, as far as it was read. */
    isRotatable(line) {
        return this.found.every((texts) => saysAsMuch(texts.get(line)?.text ?? ""));
    }
    /** How much better the lines, which were read both ways, read on their heads; negative: worse. */
    evidence(lines) {
        const gains = lines
            .map((i) => ({ gain: this.score(i, true) - this.score(i, false), rotatable: this.isRotatable(i) }))
            .filter(({ gain }) => Math.abs(gain) >= DECISIVE);
        const few = gains.filter(({ rotatable }) => rotatable).length < FEW;
        return gains.reduce((sum, { gain, rotatable }) => sum + (rotatable && few ? 0 : gain), 0);
    }
}
const saysAsMuch = (text) => [...text].every((char) => ROTATABLE.has(char));
const count = (flags) => flags.filter(Boolean).length;
/**
 * What each line says, the right way up, and which stand on their heads.
 *
 * `probabilities` are the classifier's of "on its head", `tall` says which crops were turned by a quarter.
 */
export async function readDirected(crops, probabilities, tall, read, thresh) {
    const readings = new Readings(crops, read);
    const head = probabilities.map(([, p]) => p > thresh);
    const upright = probabilities.map(([p]) => p > thresh);
    const sure = head.map((one, i) => one || upright[i]);
    const ways = crops.map(() => false);
    const all = crops.map((_, i) => i);
    const [level, rising] = [all.filter((i) => !tall[i]), all.filter((i) => tall[i])];
    const turnedCount = count(level.map((i) => head[i]));
    const sureCount = count(level.map((i) => sure[i]));
    for (const i of level)
        ways[i] = 2 * turnedCount > sureCount;
    const questioned = turnedCount > 0 && turnedCount >= QUESTIONED * sureCount;
    const vote = (p) => Math.min(Math.max(p, -3), 3);
    const votes = rising.map((i) => vote(Math.log((probabilities[i][1] + 1e-6) / (probabilities[i][0] + 1e-6))));
    const rises = votes.reduce((a, b) => a + b, 0) > 0;
    for (const i of rising)
        ways[i] = upright[i] ? false : head[i] || rises;
    const doubtful = level.filter((i) => (ways[i] ? upright : head)[i]);
    await readings.add([...all.filter((i) => !ways[i]), ...doubtful.filter((i) => ways[i])], [...all.filter((i) => ways[i]), ...doubtful.filter((i) => !ways[i])]);
    if (questioned) {
        const ratio = (i) => crops[i].width / crops[i].height;
        const telling = [...level]
            .sort((a, b) => Number(readings.isRotatable(a)) - Number(readings.isRotatable(b)) || ratio(b) - ratio(a) || a - b)
            .slice(0, SAMPLE);
        await readings.add(telling, telling);
        const turn = readings.evidence(telling) > 0;
        for (const i of level)
            ways[i] = turn;
        await readings.addWays(level, ways);
    }
    await turnAgainstPage(level, head, upright, ways, readings);
    await finishRising(rising, sure, ways, readings);
    return { texts: all.map((i) => readings.text(i, ways[i])), turned: ways };
}
/** Turns lines that read badly as the page stands, and well the other way. */
async function turnAgainstPage(lines, head, upright, ways, readings) {
    // Of lines of which the classifier is sure only those are read the other way that it sees there.
    const weak = lines.filter((i) => readings.score(i, ways[i]) < SURE && !(ways[i] ? head : upright)[i]);
    await readings.addWays(weak, ways.map((way) => !way));
    for (const i of weak) {
        const [own, other] = [readings.score(i, ways[i]), readings.score(i, !ways[i])];
        const least = head[i] || upright[i] ? own + DECISIVE : Math.max(SURE, own + DECISIVE);
        if (other >= least && !readings.isRotatable(i))
            ways[i] = !ways[i];
    }
}
/** Lines that may as well run the other way are read both ways; those that tell nothing follow the others. */
async function finishRising(lines, sure, ways, readings) {
    const isOpen = (i) => (readings.score(i, ways[i]) < SURE && !sure[i]) || saysAsMuch(readings.text(i, ways[i]).text);
    const open = lines.filter(isOpen);
    const turned = count(lines.map((i) => ways[i]));
    const mixed = turned > 0 && turned < lines.length;
    // Where the classifier turns some lines and others not, the fewer must be confirmed.
    const fewer = mixed && 2 * turned <= lines.length;
    const minority = mixed ? lines.filter((i) => ways[i] === fewer) : [];
    const both = [...new Set([...open, ...minority])];
    await readings.addWays(both, ways.map((way) => !way));
    const evidence = readings.evidence(both);
    const decided = lines.filter((i) => !open.includes(i));
    const page = evidence !== 0 ? evidence > 0 : 2 * count(decided.map((i) => ways[i])) > decided.length;
    for (const i of both) {
        const gain = readings.score(i, true) - readings.score(i, false);
        if (Math.abs(gain) >= DECISIVE)
            ways[i] = gain > 0;
        else if (open.includes(i) && (evidence !== 0 || decided.length))
            ways[i] = page;
    }
    await readings.addWays(lines, ways);
}
