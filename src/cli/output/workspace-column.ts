import type { Column } from './table.ts';

/** Column of the workspace, where the rows are not all of one: a key of the server sees them all. */
export function workspaceColumn<T extends { readonly workspace_id: string }>(
  rows: readonly T[],
): Column<T>[] {
  const [first] = rows;
  if (rows.every(({ workspace_id }) => workspace_id === first?.workspace_id)) return [];
  return [{ title: 'WORKSPACE', value: (row) => row.workspace_id }];
}
