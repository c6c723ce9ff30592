// What a search shows first: pages by their title, then text, then entries of the reference.
var Scorer = {
  objNameMatch: 6,
  objPartialMatch: 3,
  objPrio: { 0: 5, 1: 2, 2: -5 },
  objPrioDefault: 0,
  title: 40,
  partialTitle: 30,
  term: 5,
  partialTerm: 2,
};
