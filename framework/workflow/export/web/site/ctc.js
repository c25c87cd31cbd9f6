/** From the classes of a recogniser's steps to text. */
/**
 * Best-path CTC decoding: repeats are joined, blanks (class 0) dropped. The score is the mean of the probabilities that
 * the symbols have at their first steps; 0 of a line without symbols.
 */
export function ctcDecode(indices, probabilities, symbols) {
    const chars = [];
    const steps = indices.length;
    let start = 0;
    while (start < steps) {
        let end = start + 1;
        while (end < steps && indices[end] === indices[start])
            end++;
        const index = Number(indices[start]);
        if (index !== 0) {
            const char = symbols[index];
            if (char === undefined)
                throw new Error(`class ${index} is not in the dictionary of ${symbols.length} symbols`);
            chars.push({ char, score: probabilities[start], startStep: start, endStep: end });
        }
        start = end;
    }
    const sum = chars.reduce((total, one) => total + one.score, 0);
    return { text: chars.map((one) => one.char).join(""), score: chars.length ? sum / chars.length : 0, chars };
}
