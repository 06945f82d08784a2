/** `ext.e2b#eu` is an instance of `ext.e2b`: the base name matches all of its instances. */
export function matches(list: readonly string[], id: string): boolean {
  return positionIn(list, id) >= 0;
}

/** Returns the position of a backend in a list, by its own name first; -1 when the list does not name it. */
export function positionIn(list: readonly string[], id: string): number {
  if (list.length === 0) return -1;
  const exact = list.indexOf(id);
  const hash = exact >= 0 ? -1 : id.indexOf('#');
  return hash < 0 ? exact : list.indexOf(id.slice(0, hash));
}
