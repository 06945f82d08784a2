const FARTHEST = 3;

/** Returns the edits between two words; exchanged neighbours count once. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (before[j - 2] ?? 0) + 1);
      }
      next.push(best);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Returns the word that was probably meant, if any is close. */
export function nearestName(word: string, names: readonly string[]): string | null {
  let best: string | null = null;
  let least = Math.min(FARTHEST, Math.ceil(word.length / 2)) + 1;
  for (const name of names) {
    const edits = name.startsWith(word) && word.length > 2 ? 1 : distance(word, name);
    if (edits < least) {
      least = edits;
      best = name;
    }
  }
  return best;
}
