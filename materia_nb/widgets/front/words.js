/** Formatting of numbers and texts. */

/** Format a duration in milliseconds: 8.1 s, 1:42, 2:03:04. @param {number} ms */
export function durationWords(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 9.95) return s.toFixed(1) + " s";
  if (s < 59.5) return Math.round(s) + " s";
  const seconds = Math.round(s), hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
  const pad = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return hours ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}

/** Format a count with separators or, if short, like 15.4k. @param {number} n @param {boolean} [short] */
export function countWords(n, short = false) {
  if (!short || n < 1000) return n.toLocaleString("en");
  return (n < 1e6 ? (n / 1000).toFixed(1) + "k" : (n / 1e6).toFixed(1) + "M").replace(".0", "");
}

/** Format a number with a noun, such as 1 problem or 2 problems. @param {number} n @param {string} noun */
export const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Return the number of rows that a field of this width needs for a text. @param {string} text @param {number} [wide] */
export const rowsFor = (text, wide = 56) => text.split("\n").reduce((sum, line) => sum + 1 + Math.floor(line.length / wide), 0);

/** Parse spreadsheet rows from the clipboard (RFC 4180 with tabs): a quoted cell may contain tabs, line breaks and doubled quotes. Rows without text are dropped. @param {string} text */
export function rowsOf(text) {
  const cell = /(?:"((?:[^"]|"")*)"(?=\t|\r?\n|$)|([^\t\r\n]*))(\t|\r?\n|\r|$)/y;
  /** @type {string[][]} */
  const rows = [];
  for (let end = "\n"; end; ) {
    const [, quoted, plain, after] = /** @type {RegExpExecArray} */ (cell.exec(text));
    if (end !== "\t") rows.push([]);
    rows[rows.length - 1].push(quoted === undefined ? plain : quoted.replaceAll('""', '"').replaceAll("\r\n", "\n"));
    end = after;
  }
  return rows.filter((row) => row.some((content) => content.trim()));
}
