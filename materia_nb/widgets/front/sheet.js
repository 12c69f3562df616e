/** Rows of a spreadsheet as they stand on the clipboard (RFC 4180 with tabs): a quoted cell may hold tabs, line breaks and doubled quotes. */
export function rowsOf(text) {
  const rows = [[]];
  let at = 0;
  while (at <= text.length) {
    const rest = text.slice(at);
    const quoted = /^"((?:[^"]|"")*)"(?=\t|\r?\n|$)/.exec(rest);
    const cell = quoted || /^[^\t\r\n]*/.exec(rest);
    rows.at(-1).push(quoted ? quoted[1].replaceAll('""', '"').replaceAll("\r\n", "\n") : cell[0]);
    const end = /^(\t|\r?\n|\r)?/.exec(rest.slice(cell[0].length))[0];
    if (!end) break;
    at += cell[0].length + end.length;
    if (end !== "\t") rows.push([]);
  }
  return rows.filter((row) => row.some((one) => one.trim()));
}
