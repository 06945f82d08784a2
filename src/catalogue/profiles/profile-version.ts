/** Compares ascending by semantic version, except that every pre-release comes before every release. */
export function compareVersions(left: string, right: string): number {
  const [leftCore, leftTag] = split(left);
  const [rightCore, rightTag] = split(right);
  if ((leftTag === null) !== (rightTag === null)) return leftTag === null ? 1 : -1;
  return compareParts(leftCore, rightCore) || compareParts(leftTag ?? [], rightTag ?? []);
}

function split(version: string): [core: string[], tag: string[] | null] {
  const dash = version.indexOf('-');
  if (dash < 0) return [version.split('.'), null];
  return [version.slice(0, dash).split('.'), version.slice(dash + 1).split('.')];
}

/** SemVer §11: numbers by value and before words, words by code point, fewer parts first. */
function compareParts(left: readonly string[], right: readonly string[]): number {
  for (const [index, one] of left.entries()) {
    const other = right[index];
    if (other === undefined) return 1;
    if (one === other) continue;
    const isNumber = [/^\d+$/.test(one), /^\d+$/.test(other)];
    if (isNumber[0] && isNumber[1]) {
      if (Number(one) !== Number(other)) return Number(one) - Number(other);
    } else if (isNumber[0] !== isNumber[1]) return isNumber[0] ? -1 : 1;
    else return one < other ? -1 : 1;
  }
  return left.length - right.length;
}
