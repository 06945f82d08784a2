/** `ext.e2b#eu` is an instance of `ext.e2b`: the base name matches all of its instances. */
export function matches(list: readonly string[], id: string): boolean {
  return positionIn(list, id) >= 0;
}

/** Where a list names it, by its own name first; -1 when it does not. */
export function positionIn(list: readonly string[], id: string): number {
  const exact = list.indexOf(id);
  return exact >= 0 ? exact : list.indexOf(id.split('#')[0] as string);
}
