// How Sphinx's search ranks pages: answers first, and what changed or was decided last.
var Scorer = {
  score: ([page, , , , score]) =>
    page === "docs/how-do-i" ? score + 20 : /^(CHANGELOG|CONTRIBUTING|docs\/(api|decisions|architecture))/.test(page) ? score - 8 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
